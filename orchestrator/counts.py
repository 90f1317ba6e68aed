"""How many cells of a sweep are done and left: counted here, whoever tells it and whenever.

What is left is what the same command would run if nothing ran any more, the baselines that a block which was
cut short measures anew among it. A running sweep knows better of the segments that run now (`Tally`); once it
has ended, however it ended, its last words, `specload status` and the run that goes on say the same number.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from jobs.nouns import counted
from jobs.result import FAILED, INFEASIBLE, INVALID, MEASURED, CellResult
from orchestrator.pending import Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Cells by their outcome, and those that have none."""

    measured: int = 0
    invalid: int = 0
    """A gate failed."""
    failed: int = 0
    """The engine did."""
    infeasible: int = 0
    """Refused before anything started."""
    causes: Mapping[str, int] = field(default_factory=dict)
    """Cause -> cells, of the invalid and the failed ones, the most frequent first."""
    left_in: Mapping[int, int] = field(default_factory=dict)
    """Block -> cells that are left in it."""

    @classmethod
    def of(cls, results: Iterable[CellResult], segments: Iterable[Segment] = ()) -> Self:
        """Count.

        Args:
            results: the last outcome of every cell.
            segments: what is left to run (`orchestrator.pending`).
        """
        known = list(results)
        outcomes = Counter(result.outcome for result in known)
        causes = Counter(result.cause or "unknown" for result in known if result.outcome in (INVALID, FAILED))
        return cls(
            measured=outcomes[MEASURED],
            invalid=outcomes[INVALID],
            failed=outcomes[FAILED],
            infeasible=outcomes[INFEASIBLE],
            causes=dict(causes.most_common()),
            left_in={segment.block.index: segment.cells for segment in segments},
        )

    @property
    def done(self) -> int:
        """Cells that have an outcome."""
        return self.measured + self.invalid + self.failed + self.infeasible

    @property
    def left(self) -> int:
        """Cells that have none, or are to be measured again."""
        return sum(self.left_in.values())

    @property
    def by_outcome(self) -> dict[str, int]:
        """Outcome -> cells."""
        return {name: getattr(self, name) for name in (MEASURED, INVALID, FAILED, INFEASIBLE)}

    @property
    def words(self) -> str:
        """`9 cells: 7 measured, 2 invalid`."""
        return f"{counted(self.done, 'cell')}: {self.outcomes}"

    @property
    def outcomes(self) -> str:
        """`7 measured, 2 invalid`."""
        told = [f"{cells} {word}" for word, cells in self.by_outcome.items() if cells or word == MEASURED]
        return ", ".join(told)


class RunningCounts:
    """The counts of a sweep while it runs: what is new in a block is counted there, and nowhere else.

    Each cell is told with what is left, of which a sweep may have thousands.

    Args:
        count: counts one block, all of it.
    """

    def __init__(self, count: Callable[[int], Counts]) -> None:
        self._count = count
        self._parts: dict[int, Counts] = {}
        self._outcomes: Counter[str] = Counter()
        self._causes: Counter[str] = Counter()
        self._left: dict[int, int] = {}

    def renew(self, block: int) -> None:
        """Count a block anew."""
        former, part = self._parts.get(block, Counts()), self._count(block)
        self._parts[block] = part
        self._outcomes.update(part.by_outcome)
        self._outcomes.subtract(former.by_outcome)
        self._causes.update(part.causes)
        self._causes.subtract(former.causes)
        self._left[block] = part.left

    def total(self) -> Counts:
        """Return the counts of all blocks."""
        return Counts(
            **self._outcomes,
            causes={cause: cells for cause, cells in self._causes.most_common() if cells},
            left_in={block: left for block, left in self._left.items() if left},
        )
