"""The two curves of the K sweep: acceptance by one alpha, and the step's cost T = t0 [1 + c + s K].

s is what one more draft token costs, verified and drafted, in plain steps of the same level; c what
speculation costs at any K. s is v + d, and the two are told apart only by a drafter that costs nothing
(`drafter=free`: its s is v) or by a profile's trace.
"""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.arms import FLAGS, REAL, flag_notes, flags
from analysis.contrasts import t_quantile
from analysis.curves import MISSES, Fit, best_length, slope_weights
from analysis.frame import Sweep
from analysis.ksweep import MISSING, POINTWISE, DrafterLevel, axis_of, drafter_levels
from analysis.positions import misfit_words
from analysis.profiles import StepProfile, step_profiles
from analysis.section import Section

Interval = tuple[float, float, float]
UNKNOWN: Interval = (math.nan, math.nan, math.nan)
BY_FREE, BY_PROFILE = "free drafter", "profile"
NOT_SPLIT = (
    "s is not split into v (verifying) and d (drafting): measure a drafter that costs nothing beside it "
    "(`specload sweep -m drafter=...,free drafter.k=...`), or take a trace (`specload profile ARM --from "
    "results/SWEEP --concurrency C`)"
)


def step_cost(sweep: Sweep) -> Section:
    """Return one row a drafter and level: alpha, c, s, how they fit, and v and d where something tells."""
    items = drafter_levels(sweep)
    profiles = step_profiles(sweep.directory)
    rows, notes = [], [POINTWISE]
    for item in items:
        alpha, steps = item.alpha(), item.steps()
        if steps is None:
            continue
        rows.append(_row(item, alpha, steps, _split(item, steps, items, profiles)))
        where = f"{item.family} at {axis_of(sweep).at(item.level)}"
        if alpha is not None and alpha.word == MISSES:
            notes.append(misfit_words(where, alpha))
        if steps.word == MISSES:
            k = max(steps.misfit, key=lambda key: abs(steps.misfit[key]))
            notes.append(
                f"{where}: a straight line in K does not fit the step time; it misses K={k} by "
                f"{steps.misfit[k]:+.1%}: read c and s as a summary, and take the step ratios measured"
            )
    frame = pd.DataFrame(rows)
    if rows and frame["c_assumed"].any():
        notes.append(
            "c is fixed at 0 where fewer than three draft lengths were measured: s then has it in it"
        )
    if rows and not frame["split"].ne("").any():
        notes.append(NOT_SPLIT)
    return Section(
        name="step_cost",
        title="Acceptance and step cost over K: alpha, and T = t0 [1 + c + s K]",
        frame=frame,
        columns=COLUMNS if rows else {},
        shown=SHOWN if rows else (),
        notes=(*notes, *flag_notes(frame)) if rows else (),
        missing="" if rows else MISSING,
    )


def _row(
    item: DrafterLevel, alpha: Fit | None, steps: Fit, split: tuple[str, Interval, Interval]
) -> dict[str, object]:
    plain = item.own["step/mean_ms"].groupby(item.own["arm"]).mean()
    ratios = {arm: item.fits["step"].ratio(arm)[0] for arm in item.step_arms.values()}
    source, v, d = split
    best = best_length(item.lengths, steps.value, steps.fixed)[0] if item.lengths else None
    return {
        "drafter": item.family,
        "layout": item.layout,
        "level": item.level,
        "lengths": ", ".join(str(k) for k in item.step_arms),
        "alpha": alpha.value if alpha else math.nan,
        "alpha_lo": alpha.low if alpha else math.nan,
        "alpha_hi": alpha.high if alpha else math.nan,
        "alpha_fit": alpha.word if alpha else "",
        "alpha_misfit": alpha.worst if alpha and alpha.spare else math.nan,
        "alpha_p": alpha.p if alpha else math.nan,
        "t0_ms": float(np.mean([plain[arm] / ratio for arm, ratio in ratios.items()])),
        "c": steps.fixed,
        "c_lo": steps.fixed_low,
        "c_hi": steps.fixed_high,
        "c_assumed": steps.fixed_is_zero,
        "s": steps.value,
        "s_lo": steps.low,
        "s_hi": steps.high,
        "step_fit": steps.word,
        "step_misfit": steps.worst if steps.spare else math.nan,
        "step_p": steps.p,
        **dict(zip(("v", "v_lo", "v_hi", "d", "d_lo", "d_hi"), (*v, *d), strict=True)),
        "split": source,
        "best_k": best,
        **flags(item.facts.values(), oversubscribed=item.oversubscribed),
    }


