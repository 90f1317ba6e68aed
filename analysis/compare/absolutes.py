"""Absolute figures of each arm in both sweeps: what changed for users, with all that drifted between them."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from analysis.arms import FLAGS, flag_notes
from analysis.compare.estimates import Estimate, change, judge
from analysis.compare.identity import Matched
from analysis.compare.ratios import spread_of
from analysis.compare.side import Side
from analysis.contrasts import log_figure
from analysis.levels import conditions
from analysis.objectives import OBJECTIVES
from analysis.rows import ratio_columns
from analysis.section import Section
from analysis.verdict import NO_VERDICT
from jobs.result import MEASURED

STEP = "step/mean_ms"
DRIFT = (
    "absolute figures are not paired between the sweeps: hardware, clocks, other load and the day are in "
    "every change here, and no interval covers them; a change of a ratio has none of that in it"
)


def absolutes(pairs: Sequence[Matched], a: Side, b: Side, *, objective: str, threshold: float) -> Section:
    """Return one row an arm, level and figure (the objective's, and the step time), baselines first.

    Args:
        pairs: arms that are in both sweeps, baselines among them.
        a: one sweep.
        b: the other.
        objective: whose metric stands first.
        threshold: practical threshold, as a share.
    """
    ordered = sorted(pairs, key=lambda pair: not pair.a.baseline)
    groups = [
        {(value, crowded): group for value, crowded, group in conditions(side.cells)} for side in (a, b)
    ]
    figures = {
        OBJECTIVES[objective].title: (OBJECTIVES[objective].metric, OBJECTIVES[objective].higher_is_better),
        "step time": (STEP, False),
    }
    rows: list[dict[str, object]] = []
    for pair in ordered:
        for place in sorted(groups[0].keys() & groups[1].keys()):
            own = [groups[0][place], groups[1][place]]
            cells = [group[group["arm"] == arm.arm] for group, arm in zip(own, (pair.a, pair.b), strict=True)]
            for title, (metric, higher) in figures.items():
                known = [_estimate(part, metric) for part in cells]
                mine, theirs = known
                if mine is None or theirs is None:
                    continue
                found = judge(
                    change(mine, theirs),
                    family=1,
                    practical=threshold,
                    spread=spread_of(a, b, place, objective) if metric != STEP else None,
                    higher_is_better=higher,
                )
                rows.append(
                    {
                        "arm": pair.label,
                        "baseline": pair.a.baseline,
                        "level": place[0],
                        "figure": title,
                        "metric": metric,
                        **ratio_columns("a", mine.ratio()),
                        **ratio_columns("b", theirs.ratio()),
                        **ratio_columns("change", found.ratio),
                        "verdict": NO_VERDICT if place[1] or pair.a.counterfactual else found.word,
                        "blocks_a": mine.pairs,
                        "blocks_b": theirs.pairs,
                        **dict(_flags(cells, crowded=place[1])),
                    }
                )
    frame = pd.DataFrame(rows)
    return Section(
        name="absolutes",
        title="Absolute figures, which carry what drifted between the sweeps",
        frame=frame,
        columns=COLUMNS if rows else {},
        shown=SHOWN if rows else (),
        notes=(DRIFT, *flag_notes(frame)) if rows else (),
        missing="" if rows else "no arm was measured in both sweeps at a common level",
    )


def _estimate(cells: pd.DataFrame, metric: str) -> Estimate | None:
    """Return the mean log of a figure over blocks and segments, baselines' two cells averaged."""
    measured = cells["outcome"].eq(MEASURED).to_numpy(dtype=bool)
    logs = np.where(measured, log_figure(cells, metric), np.nan)
    known = pd.Series(logs, index=cells.index).dropna()
    if known.empty:
        return None
    places = [cells.loc[known.index, name] for name in ("block", "segment")]
    values = known.groupby(places).mean().to_numpy(dtype=float)
    error = None
    if values.size > 1:
        error = float(values.std(ddof=1)) / math.sqrt(values.size)
    return Estimate(value=float(values.mean()), error=error, df=values.size - 1.0, pairs=values.size)


def _flags(cells: Sequence[pd.DataFrame], *, crowded: bool) -> Iterator[tuple[str, bool]]:
    for name in ("synthetic", "emulated"):
        yield name, any(bool(part[name].any()) for part in cells)
    yield "oversubscribed", crowded


COLUMNS = {
    "arm": "name of the arm in A",
    "baseline": "whether it runs without a drafter",
    "level": "load level on the axis of both sweeps",
    "figure": "what is compared",
    "metric": "its name and unit, as in the metrics' reference",
    "a": "geometric mean over blocks in A, with its 95 % interval (t over the blocks)",
    "b": "the same in B",
    "change": "b over a, with its 95 % interval (Welch): of the noise within each sweep only",
    "verdict": "as for ratios, of this one comparison; a shorter step is better",
    "blocks_a": "blocks and segments behind a",
    "blocks_b": "blocks and segments behind b",
    **FLAGS,
}
SHOWN = ("arm", "level", "figure", "a", "b", "change", "verdict")
