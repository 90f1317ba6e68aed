"""The change of each arm's ratio to its baseline, judged by the rule of the verdicts."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.arms import FLAGS, flag_notes
from analysis.compare.estimates import BETTER, WORSE, Estimate, Judgement, change, judge, of_contrast
from analysis.compare.identity import Matched
from analysis.compare.side import Place, Side
from analysis.fit import LevelFit, mean_correlation
from analysis.objectives import OBJECTIVES
from analysis.rows import Ratio, VerdictRow, ratio_columns
from analysis.section import Section
from analysis.verdict import INVALID, NO_DIFFERENCE, NO_VERDICT, UNDECIDED

WORDS = (BETTER, WORSE, NO_DIFFERENCE, UNDECIDED, INVALID, NO_VERDICT)


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioChange:
    """One arm at one level in both sweeps."""

    pair: Matched
    a: VerdictRow
    b: VerdictRow
    ratios: tuple[Ratio | None, Ratio | None]
    """To the baseline, in A and in B, each with the simultaneous interval of its own sweep."""
    judged: Judgement | None
    """None without a ratio on both sides."""
    word: str
    """One of `WORDS`."""
    reason: str

    @property
    def level(self) -> float:
        """Load level, on the axis of both sweeps."""
        return self.a.level


def common_places(pair: Matched, a: Side, b: Side) -> list[tuple[VerdictRow, VerdictRow]]:
    """Return an arm's rows at the levels that both sweeps have under the same condition, ascending."""
    found = []
    for (arm, level), row in a.rows.items():
        other = b.rows.get((pair.b.arm, level)) if arm == pair.a.arm else None
        if other is not None and other.oversubscribed == row.oversubscribed:
            found.append((row, other))
    return sorted(found, key=lambda rows: rows[0].level)


def spread_of(a: Side, b: Side, place: Place, objective: str) -> float | None:
    """Return the larger A/A spread of the two sweeps at a level, as a log ratio; None where none is known."""
    known = [
        spread
        for side in (a, b)
        if place in side.levels and (spread := side.levels[place].spread[objective]) is not None
    ]
    return max(known, default=None)


def ratio_changes(
    pairs: Sequence[Matched], a: Side, b: Side, *, objective: str, threshold: float
) -> list[RatioChange]:
    """Return the changes by arm and level.

    Arms of one baseline at one level are judged at once: the interval of a change is simultaneous over them,
    as those of a sweep's own verdicts are.

    Args:
        pairs: arms with a baseline, in both sweeps.
        a: one sweep.
        b: the other.
        objective: what is judged.
        threshold: practical threshold, as a share.
    """
    rows = [(pair, mine, theirs) for pair in pairs for mine, theirs in common_places(pair, a, b)]
    estimates = [_estimates(pair, mine, a, b, objective) for pair, mine, _ in rows]
    families: dict[tuple[str, str, Place], list[Matched]] = {}
    for (pair, mine, theirs), known in zip(rows, estimates, strict=True):
        if known is not None and not mine.counterfactual:
            place = (mine.level, mine.oversubscribed)
            families.setdefault((mine.pair, theirs.pair, place), []).append(pair)
    found = []
    for (pair, mine, theirs), known in zip(rows, estimates, strict=True):
        place = (mine.level, mine.oversubscribed)
        judged = None
        if known is not None:
            family = families.get((mine.pair, theirs.pair, place), [])
            judged = judge(
                change(*known),
                family=max(1, len(family)),
                correlation=_correlation(family, place, a, b, objective),
                practical=threshold,
                spread=spread_of(a, b, place, objective),
                higher_is_better=OBJECTIVES[objective].higher_is_better,
            )
        word, reason = _word(mine, theirs, judged)
        found.append(
            RatioChange(
                pair=pair,
                a=mine,
                b=theirs,
                ratios=(mine.ratio(objective), theirs.ratio(objective)),
                judged=judged,
                word=word,
                reason=reason,
            )
        )
    return found


def _estimates(
    pair: Matched, row: VerdictRow, a: Side, b: Side, objective: str
) -> tuple[Estimate, Estimate] | None:
    place = (row.level, row.oversubscribed)
    found = []
    for side, arm in ((a, pair.a.arm), (b, pair.b.arm)):
        fit = side.levels[place].fits[objective] if place in side.levels else LevelFit()
        if arm not in fit.contrasts:
            return None
        found.append(of_contrast(fit.contrasts[arm], fit))
    return found[0], found[1]


