"""The winner, and whether it wins again in fresh blocks.

Whoever was picked as the best of many was partly lucky: its ratio in the blocks that picked it is too high on
average. So what decides are the blocks measured afterwards, judged by themselves.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.rows import Ratio, VerdictRow
from analysis.verdict import WINS


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """What the fresh blocks of one winner say."""

    arm: str
    """Digest of the arm."""
    label: str
    at: str
    """Load level, as text: `C=16`."""
    blocks: int
    """Pairs that it rests on."""
    verdict: str
    """Verdict on the fresh blocks alone, one of `analysis.verdict.VERDICTS`."""
    ratio: Ratio | None
    """Ratio of the objective in the fresh blocks alone."""
    text: str
    """One sentence for people."""

    @property
    def confirmed(self) -> bool:
        """Whether the arm won again."""
        return self.verdict == WINS


def winner(rows: Sequence[VerdictRow], *, objective: str) -> VerdictRow | None:
    """Return the row to measure again: of those that win, the one whose ratio is surely the largest.

    That is the one with the highest lower limit of the simultaneous interval of the objective's gain (the
    ratio; of a latency its inverse), so that a small but certain gain goes before a large but noisy one; of
    equals the higher level, then the label. Forced acceptance shows a ceiling that nobody can serve, and a
    counterfactual arm a cause: both are left out. None where no arm wins.
    """

    def key(row: VerdictRow) -> tuple[float, float, str]:
        gain = row.gain(objective)
        sure = -math.inf if gain is None or gain.lo is None else gain.lo
        return (-sure, -row.level, row.label)

    servable = (row for row in rows if not (row.synthetic or row.counterfactual))
    return min((row for row in servable if row.verdict == WINS), key=key, default=None)


def confirmations(rows: Sequence[VerdictRow], *, objective: str) -> tuple[Confirmation, ...]:
    """Return what the fresh blocks say; `rows` rest on their cells alone."""
    return tuple(_confirmation(row, row.ratio(objective)) for row in rows)


def _confirmation(row: VerdictRow, ratio: Ratio | None) -> Confirmation:
    again = row.verdict == WINS
    figure = "no ratio" if ratio is None else _figure(ratio)
    blocks = f"{row.blocks} fresh block{'' if row.blocks == 1 else 's'}"
    why = "" if again else f" ({row.verdict}: {row.reason})"
    return Confirmation(
        arm=row.arm,
        label=row.label,
        at=row.at,
        blocks=row.blocks,
        verdict=row.verdict,
        ratio=ratio,
        text=f"{row.label} {row.at} {'' if again else 'not '}confirmed: {figure} over {blocks}{why}",
    )


def _figure(ratio: Ratio) -> str:
    interval = "" if ratio.lo is None or ratio.hi is None else f" [{ratio.lo:.3f}, {ratio.hi:.3f}]"
    return f"ratio {ratio.value:.3f}{interval}"
