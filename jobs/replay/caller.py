"""The load process' line to the process that started it: ready, go, and never to outlive it."""

import asyncio
import os
import sys

READY = b"ready\n"
ORPHANED = 3
"""Exit code when the caller ended first."""
SILENT = 4
"""Exit code when a replica hangs; standard error says which."""


class Caller:
    """Standard output says `ready`; standard input says when to start and closes when the caller is gone."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._said = b""
        self._start: asyncio.Future[int] = loop.create_future()
        loop.add_reader(sys.stdin.fileno(), self._listen)

    async def start(self) -> int:
        """Say that this process is ready and return when all are to start: nanoseconds of CLOCK_MONOTONIC."""
        os.write(sys.stdout.fileno(), READY)
        return await self._start

    def close(self) -> None:
        """Stop listening."""
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())

    def _listen(self) -> None:
        data = os.read(sys.stdin.fileno(), 64)
        if not data:
            os._exit(ORPHANED)
        self._said += data
        if b"\n" in self._said and not self._start.done():
            self._start.set_result(int(self._said))