def _split(
    item: DrafterLevel, steps: Fit, items: Sequence[DrafterLevel], profiles: Sequence[StepProfile]
) -> tuple[str, Interval, Interval]:
    """Return what tells v and d apart, and the two."""
    if next(iter(item.facts.values())).free:
        return BY_FREE, (steps.value, steps.low, steps.high), (0.0, math.nan, math.nan)
    free = next((other for other in items if _is_free_beside(other, item)), None)
    if free is not None:
        return BY_FREE, *_by_free(item, free)
    mine = set(item.arms.values())
    traced = [found for found in profiles if found.arm in mine and found.concurrency == item.level]
    if traced:
        v = float(np.mean([found.verification for found in traced]))
        d = float(np.mean([found.drafting for found in traced]))
        return BY_PROFILE, (v, math.nan, math.nan), (d, math.nan, math.nan)
    return "", UNKNOWN, UNKNOWN


def _is_free_beside(other: DrafterLevel, item: DrafterLevel) -> bool:
    """Whether `other` is a free drafter of the same pair, level and draft lengths."""
    if (other.level, other.oversubscribed) != (item.level, item.oversubscribed):
        return False
    if not item.step_arms or not set(item.step_arms) <= set(other.step_arms):
        return False
    mine, theirs = next(iter(item.facts.values())), next(iter(other.facts.values()))
    return mine.kind == REAL and not mine.free and theirs.free and mine.pair == theirs.pair


def _by_free(item: DrafterLevel, free: DrafterLevel) -> tuple[Interval, Interval]:
    """Return v, the free drafter's s, and d, what the drafter's own is larger by, over the same K."""
    fit = item.fits["step"]
    ks = list(item.step_arms)
    mine = [item.step_arms[k] for k in ks]
    theirs = [free.step_arms[k] for k in ks]
    both = fit.of([*theirs, *mine])
    ratios = np.exp(both.means)
    size = len(ks)
    weights = np.zeros((2, 2 * size))
    for row, arms, part in ((0, theirs, slice(0, size)), (1, mine, slice(size, 2 * size))):
        own = fit.of(arms)
        weights[row, part] = slope_weights(dict(zip(ks, np.exp(own.means), strict=True)), own.shares)
    weights[1] -= weights[0]  # d = s of the drafter - s of the free one
    values = weights @ (ratios - 1.0)
    if both.variance is None:
        return (float(values[0]), math.nan, math.nan), (float(values[1]), math.nan, math.nan)
    spread = weights * ratios  # by the delta method
    errors = np.sqrt(np.diag(spread @ both.shares @ spread.T) * both.variance) * t_quantile(both.df)
    first, second = (
        (float(value), float(value - half), float(value + half))
        for value, half in zip(values, errors, strict=True)
    )
    return first, second


COLUMNS = {
    "drafter": "name of the drafter over its K",
    "layout": "layout label",
    "level": "load level on the sweep's axis",
    "lengths": "draft lengths K measured",
    "alpha": "conditional acceptance rate that fits the mean acceptance lengths of all K best",
    "alpha_fit": "whether this one alpha fits: no length farther off than 2 %, or the distance is noise",
    "alpha_misfit": "largest distance of a length from the fit, relative",
    "alpha_p": "chance of so large a misfit if one alpha were true (F against the spread within each K)",
    "t0_ms": "plain decode step of the same blocks, ms",
    "c": "cost of speculation at any K, in plain steps",
    "c_assumed": "whether c was fixed at 0 for want of a third draft length",
    "s": "cost of one more draft token (verified and drafted), in plain steps",
    "step_fit": "whether the line fits: no step ratio farther off than 2 %, or the distance is noise",
    "step_misfit": "largest distance of a step ratio from the line, relative",
    "step_p": "chance of so large a misfit if the line were true (F against the residuals)",
    "v": "cost of verifying one more draft token, in plain steps",
    "d": "cost of drafting one more, in plain steps",
    "split": "what tells v and d apart: a free drafter beside it (of its own, s is v), or a profile's trace",
    "best_k": "K with the largest acceptance length over 1 + c + s K, of those measured; 0: no speculation",
    **FLAGS,
}
SHOWN = (
    "drafter", "level", "lengths", "alpha", "alpha_misfit", "alpha_fit", "t0_ms", "c", "s", "step_misfit",
    "step_fit", "v", "d", "split", "best_k",
)  # fmt: skip
