"""The verdict table: one row an arm and load level."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis.contrasts import counted
from analysis.fit import Contrast
from analysis.frame import Sweep
from analysis.levels import Level, planned_levels, planned_sides
from analysis.objectives import OBJECTIVES
from analysis.pairs import LOGS, pairs_frame
from analysis.rows import Ratio, VerdictRow, implied
from analysis.verdict import INVALID, NO_VERDICT, Verdict, decide, sign_flip_p, threshold_of
from jobs.nouns import counted as number_of
from jobs.result import TREATMENT

CAPACITY = "out_of_memory"
"""Cause of a failure that is a finding about capacity."""
_FACTS = ["axis", "spec/mal", "emulated", "synthetic", "counterfactual", "caveats"]
SHARE_TOLERANCE = 0.05
"""The arms' uncached shares may differ by so much, relative, before the row says so."""
DISAGREE_WINDOW = "the steady window gives"
DISAGREE_SHARES = "computed and total throughput disagree"
"""How the caveats of a row begin that say this."""


def verdict_rows(
    cells: pd.DataFrame,
    levels: Sequence[Level],
    *,
    threshold: float,
    objective: str,
    sides: pd.DataFrame | None = None,
) -> tuple[VerdictRow, ...]:
    """Return the rows, by layout, drafter, K, label and level.

    Args:
        cells: `cells_frame` of the results.
        levels: their `fit_levels`.
        threshold: practical threshold, as a share.
        objective: what the verdicts are on.
        sides: the cells' `baselines`, where they are known already.
    """
    fitted = {(level.value, level.oversubscribed): level for level in levels}
    treated = cells.loc[cells["role"] == TREATMENT, _FACTS].reset_index(drop=True)
    pairs = pd.concat([pairs_frame(cells, sides), treated], axis=1)
    rows = []
    keys = ["layout", "drafter", "k", "label", "level", "arm"]
    for _, group in pairs.groupby(keys, sort=True):
        used = group[group["valid"]]
        alone = used[~used["oversubscribed"]]
        used = alone if not alone.empty else used  # the two conditions are never averaged
        crowded = bool(group["oversubscribed"].all())
        level = fitted.get((float(group["level"].iloc[0]), crowded))
        rows.append(_row(group, used, level, threshold=threshold, objective=objective))
    return tuple(rows)


def planned_rows(sweep: Sweep, *, threshold: float, objective: str) -> tuple[VerdictRow, ...]:
    """Return the rows of all cells of a sweep that analyses count; worked out once for all that ask."""
    return sweep.once(_planned_rows, threshold, objective)


def _planned_rows(sweep: Sweep, threshold: float, objective: str) -> tuple[VerdictRow, ...]:
    return verdict_rows(
        counted(sweep.cells),
        planned_levels(sweep),
        threshold=threshold,
        objective=objective,
        sides=planned_sides(sweep),
    )


def _row(
    group: pd.DataFrame,
    used: pd.DataFrame,
    level: Level | None,
    *,
    threshold: float,
    objective: str,
) -> VerdictRow:
    first = group.iloc[0]
    arm, crowded = str(first["arm"]), bool(group["oversubscribed"].all())
    contrasts = {} if level is None else {name: fit.contrasts.get(arm) for name, fit in level.fits.items()}
    ratios = {name: None if contrast is None else contrast.ratio for name, contrast in contrasts.items()}
    mal = _mean(used["spec/mal"].tolist())
    step, uncached = implied(mal, ratios)
    verdict = _verdict(group, contrasts.get(objective), level, threshold=threshold, objective=objective)
    unjudged = None
    if verdict.word != INVALID and crowded:
        unjudged = "client and engine shared a core: measured, never judged"
    elif verdict.word != INVALID and first["counterfactual"]:
        unjudged = "a counterfactual shows a cause: nobody would serve with it"
    return VerdictRow(
        arm=arm,
        label=str(first["label"]),
        pair=str(first["pair"]),
        layout=str(first["layout"]),
        drafter=str(first["drafter"]),
        k=int(first["k"]),
        axis=str(first["axis"]),
        level=float(first["level"]),
        blocks=len(used),
        verdict=NO_VERDICT if unjudged else verdict.word,
        reason=unjudged or verdict.reason,
        threshold=verdict.threshold,
        **ratios,
        mal=mal,
        step_ratio=step,
        uncached_share_ratio=uncached,
        sign_flip_p=sign_flip_p([float(value) for value in used[LOGS[objective]]]),
        more_blocks=None if unjudged else verdict.more_blocks,
        outcomes={str(name): int(count) for name, count in sorted(Counter(group["outcome"]).items())},
        capacity_failure=used.empty and bool((group["cause"] == CAPACITY).any()),
        emulated=bool(group["emulated"].any()),
        synthetic=bool(group["synthetic"].any()),
        counterfactual=str(first["counterfactual"]),
        oversubscribed=crowded,
        unpaired=False,
        caveats=_caveats(group, ratios, uncached, verdict.threshold),
    )


def _verdict(
    group: pd.DataFrame, contrast: Contrast | None, level: Level | None, *, threshold: float, objective: str
) -> Verdict:
    if level is not None and contrast is not None:
        return decide(
            contrast,
            level.fits[objective],
            practical=threshold,
            spread=level.spread[objective],
            higher_is_better=OBJECTIVES[objective].higher_is_better,
        )
    if bool(group["valid"].any()):
        reason = f"no figure for {OBJECTIVES[objective].title} on both sides of any pair"
    else:
        reason = "; ".join(f"{count} x {why}" for why, count in Counter(group["why"]).items())
    return Verdict(word=INVALID, reason=reason, threshold=threshold_of(threshold, None))


def _caveats(
    group: pd.DataFrame,
    ratios: Mapping[str, Ratio | None],
    uncached: float | None,
    threshold: float,
) -> tuple[str, ...]:
    found: list[str] = []
    lost = group[~group["valid"]]
    if not lost.empty and bool(group["valid"].any()):
        whys = "; ".join(f"{count} x {why}" for why, count in Counter(lost["why"]).items())
        found.append(f"{len(lost)} of {number_of(len(group), 'pair')} left out: {whys}")
    blocks = zip(group["block"], group["caveat"], strict=True)
    found += [f"block {block}: {caveat}" for block, caveat in blocks if isinstance(caveat, str)]
    total, fixed = ratios.get("total"), ratios.get("fixed_total")
    if total and fixed and abs(math.log(total.value / fixed.value)) > math.log1p(threshold):
        found.append(
            f"{DISAGREE_WINDOW} a total throughput ratio of {total.value:.3f}, the whole fixed work "
            f"{fixed.value:.3f}"
        )
    if uncached is not None and abs(math.log(uncached)) > math.log1p(SHARE_TOLERANCE):
        found.append(
            f"{DISAGREE_SHARES}: the uncached share of the tokens was "
            f"{uncached:.2f} times the baseline's, so the arms did not have equal hit rates"
        )
    found += [caveat for told in group["caveats"] for caveat in told]
    return tuple(dict.fromkeys(found))


def _mean(values: Sequence[Any]) -> float | None:
    finite = [float(value) for value in values if value is not None and math.isfinite(value)]
    return float(np.mean(finite)) if finite else None
