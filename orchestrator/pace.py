"""How long runs take: mean times of engine starts and cells so far, by arm and load level."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from jobs.result import INVALID, MEASURED, CellResult
from orchestrator.pending import Segment
from orchestrator.plan import Run


@dataclass(slots=True)
class _Mean:
    sum: float = 0.0
    count: int = 0

    def add(self, value: float) -> None:
        self.sum += value
        self.count += 1

    @property
    def value(self) -> float | None:
        return self.sum / self.count if self.count else None


class Pace:
    """Learns from results one by one, and expects what is alike to take as long.

    What was never timed counts with the closest thing that was: a cell of the same arm at another level, else
    any cell; any engine's start.
    """

    def __init__(self, results: Iterable[CellResult] = (), *, stateful: Collection[str] = ()) -> None:
        """Learn from `results`; `stateful` are the digests of arms whose every cell has a fresh engine."""
        self._stateful = frozenset(stateful)
        self._starts: dict[str, _Mean] = {}
        self._cells: dict[tuple[str, str], _Mean] = {}
        self._arms: dict[str, _Mean] = {}
        self._any_start = _Mean()
        self._any_cell = _Mean()
        for result in results:
            self.learn(result)

    def learn(self, result: CellResult) -> None:
        """Take the times of `result`; a cell that failed says nothing about how long one takes."""
        if result.outcome not in (MEASURED, INVALID):
            return
        key = (result.arm, result.load)
        for mean in (
            self._cells.setdefault(key, _Mean()),
            self._arms.setdefault(result.arm, _Mean()),
            self._any_cell,
        ):
            mean.add(result.seconds)
        if result.start_seconds is not None:
            self._starts.setdefault(result.arm, _Mean()).add(result.start_seconds)
            self._any_start.add(result.start_seconds)

    def start_seconds(self, arm: str) -> float | None:
        """Return the expected seconds of an engine start of the arm with digest `arm`; None if unknown."""
        own = self._starts.get(arm)
        return self._any_start.value if own is None else own.value

    def cell_seconds(self, arm: str, load: str) -> float | None:
        """Return the expected seconds of a cell, its warm-up included; None if no cell was timed."""
        for known in (self._cells.get((arm, load)), self._arms.get(arm)):
            if known is not None:
                return known.value
        return self._any_cell.value

    def timed(self, arm: str, load: str) -> bool:
        """Return whether a cell of this arm at this level was timed itself."""
        return (arm, load) in self._cells

    def run_seconds(self, run: Run) -> float | None:
        """Return the expected seconds of a run's engine starts and cells; None until both were timed once."""
        start = self.start_seconds(run.arm)
        starts = len(run.levels) if run.arm in self._stateful else 1
        return _sum(
            [
                None if start is None else start * starts,
                *(self.cell_seconds(run.arm, level.label) for level in run.levels),
            ]
        )

    def seconds(self, segment: Segment) -> float | None:
        """Return the expected seconds of a whole segment; None until a start and a cell were timed."""
        return _sum([self.run_seconds(run) for run in segment.runs])


def _sum(parts: Sequence[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None
