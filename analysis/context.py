"""Acceptance, step time and decode speed against the length of the context, by arm.

A user's speed at long context falls for two reasons that look alike: drafts are accepted less often, or each
step takes longer. Tokens a chunk over decode speed is the time of a step, as a step's tokens come in one
chunk.
"""

import math
from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from analysis.arms import FLAGS, ArmFacts, arm_facts, flag_notes, flags
from analysis.contrasts import Contrasts, contrasts, counted, log_figure, t_quantile
from analysis.formulas import LARGEST_LOG
from analysis.frame import Sweep
from analysis.ksweep import POINTWISE, axis_of
from analysis.levels import conditions
from analysis.section import Section
from jobs.metric_names import CONTEXT_SLICES
from jobs.result import MEASURED

STEADY = 0.05
"""An acceptance length that changes by less, relative, is steady."""
MISSING = (
    "no cell has a decode speed by context: answers of more than one chunk are needed; `specload sweep "
    "workload=...` with longer conversations measures more ranges"
)


def context(sweep: Sweep) -> Section:
    """Return one row an arm, level and range of context lengths; baselines are arms, too."""
    facts = arm_facts(sweep.cells, sweep.plan)
    cells = counted(sweep.cells)
    rows = []
    if not cells.empty:
        for level, crowded, group in conditions(cells):
            rows += list(_level_rows(level, group, facts, crowded=crowded))
    frame = pd.DataFrame(rows)
    if rows:
        frame = frame.sort_values(["layout", "k", "arm", "level"], kind="stable").reset_index(drop=True)
    return Section(
        name="context",
        title="Decode against context length",
        frame=frame,
        columns=COLUMNS if rows else {},
        shown=SHOWN if rows else (),
        notes=(POINTWISE, CHUNKS, *_falls(sweep, frame), *flag_notes(frame)) if rows else (),
        missing="" if rows else MISSING,
    )


def _level_rows(
    level: float, group: pd.DataFrame, facts: Mapping[str, ArmFacts], *, crowded: bool
) -> Iterator[dict[str, object]]:
    logs = {name: _logs(group, name) for name in CONTEXT_SLICES}
    figures = {f"{figure} {name}": values for name, own in logs.items() for figure, values in own.items()}
    fits = contrasts(group, figures)
    measured = group["outcome"] == MEASURED
    blocks = group["block"].to_numpy(dtype=int)
    for arm in sorted(set(group.loc[measured, "arm"])):
        fact = facts[arm]
        if fact.counterfactual:
            continue
        own = (measured & (group["arm"] == arm)).to_numpy(dtype=bool)
        first: dict[str, float] = {}
        for name, words in CONTEXT_SLICES.items():
            means = {figure: _mean(values[own]) for figure, values in logs[name].items()}
            if not math.isfinite(means["speed"]):
                continue
            low, high = _interval(logs[name]["mal"][own], blocks[own])
            first = first or means
            yield {
                "arm": fact.label,
                "digest": arm,
                "layout": fact.layout,
                "k": fact.k,
                "level": level,
                "context": words,
                "speed_tok_s": math.exp(means["speed"]),
                "step_ms": 1000.0 * math.exp(means["step"]),
                "mal": math.exp(means["mal"]),
                "mal_lo": math.exp(low),
                "mal_hi": math.exp(high),
                **_ratios(fits, name, arm),
                **{f"{figure}_change": math.exp(means[figure] - first[figure]) for figure in means},
                **flags([fact], oversubscribed=crowded),
            }


def _logs(group: pd.DataFrame, name: str) -> dict[str, np.ndarray]:
    speed = log_figure(group, f"context/speed_tok_s_{name}")
    return {
        "speed": speed,
        "step": log_figure(group, f"context/tokens_per_chunk_{name}") - speed,
        "mal": log_figure(group, f"context/mal_{name}"),
    }


def _ratios(fits: dict[str, Contrasts], name: str, arm: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for figure in ("speed", "step"):
        ends = zip(("", "_lo", "_hi"), fits[f"{figure} {name}"].ratio(arm), strict=True)
        found |= {f"{figure}_ratio{end}": value for end, value in ends}
    return found


def _mean(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else math.nan


def _interval(values: np.ndarray, blocks: np.ndarray) -> tuple[float, float]:
    """Return the ends of the 95 % interval of a mean over blocks (t); NaN with fewer than two."""
    known = np.isfinite(values)
    _, place = np.unique(blocks[known], return_inverse=True)
    means = np.bincount(place, weights=values[known]) / np.bincount(place)
    if len(means) < 2:
        return math.nan, math.nan
    half = t_quantile(len(means) - 1) * float(means.std(ddof=1)) / math.sqrt(len(means))
    middle = _mean(values)
    return middle - half, min(middle + half, LARGEST_LOG)


def _falls(sweep: Sweep, frame: pd.DataFrame) -> list[str]:
    """Say of each drafter at each level whether acceptance or the step takes its speed at long context."""
    said = []
    for (arm, level), own in frame[frame["k"] > 0].groupby(["arm", "level"], sort=False):
        last = own.iloc[-1]
        if len(own) < 2 or not math.isfinite(last["mal_change"]):
            continue
        steady = abs(math.log(last["mal_change"])) <= math.log1p(STEADY)
        acceptance = "stays" if steady else f"becomes {last['mal_change']:.2f} times as long"
        said.append(
            f"{arm} at {axis_of(sweep).at(float(str(level)))}, from {own.iloc[0]['context']} to "
            f"{last['context']}: decode speed {last['speed_change']:.2f} times, a step "
            f"{last['step_change']:.2f} times; the acceptance length {acceptance}"
        )
    return said


CHUNKS = (
    "a step's time is that of a chunk: where a busy server merges the tokens of two steps, both tokens a "
    "chunk and the time are those of two"
)
COLUMNS = {
    "arm": "label of the arm; baselines are those with K = 0",
    "digest": "digest of the arm",
    "layout": "layout label",
    "k": "draft length K, tokens",
    "level": "load level on the sweep's axis",
    "context": "range of context lengths: prompt and answer so far",
    "speed_tok_s": "decode speed in this range, tok/s (geometric mean over cells)",
    "step_ms": "time of a step in this range, ms: tokens a chunk over decode speed",
    "mal": "mean acceptance length of answers whose middle lies in this range, tokens; 95 % over blocks (t)",
    "speed_ratio": "decode speed over the baseline's in the same range",
    "step_ratio": "time of a step over the baseline's in the same range",
    "speed_change": "decode speed over that of the shortest range of the same arm and level",
    "step_change": "the same of the step time",
    "mal_change": "the same of the acceptance length",
    **FLAGS,
}
SHOWN = (
    "arm",
    "level",
    "context",
    "speed_tok_s",
    "step_ms",
    "mal",
    "speed_ratio",
    "step_ratio",
    "mal_change",
)
