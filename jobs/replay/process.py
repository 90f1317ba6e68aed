"""One load process as its launcher sees it."""

import contextlib
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

from jobs.errors import LoadProcessKilledError, ReplayError, SilentReplicaError
from jobs.replay.caller import SILENT
from jobs.replay.files import STDERR_FILE, shard_folder

TAIL_BYTES = 4000


class LoadProcess:
    """A started `python -m jobs.replay`."""

    def __init__(self, directory: Path, shard: int, queue: int, variables: Collection[str] = ()) -> None:
        folder = shard_folder(directory, shard)
        folder.mkdir(exist_ok=True)
        self._stderr = folder / STDERR_FILE
        with self._stderr.open("wb") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "jobs.replay", str(directory), str(shard), str(queue)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=directory,
                env=_environment(variables),
                pass_fds=(queue,),
            )

    def wait_ready(self, seconds: float) -> bool:
        """Wait up to `seconds` until the process is connected, or has ended; return whether it is."""
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], seconds)
        if readable and not self._process.stdout.readline():
            self._process.wait()  # closed without a word: it is ending
        return bool(readable)

    def go(self, start: int) -> None:
        """Tell the process when to start: nanoseconds of CLOCK_MONOTONIC."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # its end is seen, with its reason, by `check`
            self._process.stdin.write(b"%d\n" % start)
            self._process.stdin.flush()

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds` for the process to end and return whether it did."""
        try:
            self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def check(self) -> None:
        """Raise if the process has failed.

        Raises:
            SilentReplicaError: it gave up, as a replica hangs.
            LoadProcessKilledError: a signal ended it.
            ReplayError: any other failure, with its last lines.
        """
        code = self._process.poll()
        if not code:
            return
        tail = self._stderr.read_bytes()[-TAIL_BYTES:].decode(errors="replace").strip()
        if code == SILENT:
            raise SilentReplicaError(tail)
        ending = f"was ended by signal {-code}" if code < 0 else f"ended with {code}"
        message = f"the load process {ending}; its last lines: {tail or '(none)'}"
        raise LoadProcessKilledError(message) if code < 0 else ReplayError(message)

    def stop(self) -> None:
        """End the process if it still runs, and let go of its pipes."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


def _environment(variables: Collection[str]) -> dict[str, str]:
    """Return the complete environment of a load process: of ours it inherits the named `variables` only."""
    root = str(Path(__file__).resolve().parents[2])
    path = os.environ.get("PATH") or str(Path(shutil.which("env") or "/usr/bin/env").parent)
    return {
        "PATH": path,
        "PYTHONPATH": root,
        "PYTHONHASHSEED": "0",
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        **{name: os.environ[name] for name in variables if name in os.environ},
    }
