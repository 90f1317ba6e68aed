"""Leases of CPU cores, so that engines and load processes of one machine never share a core by accident.

Ray counts CPUs but pins nothing. A lease is an advisory lock on one file a core, which the kernel frees when
the holder ends, however it ends.
"""

import fcntl
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Cores:
    """How a block's cores are shared out."""

    engine: tuple[int, ...]
    """Cores of all engines of the slice."""
    load: tuple[int, ...]
    """Cores of the load process."""
    oversubscribed: bool
    """Whether client and engine have to share cores: measured, but never a verdict."""

    def of_replica(self, replica: int, replicas: int) -> tuple[int, ...]:
        """Return the engine cores of one replica: an equal part of them, or all where there are too few."""
        part = len(self.engine) // replicas
        return self.engine[replica * part : (replica + 1) * part] if part else self.engine


class CoreLease:
    """Cores held until `close` or the end of the process."""

    def __init__(self, *, engine: int, load: int, folder: Path | None = None) -> None:
        self._wanted = (engine, load)
        self._folder = folder or Path(tempfile.gettempdir()) / f"specload-cores-{os.getuid()}"
        self._held: dict[int, int] = {}

    def __enter__(self) -> Self:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        for core in sorted(os.sched_getaffinity(0)):
            if len(self._held) == sum(self._wanted):
                break
            lock = os.open(self._folder / f"core-{core}.lock", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
            else:
                self._held[core] = lock
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for lock in self._held.values():
            os.close(lock)
        self._held.clear()

    @property
    def cores(self) -> Cores:
        """Return who gets which core; where there are too few, the load process shares the engine's."""
        engine, load = self._wanted
        held = tuple(self._held)
        if len(held) >= engine + load:
            return Cores(engine=held[:engine], load=held[engine : engine + load], oversubscribed=False)
        shared = held or tuple(sorted(os.sched_getaffinity(0)))
        return Cores(engine=shared[:engine], load=shared, oversubscribed=True)
