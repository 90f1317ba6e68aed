"""What a sweep may cost in device time: asked before a block starts, told when one has ended."""

from collections.abc import Iterable, Sequence

from jobs.nouns import counted
from jobs.result import CellResult
from orchestrator.estimate import device_time
from orchestrator.pace import Pace
from orchestrator.pending import Segment

_HOUR = 3600.0
_Key = tuple[int, int]


class Budget:
    """Device time that is spent, bound by running blocks, and left.

    A block starts only where the time it is expected to take is left beside what running blocks are expected
    to take. Until a start and a cell were timed nothing can be expected: then one block runs alone.
    """

    def __init__(
        self, device_hours: float | None, *, pace: Pace | None = None, results: Iterable[CellResult] = ()
    ) -> None:
        """Open the books.

        Args:
            device_hours: what the sweep may spend in all; None for no limit.
            pace: how long starts and cells take; it learns on from `observe`.
            results: cells of earlier runs of the sweep: their time is spent.
        """
        self._limit = None if device_hours is None else device_hours * _HOUR
        self._pace = Pace() if pace is None else pace
        self._running: dict[_Key, Segment] = {}
        self._left_out: dict[_Key, Segment] = {}
        self.spent = 0.0
        """Device-seconds spent."""
        for result in results:
            self.spent += result.devices * (result.seconds + (result.start_seconds or 0.0))

    @property
    def left_out(self) -> Sequence[Segment]:
        """Segments that did not start because too little was left."""
        return tuple(self._left_out.values())

    def admit(self, segment: Segment) -> bool | None:
        """Return whether `segment` may start: yes, no, or None: not while these blocks run, so ask again."""
        if self._limit is None:
            return True
        left = self._limit - self.spent
        expected = self.expected(segment)
        if left <= 0.0 or (expected is not None and expected > left):
            self._left_out[_key(segment)] = segment
            return False
        if self._running and not self._fits(expected, left):
            return None
        self._left_out.pop(_key(segment), None)
        self._running[_key(segment)] = segment
        return True

    def observe(self, result: CellResult) -> None:
        """Learn from a cell how long cells take."""
        self._pace.learn(result)

    def charge(self, segment: Segment, seconds: float) -> None:
        """Take what a block cost: `seconds` on its whole slice."""
        self._running.pop(_key(segment), None)
        self.spent += segment.block.devices * seconds

    def expected(self, segment: Segment) -> float | None:
        """Return the device-seconds that `segment` is expected to take; None while nothing was timed."""
        seconds = self._pace.seconds(segment)
        return None if seconds is None else seconds * segment.block.devices

    def _fits(self, expected: float | None, left: float) -> bool:
        """Return whether `expected` is left beside what the running blocks are expected to take in all."""
        if expected is None:
            return False
        reserved = [self.expected(segment) for segment in self._running.values()]
        known = [value for value in reserved if value is not None]
        return len(known) == len(reserved) and expected + sum(known) <= left


def budget_words(budget: Budget, *, device_hours: float, unit: str) -> str:
    """Return what a sweep that stopped at its budget left out, and how it goes on."""
    out = budget.left_out
    blocks = counted(len(out), "block")
    cells = sum(segment.cells for segment in out)
    return (
        f"design.budget={device_hours:g}: {device_time(budget.spent, unit)} are spent, and {blocks} "
        f"with {counted(cells, 'cell')} did not start: more would be needed than is left. What did not "
        "start stays pending. The same words with a larger design.budget go on there"
    )


def _key(segment: Segment) -> _Key:
    return segment.block.index, segment.index
