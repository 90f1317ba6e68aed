"""A rank in real time: steps end on an absolute schedule, and their tokens go to the waiting streams.

Each step starts where the one before it ended on the schedule, not when the process woke up, so late timers
do not add up. A process that cannot keep up (steps shorter than its own work) moves its schedule instead of
piling up debt; `slipped_seconds` says by how much, and is on the metrics page.
"""

import asyncio
import logging
import traceback
from collections.abc import Callable

from engines.emulator.faults import Failure, strike_in_mid_stream
from engines.emulator.request import Request
from engines.emulator.scheduler import Emission, Scheduler

log = logging.getLogger(__name__)

MAX_DEBT_SECONDS = 0.05
"""How far a schedule may lie behind the clock before it is moved."""
MIN_SLEEP_SECONDS = 0.0003
"""Timers have a grain of about a millisecond: a shorter rest is not slept, the next step's end makes up for
it."""


class Stream:
    """The tokens of one request on their way to its HTTP response."""

    __slots__ = ("_ready", "_waiter", "request")

    def __init__(self, request: Request) -> None:
        self.request = request
        self._ready: list[Emission] = []
        self._waiter: asyncio.Future[None] | None = None

    def push(self, emission: Emission) -> None:
        """Hand over what a step gave."""
        self._ready.append(emission)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def take(self) -> list[Emission]:
        """Return all emissions since the last call, waiting for the first."""
        if not self._ready:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        ready, self._ready = self._ready, []
        return ready


class LiveRank:
    """One scheduler driven by the event loop's clock."""

    def __init__(
        self, scheduler: Scheduler, *, time_scale: float, fail: Failure | None, crash: Callable[[str], None]
    ) -> None:
        self.scheduler = scheduler
        self.slipped_seconds = 0.0
        """Total time the schedule was moved because the process fell behind."""
        self._time_scale = time_scale
        self._next_warning = 0.5
        self._fail = fail
        self._crash = crash
        self._streams: dict[Request, Stream] = {}
        self._wake = asyncio.Event()

    def submit(self, request: Request) -> Stream:
        """Queue a request and return its stream."""
        stream = self._streams[request] = Stream(request)
        self.scheduler.submit(request)
        self._wake.set()
        return stream

    def close(self, stream: Stream) -> None:
        """End a stream: nothing to do after its last token, an abort before it."""
        self._streams.pop(stream.request, None)
        self.scheduler.abort(stream.request)

    async def run(self) -> None:
        """Step for ever."""
        try:
            await self._run()
        except Exception:  # noqa: BLE001 - whatever it is, an engine without its step loop must not live on
            self._crash(traceback.format_exc())

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        start = loop.time()
        while True:
            if not self.scheduler.busy:
                self._wake.clear()
                await self._wake.wait()
                start = loop.time()
            step = self.scheduler.begin(start)
            if step is None:
                await asyncio.sleep(MIN_SLEEP_SECONDS)
                start = loop.time()
                continue
            end = start + step.seconds * self._time_scale
            rest = end - loop.time()
            # At least one turn of the event loop: responses are written and requests read between steps.
            await asyncio.sleep(rest if rest > MIN_SLEEP_SECONDS else 0)
            debt = loop.time() - end
            if debt > MAX_DEBT_SECONDS:
                self._slip(debt)
                end += debt
            for emission in self.scheduler.finish(step, end):
                stream = self._streams.get(emission.request)
                if stream is not None:
                    stream.push(emission)
            if self._fail and strike_in_mid_stream(self._fail, self.scheduler.stats.generation):
                await asyncio.Event().wait()
            start = end

    def _slip(self, seconds: float) -> None:
        self.slipped_seconds += seconds
        if self.slipped_seconds >= self._next_warning:
            self._next_warning = 2 * self.slipped_seconds
            log.warning(
                "this process is too slow for the hardware it emulates: %.2f s lost so far; its figures are "
                "this CPU's. Raise time_scale or lower the concurrency",
                self.slipped_seconds,
            )