def _correlation(family: Sequence[Matched], place: Place, a: Side, b: Side, objective: str) -> float:
    """Return the mean correlation of the changes of a family, from both sweeps' covariances."""
    if len(family) < 2:
        return 0.0
    total = np.zeros((len(family), len(family)))
    for side, digests in ((a, [pair.a.arm for pair in family]), (b, [pair.b.arm for pair in family])):
        fit = side.levels[place].fits[objective]
        own = fit.families[side.rows[digests[0], place[0]].pair]
        if fit.variance is None:
            return 0.0
        places = [own.arms.index(arm) for arm in digests]
        total += own.shares[np.ix_(places, places)] * fit.variance
    return mean_correlation(total) if bool(np.all(np.diag(total) > 0.0)) else 0.0


def _word(a: VerdictRow, b: VerdictRow, judged: Judgement | None) -> tuple[str, str]:
    if judged is None:
        lost = [(letter, row) for letter, row in (("A", a), ("B", b)) if row.verdict == INVALID]
        told = "; ".join(f"{letter}: {row.reason}" for letter, row in lost)
        return INVALID, told or "no ratio in one of the sweeps"
    if a.oversubscribed:
        return NO_VERDICT, "client and engine shared a core in both sweeps: measured, never judged"
    if a.counterfactual:
        return NO_VERDICT, "a counterfactual shows a cause: nobody would serve with it"
    return judged.word, judged.reason


def ratios_section(changes: Sequence[RatioChange], *, objective: str, notes: Sequence[str] = ()) -> Section:
    """Return the changes as a table."""
    frame = pd.DataFrame([dict(_cells(found)) for found in changes])
    return Section(
        name="ratios",
        title=f"Ratio of {OBJECTIVES[objective].title} to the baseline, and how it changed",
        frame=frame,
        columns=COLUMNS if changes else {},
        shown=SHOWN if changes else (),
        notes=(UNPAIRED, *notes, *flag_notes(frame)) if changes else (),
        missing="" if changes else "no arm with a drafter is in both sweeps at a common level",
    )


def _cells(found: RatioChange) -> Iterator[tuple[str, object]]:
    judged = found.judged
    yield from {
        "arm": found.pair.label,
        "digest_a": found.pair.a.arm,
        "digest_b": found.pair.b.arm,
        "layout": found.a.layout,
        "k": found.a.k,
        "level": found.level,
    }.items()
    figures = {"a": found.ratios[0], "b": found.ratios[1], "change": judged.ratio if judged else None}
    for name, ratio in figures.items():
        yield from ratio_columns(name, ratio).items()
    yield from {
        "verdict": found.word,
        "reason": found.reason,
        "more_blocks": judged.more_blocks if judged and found.word == UNDECIDED else None,
        "threshold": judged.threshold if judged else math.nan,
        "blocks_a": found.a.blocks,
        "blocks_b": found.b.blocks,
        "verdict_a": found.a.verdict,
        "verdict_b": found.b.verdict,
        "counterfactual": found.a.counterfactual,
        "synthetic": found.a.synthetic or found.b.synthetic,
        "emulated": found.a.emulated or found.b.emulated,
        "oversubscribed": found.a.oversubscribed,
    }.items()


UNPAIRED = (
    "a and b are paired within their sweep; their change is not paired between the sweeps: its interval has "
    "both sweeps' noise in it, with degrees of freedom by Welch and Satterthwaite. It holds for the arms of "
    "one level at once and not for all levels: of many, a few lie outside by chance"
)
COLUMNS = {
    "arm": "name of the arm in A",
    "digest_a": "digest of the arm in A",
    "digest_b": "digest of the same arm in B",
    "layout": "layout label",
    "k": "draft length K, tokens",
    "level": "load level on the axis of both sweeps",
    "a": "ratio to the baseline in A, with the simultaneous 95 % interval of its verdict there",
    "b": "the same in B",
    "change": "b over a, with the 95 % interval that is simultaneous over the arms of the baseline",
    "verdict": f"`{BETTER}` or `{WORSE}`: the interval of the change lies beyond the threshold; "
    f"`{NO_DIFFERENCE}`: within it; `{UNDECIDED}`: across a limit; `{INVALID}`: no ratio in one sweep; "
    f"`{NO_VERDICT}`: shared cores, counterfactual arms",
    "reason": "why, in words",
    "more_blocks": "of an undecided change: further blocks in each sweep that would decide it",
    "threshold": "t of the change, as a share: the largest of both sweeps' practical thresholds and A/A "
    "spreads",
    "blocks_a": "pairs behind a",
    "blocks_b": "pairs behind b",
    "verdict_a": "verdict on the arm against its baseline in A",
    "verdict_b": "the same in B",
    "counterfactual": "of an engine nobody would serve with; empty of others",
    **FLAGS,
}
SHOWN = ("arm", "level", "a", "verdict_a", "b", "verdict_b", "change", "verdict", "more_blocks")
