"""The driver's lock of a sweep: one writer, whoever it is and wherever it runs.

`flock` is freed by the kernel at any ending of the driver, SIGKILL included, and on most file systems seen by
other machines too. Where it is not (some network mounts), and for a machine that is gone without freeing it,
the lock file says who holds it, and its modification time is the holder's last sign of life.
"""

import errno
import fcntl
import json
import os
import socket
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from orchestrator.durable import sync_folder
from orchestrator.errors import LockedError, LockLostError

LOCK = "driver.lock"
BEAT_SECONDS = 10.0
"""How often a driver gives a sign of life."""
STALE_SECONDS = 90.0
"""Without a sign of life for so long, a driver on another machine can be taken over."""
_NO_FLOCK = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
"""What a file system answers that has no `flock`."""
_SAME_START = 2.0
"""Seconds by which two readings of one process's start time can differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A driver process, as others can know it."""

    host: str
    pid: int
    started: float
    """Start time of the process, seconds since the epoch: tells it from a later one with its number."""
    since: str
    """UTC time at which it took the lock, ISO 8601."""

    @classmethod
    def me(cls) -> Self:
        """Return this process."""
        return cls(
            host=socket.gethostname(),
            pid=os.getpid(),
            started=psutil.Process().create_time(),
            since=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    @classmethod
    def from_dict(cls, data: Any) -> Self | None:
        """Rebuild from `asdict`'s form; None from anything else."""
        try:
            return cls(**data)
        except TypeError:
            return None

    @property
    def here(self) -> bool:
        """Whether it runs, or ran, on this machine."""
        return self.host == socket.gethostname()

    def lives(self) -> bool:
        """Return whether the process is there; only to be asked on its own machine."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) < _SAME_START
            return same and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"


class DriverLock:
    """The lock of one sweep's folder, held while entered.

    Args:
        directory: folder of the sweep.
        take_over: take the lock of a driver on another machine that gave no sign of life for
            `STALE_SECONDS`.
    """

    def __init__(self, directory: Path, *, take_over: bool = False) -> None:
        self.path = directory / LOCK
        self._take_over = take_over
        self._file: int | None = None
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        """Take the lock.

        Raises:
            LockedError: another driver has it, or may have; the message says what to do.
            OSError: the folder cannot be written.
        """
        while not self._take():
            pass  # it was taken over between two calls: look again
        threading.Thread(target=self._beat, daemon=True, name="driver-lock").start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._file is not None:
            lock, self._file = self._file, None
            with suppress(OSError):
                os.ftruncate(lock, 0)  # nobody's, if it is still ours: a clean ending
            os.close(lock)

    def check(self) -> None:
        """Make sure that the lock is still ours, before anything is written.

        Raises:
            LockLostError: another driver took it over.
        """
        if self._file is None or not _is_at(self._file, self.path):
            message = (
                f"another driver has taken over {self.path.parent} ({_owner_of(self.path) or 'unknown'}); "
                "this one stops and writes nothing more"
            )
            raise LockLostError(message)

    def _take(self) -> bool:
        former = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            free = _flock(former)
            if not _is_at(former, self.path):
                return False
            self._check_owner(_owner(os.pread(former, 4096, 0)), free=free)
            self._replace()
        finally:
            os.close(former)
        return True

    def _check_owner(self, owner: Owner | None, *, free: bool) -> None:
        if owner is None and free:
            return  # new, or freed by a driver that ended cleanly
        sweep = self.path.parent.name
        who = str(owner) if owner is not None else "another driver"
        if owner is not None and owner.here:
            if free and not owner.lives():
                return  # the kernel freed it: that driver is dead
            if owner.lives() or not free:
                message = f"sweep {sweep} is being run by {who}; wait for it, or stop that process first"
                raise LockedError(message)
        silent = _silent_seconds(self.path)
        if silent < STALE_SECONDS:
            message = (
                f"sweep {sweep} is being run by {who} (last sign of life {silent:.0f} s ago); wait for it, "
                "or stop it there. If it is dead, take over with `specload sweep --take-over` once it has "
                f"been silent for {STALE_SECONDS:.0f} s"
            )
            raise LockedError(message)
        if not self._take_over:
            message = (
                f"sweep {sweep} was being run by {who}, silent for {silent:.0f} s. Make sure that it is "
                "dead, then take over with the same words and --take-over"
            )
            raise LockedError(message)

    def _replace(self) -> None:
        """Put a lock file of ours in the place of the old one, which a living former owner will notice."""
        staging = _beside(self.path, "new")
        lock = os.open(staging, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            _flock(lock)
            os.write(lock, json.dumps(asdict(Owner.me())).encode())
            os.fsync(lock)
            staging.replace(self.path)
            sync_folder(self.path.parent)
        except BaseException:
            os.close(lock)
            staging.unlink(missing_ok=True)
            raise
        self._file = lock

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            lock = self._file
            if lock is None:
                return
            with suppress(OSError):  # a full or vanished disk shows where results are written
                os.utime(lock)


def _flock(lock: int) -> bool:
    """Return whether the lock was free; True where the file system has none."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_FLOCK:
            raise
    return True


def _is_at(lock: int, path: Path) -> bool:
    """Return whether the open file is the one that lies at `path`."""
    try:
        there, ours = path.stat(), os.fstat(lock)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)


def _beside(path: Path, use: str) -> Path:
    """Return a file name beside `path` that no other process uses, on whatever machine."""
    return path.with_name(f".{path.name}-{use}-{socket.gethostname()}-{os.getpid()}")


def _owner_of(path: Path) -> Owner | None:
    try:
        return _owner(path.read_bytes())
    except OSError:
        return None


def _owner(content: bytes) -> Owner | None:
    try:
        return Owner.from_dict(json.loads(content))
    except ValueError:
        return None


def _silent_seconds(path: Path) -> float:
    """Return how long ago the lock file was touched, by the clock of the file system that keeps it.

    The clocks of two machines differ, and either may jump; the times of two files on one mount do not.
    """
    probe = _beside(path, "clock")
    try:
        probe.write_bytes(b"")
        return max(0.0, probe.stat().st_mtime - path.stat().st_mtime)
    finally:
        probe.unlink(missing_ok=True)
