"""The guard: parent of one engine, and the proof that nothing of it outlives the program that started it.

Run as a script (`python -I -S engines/guard.py`), Linux only, standard library only, so that it starts in
milliseconds. Its owner keeps the write end of the guard's standard input open; the first line there is the
order (JSON: argv, env, cwd, cpus, grace), and the end of file is the owner's death. Standard error is the
engine's log. On standard output it reports, one line each:

    guard PID              the inner guard
    pid PID                the engine
    exit CODE              the engine ended (negative: a signal)
    gone KILLED SURVIVORS  the tree is down; KILLED needed SIGKILL

There are two guards, outer and inner, each in a session of its own, each a child subreaper:

    owner -> outer -> inner -> engine -> its workers

- Owner dies in any way: standard input ends, both guards see it, the inner one takes the tree down. Ray kills
  a dead worker's process group; the guards are not in it.
- Outer dies: the pipe that only it can write to closes, and the inner one takes the tree down.
- Inner dies: the engine has it as parent and gets SIGKILL from the kernel (PR_SET_PDEATHSIG), which alone
  would leave the engine's workers; they fall to the outer guard, the next subreaper, which takes them down.
- Engine dies: its workers fall to the inner guard, which takes them down. `setsid` and double forks change no
  ancestry, so they escape nobody.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterable
from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
LINGER = 2.0
"""Seconds that workers get to end by themselves once their engine has; the grace if that is less."""
OUTER_MARGIN = LINGER + 3.0
"""Seconds the outer guard waits beyond the inner one's grace before it acts in its place."""
GIVE_UP = 20.0
"""Seconds of SIGKILL without effect (a process stuck in a driver) after which survivors are reported."""
CANNOT_START = 127
"""Exit code of an engine that could not be executed, as shells use it."""


def main() -> int:
    """Read the order, start both guards and the engine; return 1 if anything survived."""
    order = json.loads(_first_line(0))
    _subreaper()
    watch, tell = os.pipe()
    # Held back until a Guard handles them: a guard told to stop at birth must not just die of it.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    inner = os.fork()
    if inner == 0:
        os.close(tell)
        os.setsid()
        _subreaper()
        os._exit(_inner(order, watch))
    os.close(watch)
    report("guard", inner)
    survivors = Guard(inner, (0,)).watch(order["grace"] + OUTER_MARGIN, quiet=True)
    return 1 if survivors else 0


def report(*words: object) -> None:
    """Tell the owner, if it still listens."""
    with contextlib.suppress(OSError):
        os.write(1, (" ".join(map(str, words)) + "\n").encode())


class Guard:
    """Watches one child and its lifelines, then takes down all its own descendants."""

    def __init__(self, child: int, lifelines: Iterable[int]) -> None:
        self.child: int | None = child
        """The child's pid, None once it was reaped."""
        self._asked_to_stop = False
        self._poll = select.poll()
        self._wake, write = os.pipe()
        for end in (self._wake, write):
            os.set_blocking(end, False)
        self._poll.register(self._wake, select.POLLIN)
        for line in lifelines:
            self._poll.register(line, 0)  # POLLHUP is always reported
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in STOP_SIGNALS:
            signal.signal(number, self._on_stop)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)

    def watch(self, grace: float, *, quiet: bool = False) -> int:
        """Wait for the first ending of any kind, take everything down, and return the number of survivors."""
        ended = False
        while not ended:
            events = self._poll.poll(1000)
            self._drain()
            self._reap(quiet=quiet)
            hung_up = any(fd != self._wake for fd, _ in events)
            ended = hung_up or self._asked_to_stop or self.child is None
        killed, survivors = self._take_down(grace, quiet=quiet)
        if killed or survivors or not quiet:
            report("gone", killed, survivors)
        return survivors

    def _take_down(self, grace: float, *, quiet: bool) -> tuple[int, int]:
        deadline = time.monotonic() + grace
        lingering = False
        if self.child is not None:
            _signal([self.child], signal.SIGTERM)
        while (alive := self._alive(quiet=quiet)) and time.monotonic() < deadline:
            if self.child is None and not lingering:
                lingering = True
                deadline = min(deadline, time.monotonic() + min(LINGER, grace))
                _signal(alive, signal.SIGTERM)
            time.sleep(0.02)  # not the poll: a lifeline that hung up would end each at once
        killed: set[int] = set()
        deadline = time.monotonic() + GIVE_UP
        # New children can appear between the look and the kill, so it looks until nothing is left.
        while (alive := self._alive(quiet=quiet)) and time.monotonic() < deadline:
            killed.update(alive)
            _signal(alive, signal.SIGKILL)
            time.sleep(0.02)
        return len(killed), len(alive)

    def _alive(self, *, quiet: bool) -> list[int]:
        self._reap(quiet=quiet)
        return descendants(os.getpid())

    def _reap(self, *, quiet: bool) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.child = None
                return
            if pid == 0:
                return
            if pid == self.child:
                self.child = None
                if not quiet:
                    report("exit", os.waitstatus_to_exitcode(status))

    def _drain(self) -> None:
        try:
            while os.read(self._wake, 512):
                pass
        except BlockingIOError:
            pass

    def _on_stop(self, *_: object) -> None:
        self._asked_to_stop = True


def descendants(root: int) -> list[int]:
    """Return the living (not zombie) processes below `root`, whatever their session or group."""
    children: dict[int, list[int]] = {}
    zombies = set()
    for entry in os.listdir("/proc"):  # noqa: PTH208  pathlib would cost a third of the start-up time
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:  # noqa: PTH123  the same
                state, parent = file.read().rpartition(b")")[2].split()[:2]
        except OSError:
            continue
        children.setdefault(int(parent), []).append(int(entry))
        if state in (b"Z", b"X"):
            zombies.add(int(entry))
    found, todo = [], [root]
    while todo:
        below = children.get(todo.pop(), [])
        todo += below
        found += [pid for pid in below if pid not in zombies]
    return found


def _inner(order: dict[str, Any], outer: int) -> int:
    parent = os.getpid()
    engine = os.fork()
    if engine == 0:
        _become_engine(order, parent)
    report("pid", engine)
    return 1 if Guard(engine, (0, outer)).watch(order["grace"]) else 0


def _become_engine(order: dict[str, Any], parent: int) -> None:
    """Turn this process into the engine; never returns."""
    try:
        os.setsid()  # an engine that signals its own process group must not hit its guard
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the guard died before the request above
            os._exit(CANNOT_START)
        for number in (*STOP_SIGNALS, signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        os.dup2(2, 1)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if order["cpus"]:
            os.sched_setaffinity(0, order["cpus"])
        try:
            os.setpriority(os.PRIO_PROCESS, 0, 0)
        except PermissionError:
            _complain(
                f"the engine keeps niceness {os.getpriority(os.PRIO_PROCESS, 0)}: 0 is not permitted here"
            )
        os.chdir(order["cwd"])
        os.execvpe(order["argv"][0], order["argv"], order["env"])  # noqa: S606  no shell, by intent
    except OSError as error:
        _complain(f"cannot execute {order['argv'][0]} in {order['cwd']}: {error}")
    finally:
        os._exit(CANNOT_START)


def _complain(message: str) -> None:
    os.write(2, f"specload guard: {message}\n".encode())


def _first_line(fd: int) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        chunk = os.read(fd, 65536)
        if not chunk:
            sys.exit("specload guard: the owner ended before it gave an order")
        line += chunk
    return line


def _signal(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _subreaper() -> None:
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl failed")


if __name__ == "__main__":
    sys.exit(main())
