"""Acceptance that was known before the sweep, against what the engine counted: one row an arm.

It is known where it was asked for (synthetic acceptance), and where it was built in (checkpoints whose table
of wrong tokens is known). Chance decides the first, so its difference is judged in standard errors; the
second is decided by where on its cycle an answer starts, so its difference is judged as a share.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.frame import arm_labels
from jobs.result import INVALID, MEASURED, CellResult

ASKED = "asked for"
BUILT = "built in"
AGREES = "agrees"
DIFFERS = "differs"
NOTHING_KNOWN = "nothing to compare with"
NO_DRAFTS = "no drafts"
STANDARD_ERRORS = 3.0
"""A requested length is met when the realised one is so many standard errors away at most."""
SHARE = 0.02
"""A built-in length is met when the realised one is so far away at most, as a share."""
ENOUGH_STEPS = 12_000
"""Steps from which a standard error is half a percent of the length at most: small beside what matters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceRow:
    """One arm, all its cells together: acceptance depends on neither level nor block."""

    arm: str
    """Digest."""
    label: str
    k: int
    source: str | None
    """Where the expected length comes from: `ASKED`, `BUILT`, or None where there is none."""
    expected: float | None
    """Expected mean acceptance length, in tokens a step."""
    realised: float | None
    """1 + accepted / steps over all cells; None without a draft."""
    steps: int
    """Verification steps with a draft."""
    error: float | None
    """Standard error of the realised length, from the spread of accepted drafts over the steps."""
    verdict: str
    """`AGREES`, `DIFFERS`, `NOTHING_KNOWN` or `NO_DRAFTS`."""
    cells: int

    @property
    def share(self) -> float | None:
        """Realised over expected length, less 1."""
        if self.realised is None or self.expected is None:
            return None
        return self.realised / self.expected - 1.0

    @property
    def errors(self) -> float | None:
        """Realised less expected length, in standard errors."""
        if self.realised is None or self.expected is None or not self.error:
            return None
        return (self.realised - self.expected) / self.error

    @property
    def few_steps(self) -> bool:
        """Whether chance still hides differences that matter."""
        return self.source == ASKED and self.steps < ENOUGH_STEPS


def acceptance_rows(results: Sequence[CellResult], built: Mapping[str, float]) -> tuple[AcceptanceRow, ...]:
    """Return a row for each arm with a drafter, by layout, drafter and label.

    Args:
        results: the cells of a sweep. Invalid ones count: a missed request is one reason to be invalid.
        built: digest of an arm -> mean acceptance length that its checkpoint was built to have.
    """
    labels = arm_labels(results)
    arms: dict[str, list[CellResult]] = defaultdict(list)
    for result in results:
        if result.k > 0 and result.outcome in (MEASURED, INVALID) and result.metrics:
            arms[result.arm].append(result)
    rows = [_row(arm, labels[arm], cells, built.get(arm)) for arm, cells in arms.items()]
    first = {arm: cells[0] for arm, cells in arms.items()}
    return tuple(
        sorted(rows, key=lambda row: (first[row.arm].layout, first[row.arm].drafter, row.k, row.label))
    )


def _row(arm: str, label: str, cells: Sequence[CellResult], built: float | None) -> AcceptanceRow:
    weights = {cell.cell: int(cell.metrics.get("spec/drafts") or 0) for cell in cells}
    steps = sum(weights.values())
    k = cells[0].k

    def pooled(name: str) -> float | None:
        values = [(cell.metrics.get(name), weights[cell.cell]) for cell in cells if weights[cell.cell]]
        if not values or any(value is None for value, _ in values):
            return None
        return sum((value or 0.0) * weight for value, weight in values) / steps

    requested = next(
        (value for cell in cells if (value := cell.metrics.get("spec/requested_mal")) is not None), None
    )
    expected = built if requested is None else requested
    source = None if expected is None else BUILT if requested is None else ASKED
    realised = pooled("spec/mal")
    error = _error([pooled(f"spec/acceptance_pos_{position}") for position in range(1, k + 1)], steps)
    return AcceptanceRow(
        arm=arm,
        label=label,
        k=k,
        source=source,
        expected=expected,
        realised=realised,
        steps=steps,
        error=error,
        verdict=_verdict(source, expected, realised, error),
        cells=len(cells),
    )


def _error(rates: Sequence[float | None], steps: int) -> float | None:
    """Return the standard error of 1 + X, X the accepted drafts of a step.

    P(X >= i) = rates[i], so E[X] is their sum and E[X^2] the sum of (2i - 1) rates[i].
    """
    known = [rate for rate in rates if rate is not None]
    if not steps or len(known) < len(rates):
        return None
    square = sum((2 * position - 1) * rate for position, rate in enumerate(known, start=1))
    return math.sqrt(max(0.0, square - sum(known) ** 2) / steps)


def _verdict(source: str | None, expected: float | None, realised: float | None, error: float | None) -> str:
    if realised is None:
        return NO_DRAFTS
    if expected is None:
        return NOTHING_KNOWN
    # Without a spread (all or nothing accepted, or positions not counted) only the share is left.
    limit = STANDARD_ERRORS * error if source == ASKED and error else SHARE * expected
    return AGREES if abs(realised - expected) <= limit else DIFFERS
