"""Life of an engine's process tree, seen from the program that owns it."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil

from engines.base import Command
from engines.errors import EngineStartError

GUARD = Path(__file__).with_name("guard.py")
ORPHAN_GRACE = 5.0
"""Seconds an engine gets to end by itself when its owner died."""
GUARD_SECONDS = 40.0
"""Seconds the guard may take to end once told to: beyond its own giving-up."""
FIRST_WORD_SECONDS = 30.0
"""Seconds until the guard has to name the engine's pid; it takes milliseconds unless the machine is stuck."""
KILL_WAIT = 10.0
"""Seconds SIGKILL may take: freeing device memory happens in there."""
TAIL_BYTES = 262_144


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReport:
    """How an engine ended."""

    graceful: bool
    """It ended on SIGTERM, and so did everything it had started."""
    killed: int
    """Processes that needed SIGKILL."""
    survivors: int
    """Processes alive after that. Anything but 0 means the devices are not free."""
    seconds: float


class EngineProcess:
    """One engine under its guard: nothing of it outlives `stop`, nor the program that holds this object."""

    def __init__(self, guard: "subprocess.Popen[bytes]", log: Path, log_start: int) -> None:
        self._guard = guard
        self._words = _Words(guard)
        self._log_start = log_start
        self._report: StopReport | None = None
        self.log = log
        """Where the engine's standard output and error go."""
        self.pid = self._words.wait_for_pid()
        """Process id of the engine."""

    @classmethod
    def start(cls, command: Command, log: Path, cpus: Sequence[int] = ()) -> Self:
        """Start `command` under a guard, its output appended to `log`, bound to `cpus` (empty: all).

        Raises:
            EngineStartError: not even the guard could be started. An engine that cannot be executed ends at
                once with code 127 and the reason in its log.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        order = {
            "argv": list(command.argv),
            "env": dict(command.env),
            "cwd": str(command.cwd),
            "cpus": list(cpus),
            "grace": ORPHAN_GRACE,
        }
        with log.open("ab") as output:
            log_start = output.tell()
            guard = subprocess.Popen(
                [sys.executable, "-I", "-S", str(GUARD), str(log)],  # the log's name is for people reading ps
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                bufsize=0,
                env={},
                start_new_session=True,  # Ray kills a dead worker's process group: stay out of it
            )
        assert guard.stdin is not None
        try:
            guard.stdin.write(json.dumps(order).encode() + b"\n")
            return cls(guard, log, log_start)
        except (OSError, EngineStartError) as error:
            _end(guard)
            message = f"the guard of an engine could not be started: {error}; see {log}"
            raise EngineStartError(message) from error

    def returncode(self) -> int | None:
        """Return the engine's exit code (negative: ended by that signal), or None while it lives."""
        return self._words.exit_code()

    def tree(self) -> list[psutil.Process]:
        """Return the living processes of the engine: itself and everything below it or left by it."""
        guards = {self._guard.pid, self._words.inner}
        found: dict[int, psutil.Process] = {}
        for root in (*guards, self.pid):
            if root is None or (root == self.pid and self.returncode() is not None):
                continue
            try:
                process = psutil.Process(root)
                found.update({child.pid: child for child in (process, *process.children(recursive=True))})
            except psutil.NoSuchProcess:
                continue
        return [process for pid, process in found.items() if pid not in guards and _lives(process)]

    def bind(self, cpus: Sequence[int]) -> None:
        """Bind every thread of the engine to `cpus` (empty: leave them); threads to come inherit it."""
        if not cpus:
            return
        for process in self.tree():
            for task in Path(f"/proc/{process.pid}/task").glob("*"):
                with contextlib.suppress(OSError):  # a thread that has ended meanwhile
                    os.sched_setaffinity(int(task.name), cpus)

    def log_tail(self, lines: int = 200) -> str:
        """Return the last `lines` lines of the log, none from before this start."""
        with self.log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(self._log_start, size - TAIL_BYTES))
            text = file.read().decode(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def stop(self, grace: float) -> StopReport:
        """End the engine: SIGTERM, `grace` seconds, SIGKILL, and a look that nothing is left.

        Returns the first call's report when called again.
        """
        if self._report is not None:
            return self._report
        began = time.monotonic()
        tree = self.tree()
        for process in tree:
            if process.pid == self.pid:
                _try(process.terminate)
        stubborn = _living_after(grace, tree)
        for process in stubborn:
            _try(process.kill)
        _living_after(KILL_WAIT, stubborn)
        killed = {process.pid for process in stubborn}
        _end(self._guard)
        by_guard, left_by_guard = self._words.last()
        survivors = {process.pid for process in (*tree, *self.tree()) if _lives(process)}
        self._report = StopReport(
            graceful=not killed and not by_guard and not survivors,
            killed=len(killed) + by_guard,
            survivors=max(len(survivors), left_by_guard),
            seconds=time.monotonic() - began,
        )
        return self._report

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(ORPHAN_GRACE)


class _Words:
    """What the guards have said so far (`engines/guard.py` lists the words)."""

    def __init__(self, guard: "subprocess.Popen[bytes]") -> None:
        assert guard.stdout is not None
        self._guard = guard
        self._pipe = guard.stdout
        os.set_blocking(self._pipe.fileno(), False)
        self._buffer = b""
        self._ended = False
        self._said: list[list[str]] = []
        self.inner: int | None = None
        """Pid of the inner guard."""

    def wait_for_pid(self) -> int:
        """Return the engine's pid once it is known."""
        deadline = time.monotonic() + FIRST_WORD_SECONDS
        while time.monotonic() < deadline and not self._ended:
            self._read()
            guards, pids = self._all("guard"), self._all("pid")
            if guards and pids:
                self.inner = guards[0][0]
                return pids[0][0]
            time.sleep(0.005)
        message = "it did not name the engine's pid"
        raise EngineStartError(message)

    def exit_code(self) -> int | None:
        """Return the engine's exit code, None while it lives."""
        self._read()
        self._guard.poll()  # reaps it
        if codes := self._all("exit"):
            return codes[0][0]
        # Both guards ended without a word: the kernel killed the engine with the inner one.
        return -9 if self._ended else None

    def last(self) -> tuple[int, int]:
        """Return how many processes the guards had to kill, and how many they could not."""
        deadline = time.monotonic() + 1.0
        while not self._ended and time.monotonic() < deadline:
            self._read()
            time.sleep(0.005)
        gone = self._all("gone")
        self._pipe.close()
        self._ended = True
        return sum(killed for killed, _ in gone), max((left for _, left in gone), default=0)

    def _all(self, word: str) -> list[list[int]]:
        return [[int(value) for value in values] for first, *values in self._said if first == word]

    def _read(self) -> None:
        while not self._ended:
            try:
                chunk = os.read(self._pipe.fileno(), 4096)
            except BlockingIOError:
                return
            self._ended = not chunk
            *lines, self._buffer = (self._buffer + chunk).split(b"\n")
            self._said += [line.decode().split() for line in lines]


def _end(guard: "subprocess.Popen[bytes]") -> None:
    """Close the guard's lifeline and wait for it."""
    assert guard.stdin is not None
    guard.stdin.close()
    try:
        guard.wait(GUARD_SECONDS)
    except subprocess.TimeoutExpired:
        guard.kill()
        guard.wait()


def _living_after(seconds: float, processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    """Wait until all have ended, `seconds` at most, and return those that have not; zombies have ended."""
    deadline = time.monotonic() + seconds
    while (living := [process for process in processes if _lives(process)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return living


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _try(action: Callable[[], None]) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        action()
