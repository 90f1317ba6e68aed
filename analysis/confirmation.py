"""The winner, and whether it wins again in fresh blocks.

Whoever was picked as the best of many was partly lucky: its ratio in the blocks that picked it is too high on
average. So what decides are the blocks measured afterwards, judged by themselves. It is measured again where
it gains most and, of the loads that it would serve, where it gains least: a configuration is deployed over a
range, and the least is what it promises there.
"""

import math
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.choices import LoadRange
from analysis.rows import Ratio, VerdictRow
from analysis.verdict import WINS
from jobs.nouns import counted

FRESH = 4
"""Further fresh blocks that are asked for."""


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


def weakest(found: VerdictRow, ranges: Iterable[LoadRange]) -> float:
    """Return the level of the winner's range at which its gain is surely the smallest.

    That is the lowest lower limit of the verdicts' interval; of equals the higher level. Its own level where
    the winner is not what is recommended there (another is ahead of it by estimate).

    Args:
        found: the winner.
        ranges: what is recommended, by the blocks that picked the winner.
    """
    own = next(
        (
            part.choices
            for part in ranges
            if part.candidate is not None
            and part.candidate.arm == found.arm
            and any(choice.level == found.level for choice in part.choices)
        ),
        (),
    )
    known = [
        (choice.over_baseline.lo, -choice.level)
        for choice in own
        if choice.over_baseline is not None and choice.over_baseline.lo is not None
    ]
    return -min(known)[1] if known else found.level


def confirm_words(directory: Path, found: Sequence[Confirmation]) -> str:
    """Return the command that measures what is provisional in fresh blocks, four more than there were."""
    blocks = FRESH + max((entry.blocks for entry in found), default=0)
    return f"specload sweep --from {shlex.quote(f'{directory}/plan.json')} --confirm {blocks}"


def confirmations(rows: Sequence[VerdictRow], *, objective: str) -> tuple[Confirmation, ...]:
    """Return what the fresh blocks say; `rows` rest on their cells alone."""
    return tuple(_confirmation(row, row.ratio(objective)) for row in rows)


def _confirmation(row: VerdictRow, ratio: Ratio | None) -> Confirmation:
    again = row.verdict == WINS
    figure = "no ratio" if ratio is None else _figure(ratio)
    blocks = counted(row.blocks, "fresh block")
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
