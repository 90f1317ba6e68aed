"""A comparison in sentences: what it shows, and what has to be said with it."""

from collections import Counter
from collections.abc import Sequence

from analysis.axis import AXES, Axis
from analysis.banners import banner
from analysis.compare.advice import CHANGES, SAME
from analysis.compare.differences import FACTORS, RESOLVED, Difference
from analysis.compare.estimates import BETTER, WORSE
from analysis.compare.identity import ArmIdentity, Matching
from analysis.compare.ratios import WORDS, RatioChange
from analysis.compare.side import Side
from analysis.objectives import OBJECTIVES
from analysis.section import Section
from jobs.nouns import counted

NAMED = 4
"""So many arms or levels are named in a sentence."""


def findings(changes: Sequence[RatioChange], served: Section, objective: str) -> tuple[str, ...]:
    """Return what a comparison shows, the sum of it first."""
    counts = Counter(found.word for found in changes)
    told = ", ".join(f"{counts[word]} {word}" for word in WORDS if counts[word])
    found = [f"ratio of {OBJECTIVES[objective].title} to the baseline, B against A, by arm and level: {told}"]
    for word in (BETTER, WORSE):
        own = [change for change in changes if change.word == word]
        found += [change_words(change) for change in own[:NAMED]]
        if len(own) > NAMED:
            found.append(f"{len(own) - NAMED} more are {word}, see the table")
    frame = served.frame
    if all(change.a.synthetic or change.a.counterfactual for change in changes):
        found.append("no drafter here could be served with, so there is no recommendation to compare")
        return tuple(found)
    if frame.empty:
        found.append(served.missing)
        return tuple(found)
    moved = frame[frame["change"].eq(CHANGES)].to_dict("records")
    axis = AXES[changes[0].a.axis]
    for row in moved[:NAMED]:
        found.append(
            f"at {axis.at(row['level'])} the recommendation changes from {row['serve_a']} to {row['serve_b']}"
        )
    if len(moved) > NAMED:
        found.append(f"it changes at {counted(len(moved) - NAMED, 'more level')}, see the table")
    same = sorted(set(frame.loc[frame["change"].eq(SAME), "level"]))
    found.append(_same_words(same, axis, moved=bool(moved)))
    return tuple(words for words in found if words)


def _same_words(levels: Sequence[float], axis: Axis, *, moved: bool) -> str:
    """Return where both sweeps recommend the same; empty where there is only the change, told before it."""
    if not levels:
        return "" if moved else "at no level do both sweeps have a recommendation"
    told = [axis.at(level) for level in levels]
    where = ", ".join(told) if len(told) <= NAMED else f"{len(told)} levels from {told[0]} to {told[-1]}"
    return f"the recommendation is the same at {where}" + (
        "" if moved else ": at every level where both sweeps have one"
    )


def change_words(found: RatioChange) -> str:
    """Return a change that was decided, in a clause with its figures."""
    judged = found.judged
    assert judged is not None, "a change without a ratio has no such word"
    ratio = judged.ratio
    ratios = [ratio.value for ratio in found.ratios if ratio is not None]
    interval = "" if ratio.lo is None or ratio.hi is None else f" [{ratio.lo - 1:+.1%}, {ratio.hi - 1:+.1%}]"
    forced = " (forced acceptance)" if found.a.synthetic or found.b.synthetic else ""
    return (
        f"{found.pair.label}{forced} at {found.a.at} is {found.word}: {ratios[0]:.3f} in A, "
        f"{ratios[1]:.3f} in B, {ratio.value - 1.0:+.1%}{interval}"
    )


def caveats(
    changes: Sequence[RatioChange], differences: Sequence[Difference], matching: Matching, a: Side, b: Side
) -> tuple[str, ...]:
    """Return what has to be said with a comparison, what could mislead most first."""
    found = []
    kinds = [kind for kind in FACTORS if any(item.kind == kind for item in differences)]
    resolved = sum(item.kind == RESOLVED for item in differences)
    if len(kinds) > 1:
        every = "both" if len(kinds) == 2 else "all"
        found.append(
            f"{', '.join(kinds[:-1])} and {kinds[-1]} {every} differ: the change cannot be laid to "
            "one of them"
        )
    if not kinds and resolved:
        found.append(
            f"nothing that was asked for differs, and yet the engines resolved {counted(resolved, 'key')} "
            "differently: "
            "what lies behind them was written down nowhere"
        )
    elif not kinds:
        found.append("nothing differs that either sweep keeps a record of, but the day")
    if a.sweep.threshold != b.sweep.threshold:
        found.append(
            f"practical thresholds are {a.sweep.threshold:.1%} in A and {b.sweep.threshold:.1%} in B: the "
            "larger one was used"
        )
    found += [
        f"{side.letter} has one block: its noise is unknown, so no change is decided; more blocks "
        "(`design.blocks`) tell it"
        for side in (a, b)
        if all((row.a if side is a else row.b).blocks <= 1 for row in changes)
    ]
    for letter, arms in matching.only.items():
        if arms:
            named = "; ".join(_only_words(*entry) for entry in arms[:NAMED])
            more = f"; and {len(arms) - NAMED} more" if len(arms) > NAMED else ""
            found.append(f"only in {letter}: {named}{more}")
    for side, other in ((a, b), (b, a)):
        levels = sorted({level for _, level in side.rows} - {level for _, level in other.rows})
        if levels:
            axis = AXES[next(iter(side.rows.values())).axis]
            found.append(f"levels only in {side.letter}: {', '.join(axis.at(level) for level in levels)}")
    words = {
        banner("emulated"): [c.a.emulated or c.b.emulated for c in changes],
        f"{banner('synthetic')}; a change of theirs is one of step cost": [
            c.a.synthetic or c.b.synthetic for c in changes
        ],
        banner("oversubscribed"): [c.a.oversubscribed for c in changes],
    }
    return (*found, *(sentence for sentence, where in words.items() if any(where)))


def _only_words(arm: ArmIdentity, why: str) -> str:
    return arm.label if why == "not in the other" else f"{arm.label} ({why})"
