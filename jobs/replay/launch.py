"""Starting the load process and waiting for it, from the actor that owns the engine."""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec

from jobs.errors import ReplayError
from jobs.replay.data import ReplayData, load_replay
from jobs.replay.files import JOB_FILE, WORKLOAD_FILE
from jobs.replay.job import ReplayJob
from jobs.workload import token_file
from jobs.workload.tokens import TokenWorkload

POLL_SECONDS = 0.5
GRACE_SECONDS = 30.0
"""How long past its own deadline the load process may take to write its files."""
TAIL_BYTES = 4000


def run_replay(
    job: ReplayJob,
    workload: TokenWorkload | str | Path,
    directory: Path,
    *,
    watch: Callable[[], None] | None = None,
    python: str = sys.executable,
) -> ReplayData:
    """Play `job` in a process of its own and return what it measured.

    The process holds the read end of a pipe of ours and ends itself when it closes: it never outlives its
    caller, whichever way that ends.

    Args:
        job: What to play; its `workload` path is set here.
        workload: The token workload, or the path of its file (then it is read where it lies).
        directory: Working folder of this replay; created, and kept.
        watch: Called about twice a second; what it raises stops the load process and is raised here.
        python: Interpreter of the load process.

    Raises:
        ReplayError: the load process failed; the message ends with its last lines.
    """
    directory = directory.absolute()
    directory.mkdir(parents=True, exist_ok=True)
    if isinstance(workload, TokenWorkload):
        token_file.write(workload, directory / WORKLOAD_FILE)
        path = directory / WORKLOAD_FILE
    else:
        path = Path(workload).absolute()
    job = replace(job, workload=str(path))
    (directory / JOB_FILE).write_bytes(msgspec.json.encode(job))
    with (directory / "stderr.txt").open("wb") as stderr:
        process = subprocess.Popen(
            [python, "-m", "jobs.replay", str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            cwd=directory,
            env=_environment(),
        )
    try:
        _wait(process, job, watch)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
    if process.returncode != 0:
        tail = (directory / "stderr.txt").read_bytes()[-TAIL_BYTES:].decode(errors="replace").strip()
        message = f"the load process ended with {process.returncode}; its last lines: {tail or '(none)'}"
        raise ReplayError(message)
    return load_replay(directory)


def _wait(process: "subprocess.Popen[bytes]", job: ReplayJob, watch: Callable[[], None] | None) -> None:
    limit = time.monotonic() + job.deadline_seconds + GRACE_SECONDS
    while True:
        try:
            process.wait(timeout=POLL_SECONDS)
        except subprocess.TimeoutExpired:
            if watch is not None:
                watch()
            if time.monotonic() > limit:
                message = (
                    f"the load process still ran {GRACE_SECONDS:.0f} s after its deadline of "
                    f"{job.deadline_seconds:.0f} s"
                )
                raise ReplayError(message) from None
        else:
            return


def _environment() -> dict[str, str]:
    """Return the complete environment of the load process: nothing of Ray's or the engine's is inherited."""
    root = str(Path(__file__).resolve().parents[2])
    path = os.environ.get("PATH") or str(Path(shutil.which("env") or "/usr/bin/env").parent)
    return {
        "PATH": path,
        "PYTHONPATH": root,
        "PYTHONHASHSEED": "0",
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
    }
