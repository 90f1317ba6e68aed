"""The queue that all load processes of one replay take their work from.

The launcher writes the positions 0, 1, 2, ... of the job's order into a file, opens it once and hands the
open file to every load process. They share its file offset, and the kernel advances it under a lock with each
read (POSIX.1-2017, 2.9.7: reads of a regular file are atomic with respect to each other): every position is
taken exactly once, in order, by whichever process asks next. A take is one system call and needs no peer to
be awake.
"""

import os
import sys
from array import array
from pathlib import Path
from typing import Protocol

_POSITION = "i"
_SIZE = array(_POSITION).itemsize


class WorkQueue(Protocol):
    """Where users find out what to play next."""

    def take(self) -> int | None:
        """Return the next position of the job's order; None when there is no more work."""


class SharedOrder:
    """The processes' end of the queue."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def take(self) -> int | None:
        """Return the next position of the order that no process has taken; None when all are taken."""
        position = os.read(self._descriptor, _SIZE)
        return int.from_bytes(position, sys.byteorder) if position else None


def open_queue(path: Path, length: int) -> int:
    """Write the queue of an order of `length` entries and return a descriptor to hand to the processes."""
    path.write_bytes(array(_POSITION, range(length)).tobytes())
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
