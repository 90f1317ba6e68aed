"""Ratios of pairs as they finish, for a person who watches: preliminary, and no verdict."""

import math

from analysis.objectives import OBJECTIVES
from jobs.result import CLOSING, MEASURED, OPENING, TREATMENT, CellResult
from orchestrator.status import PairSoFar

_Stratum = tuple[int, int, str, str]
"""Block, segment, pair key and load label: what a treatment shares with its baselines."""


class PairsSoFar:
    """Takes cells as they come, and tells of a pair once its closing baseline is there.

    As in the verdict a ratio's denominator is the geometric mean of the segment's two baselines, and only
    measured cells count; what the verdict judges beyond that (spread, threshold) is not looked at here.

    Args:
        objective: whose ratio is told: that of the plan, a name in `OBJECTIVES`.
    """

    def __init__(self, objective: str) -> None:
        self._objective = objective
        self._opening: dict[_Stratum, float] = {}
        self._open: dict[_Stratum, list[tuple[str, float]]] = {}
        """Treatments of a stratum that wait for the closing baseline, with the log of their figure."""
        self._sums: dict[tuple[bool, str, str], tuple[float, int]] = {}
        """(Not of a confirmation, arm, load label) -> sum of the log ratios, blocks: as they are judged."""

    def take(self, result: CellResult, label: str) -> list[PairSoFar]:
        """Take one result and return the pairs that it finishes.

        Args:
            result: a cell, whatever its outcome.
            label: label of its arm.
        """
        value = result.metrics.get(OBJECTIVES[self._objective].metric)
        if result.outcome != MEASURED or not value or value <= 0:
            return []
        stratum = (result.block, result.segment, str(result.identity.get("pair_key")), result.load)
        if result.role == OPENING:
            self._opening[stratum] = math.log(value)
        elif result.role == TREATMENT:
            self._open.setdefault(stratum, []).append((label, math.log(value)))
        elif result.role == CLOSING and stratum in self._opening:
            base = (self._opening.pop(stratum) + math.log(value)) / 2
            waiting = self._open.pop(stratum, [])
            return [self._pair(result, name, own - base) for name, own in waiting]
        return []

    def _pair(self, closing: CellResult, label: str, log_ratio: float) -> PairSoFar:
        key = (closing.counts, label, closing.load)
        total, blocks = self._sums.get(key, (0.0, 0))
        total, blocks = total + log_ratio, blocks + 1
        self._sums[key] = (total, blocks)
        return PairSoFar(
            arm=label,
            objective=self._objective,
            load=closing.load,
            block=closing.block,
            ratio=math.exp(log_ratio),
            blocks=blocks,
            mean=math.exp(total / blocks),
        )
