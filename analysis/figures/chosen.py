"""Which arms a figure shows where it cannot show all, and what it calls them: one order for all figures."""

import math
from collections import Counter
from collections.abc import Iterable

from analysis.figures.style import escape
from analysis.frame import Sweep
from analysis.objectives import CROSSOVERS
from analysis.recommendation import recommend
from analysis.rows import VerdictRow
from analysis.summary import Summary
from jobs.nouns import are, counted

MOST = 8
"""Lines that can be told apart in one plot."""


def chosen_arm(sweep: Sweep, summary: Summary) -> str | None:
    """Return the digest of the arm that figures tell of; None where no drafter was compared.

    It is the recommended one, of several the one of the widest range, else the best.
    """
    return next(iter(ranked_arms(sweep, summary)), None)


def ranked_arms(sweep: Sweep, summary: Summary) -> tuple[str, ...]:
    """Return the digests of all arms with a drafter and a ratio, the most relevant first.

    Recommended ones by the number of levels they are recommended at; then real acceptance before forced,
    cores of their own before shared ones, the best ratio at the arm's best level, and of equal ones the
    larger draft length. Counterfactual arms are none.
    """
    arms: dict[str, list[VerdictRow]] = {}
    for row in summary.rows:
        if not row.counterfactual and any(row.ratio(name) for name in CROSSOVERS):
            arms.setdefault(row.arm, []).append(row)
    if not arms:
        return ()
    recommended = Counter(
        choice.candidate.arm
        for found in recommend(sweep, objective=summary.objective).ranges
        for choice in found.choices
        if choice.candidate is not None
    )

    def order(arm: str) -> tuple[int, bool, bool, float, int, str]:
        own = arms[arm]
        best = max(_gain(row, summary.objective) for row in own)
        crowded = all(row.oversubscribed for row in own)
        return -recommended[arm], own[0].synthetic, crowded, -round(best, 9), -own[0].k, own[0].label

    return tuple(sorted(arms, key=order))


def short_names(arms: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Return a name for legends by digest, escaped: the label, without a layout that all have in common.

    Args:
        arms: digest, label and layout of each.
    """
    known = list(arms)
    alone = len({layout for _, _, layout in known}) == 1
    return {arm: escape(label.removeprefix(f"{layout}/") if alone else label) for arm, label, layout in known}


def left_out(count: int, noun: str = "arm") -> str:
    """Return what a figure says of arms that it does not show, with a space before it; nothing of none."""
    if count < 1:
        return ""
    return f" {counted(count, f'less relevant {noun}')} {are(count)} left out; the table has all."


def _gain(row: VerdictRow, objective: str) -> float:
    gain = row.gain(objective)
    return math.log(gain.value) if gain is not None and gain.value > 0.0 else -math.inf
