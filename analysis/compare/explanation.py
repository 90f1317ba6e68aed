"""What explains a change: acceptance on one side, the cost of a step on the other.

user speed over the baseline's = tokens a step / step ratio,   so the changes of the two make its change
"""

from collections.abc import Iterator, Sequence

import pandas as pd

from analysis.arms import FLAGS, arm_facts, flag_notes
from analysis.compare.estimates import Estimate, change, of_contrasts
from analysis.compare.identity import Matched
from analysis.compare.ratios import RatioChange
from analysis.compare.side import Side
from analysis.ksweep import POINTWISE
from analysis.rows import Ratio, ratio_columns
from analysis.section import Section
from analysis.stepcost import step_cost

PARTS = ("mal", "tokens", "step", "user_speed", "clock")
"""Names in `Side.parts`."""
_SAID = {
    "tokens": ("more tokens a step", "fewer tokens a step"),
    "step": ("a dearer step", "a cheaper step"),
}
UNSURE, UNKNOWN = "neither is sure to have moved", "not known"
FITS = ("alpha", "t0_ms", "c", "s")


def explanation(changes: Sequence[RatioChange], a: Side, b: Side) -> Section:
    """Return one row an arm and level: acceptance, step cost and user speed in both, and what moved."""
    rows = [dict(_row(found, a, b)) for found in changes if not found.a.counterfactual]
    frame = pd.DataFrame(rows)
    return Section(
        name="explanation",
        title="What moved: acceptance, or the cost of a step",
        frame=frame,
        columns=COLUMNS if rows else {},
        shown=SHOWN if rows else (),
        notes=(POINTWISE, *flag_notes(frame)) if rows else (),
        missing="" if rows else "no arm with a drafter is in both sweeps at a common level",
    )


def _row(found: RatioChange, a: Side, b: Side) -> Iterator[tuple[str, object]]:
    place = (found.level, found.a.oversubscribed)
    yield "arm", found.pair.label
    yield "level", found.level
    moved: list[str] = []
    judged = 0
    for name in PARTS:
        known = [
            of_contrasts(side.parts[place][name], arm.arm) if place in side.parts else None
            for side, arm in ((a, found.pair.a), (b, found.pair.b))
        ]
        mine, theirs = known
        step = change(mine, theirs).ratio() if mine and theirs else None
        for suffix, ratio in (("a", _ratio(mine)), ("b", _ratio(theirs)), ("change", step)):
            yield from ratio_columns(f"{name}_{suffix}", ratio).items()
        if name in _SAID and step is not None:
            judged += 1
            if _is_sure(step):
                up, down = _SAID[name]
                moved.append(f"{up if step.value > 1.0 else down} ({step.value - 1.0:+.1%})")
    yield "moved", ", ".join(moved) or (UNSURE if judged == len(_SAID) else UNKNOWN)
    yield "synthetic", found.a.synthetic or found.b.synthetic
    yield "emulated", found.a.emulated or found.b.emulated
    yield "oversubscribed", found.a.oversubscribed


def _ratio(estimate: Estimate | None) -> Ratio | None:
    return None if estimate is None else estimate.ratio()


def _is_sure(ratio: Ratio) -> bool:
    """Whether an interval lies on one side of 1."""
    return ratio.lo is not None and ratio.hi is not None and not ratio.lo <= 1.0 <= ratio.hi


def fits(pairs: Sequence[Matched], a: Side, b: Side) -> Section:
    """Return one row a drafter and level: the curves over K of both sweeps side by side."""
    frames = {side.letter: side.sweep.once(step_cost).frame for side in (a, b)}
    rows: list[dict[str, object]] = []
    if not any(frame.empty for frame in frames.values()):
        names = _families(pairs, a, b)
        for row in frames["A"].to_dict("records"):
            theirs = frames["B"]
            same = theirs[
                theirs["drafter"].eq(names.get(str(row["drafter"]), ""))
                & theirs["level"].eq(row["level"])
                & theirs["oversubscribed"].eq(row["oversubscribed"])
            ]
            if len(same) == 1:
                rows.append(_fit_row({str(key): value for key, value in row.items()}, same.iloc[0]))
    frame = pd.DataFrame(rows)
    return Section(
        name="fits",
        title="Acceptance and step cost over K in both: alpha, and T = t0 [1 + c + s K]",
        frame=frame,
        columns=FIT_COLUMNS if rows else {},
        shown=tuple(name for name in FIT_COLUMNS if name not in FLAGS) if rows else (),
        notes=(APART, *flag_notes(frame)) if rows else (),
        missing="" if rows else "no drafter's step time is known in both sweeps at a common level",
    )


def _families(pairs: Sequence[Matched], a: Side, b: Side) -> dict[str, str]:
    """Return name of a drafter over its K in A -> its name in B."""
    known = [arm_facts(side.sweep.cells, side.sweep.plan) for side in (a, b)]
    return {
        known[0][pair.a.arm].family: known[1][pair.b.arm].family
        for pair in pairs
        if known[0][pair.a.arm].family and known[1][pair.b.arm].family
    }


def _fit_row(mine: dict[str, object], theirs: pd.Series) -> dict[str, object]:
    row: dict[str, object] = {"drafter": mine["drafter"], "level": mine["level"]}
    apart = []
    for name in FITS:
        for suffix, source in (("a", mine), ("b", theirs)):
            for end in ("", "_lo", "_hi"):
                if f"{name}{end}" in source:
                    row[f"{name}_{suffix}{end}"] = source[f"{name}{end}"]
        low, high = f"{name}_lo", f"{name}_hi"
        if low in mine and (_above(mine[low], theirs[high]) or _above(theirs[low], mine[high])):
            apart.append(name)
    row["apart"] = ", ".join(apart)
    for name in FLAGS:
        row[name] = bool(mine[name] or theirs[name])
    return row


def _above(low: object, high: object) -> bool:
    return isinstance(low, float) and isinstance(high, float) and low > high


APART = (
    "`apart` names the figures whose two intervals do not overlap: a cautious sign of a change. t0 has no "
    "interval, and carries what drifted between the sweeps"
)
COLUMNS = {
    "arm": "name of the arm in A",
    "level": "load level on the axis of both sweeps",
    **{
        f"{name}_{suffix}": f"{words} {where}"
        for name, words in {
            "mal": "mean acceptance length, tokens a verification step, geometric mean over blocks,",
            "tokens": "tokens a decode step over the baseline's",
            "step": "T(K)/t0 by the engine's counters",
            "user_speed": "user speed over the baseline's",
            "clock": "T(K)/t0 by the users' clock",
        }.items()
        for suffix, where in (("a", "in A"), ("b", "in B"), ("change", "in B over A, with its 95 % interval"))
    },
    "moved": "which of tokens a step and step cost surely changed, and by how much",
    **FLAGS,
}
SHOWN = (
    "arm", "level", "mal_a", "mal_b", "step_a", "step_b", "tokens_change", "step_change", "user_speed_change",
    "moved",
)  # fmt: skip
FIT_COLUMNS = {
    "drafter": "name of the drafter over its K, in A",
    "level": "load level on the axis of both sweeps",
    **{
        f"{name}_{suffix}": f"{words} in {suffix.upper()}"
        for name, words in {
            "alpha": "conditional acceptance rate that fits the lengths of all K best,",
            "t0_ms": "plain decode step, ms,",
            "c": "cost of speculation at any K, in plain steps,",
            "s": "cost of one more draft token, in plain steps,",
        }.items()
        for suffix in ("a", "b")
    },
    "apart": "figures whose two intervals do not overlap",
    **FLAGS,
}
