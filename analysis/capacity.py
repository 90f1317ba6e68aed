"""KV capacity by arm: what fits, what a drafter takes of it, from where requests wait, and what that costs.

Capacities are an engine's own statement at its start, so one cell says as much as ten; the smallest is kept
where starts differ. The cost comes from the counterfactual baseline of `drafter.kv=matched`:

    arm / natural baseline  =  matched / natural baseline  x  arm / matched baseline
          what counts               what memory costs             what the drafter does
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from analysis.axis import AXES
from analysis.frame import arm_labels, as_results
from analysis.objectives import DEFAULT, OBJECTIVES
from analysis.rows import Ratio
from jobs.result import MEASURED, OPENING, TREATMENT, CellResult

WAITING = 0.5
"""Share of a level's samples with a queued request from which its requests wait: single arrivals queue for
a moment at any level."""
CONFIDENCE = 0.95
KV_MATCHED = "kv_matched"


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityRow:
    """What one arm's KV caches hold. All figures are of the block's slice, replicas included."""

    arm: str
    """Digest of the arm."""
    label: str
    layout: str
    counterfactual: str
    """As in `jobs.result.CellResult`."""
    tokens: float
    """KV tokens over all ranks and replicas."""
    tokens_per_rank: float | None
    """KV tokens of one pool: no conversation can be larger."""
    ranks: float | None
    """Pools."""
    blocks: float | None
    """KV blocks over all pools."""
    block_size: float | None
    """Tokens of a block."""
    taken: float | None
    """KV tokens that the baseline of its pair has more; None for a baseline, or without one."""
    taken_share: float | None
    """The same as a share of the baseline's."""
    context_mean: float | None
    """Tokens of a conversation of the workload at its longest turn; mean."""
    context_largest: float | None
    """Tokens of the longest turn of the workload."""
    conversations_mean: float | None
    """Conversations of mean context that fit at once."""
    conversations_largest: float | None
    """Conversations of the largest context that fit at once."""
    waits_from: float | None
    """Lowest load level at which requests wait; None where they do at none, or nobody looked."""
    waits: str
    """The same in words, with the levels tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCost:
    """One arm's ratio at one level, split by its baseline with matched KV."""

    label: str
    axis: str
    level: float
    whole: Ratio
    """Arm over natural baseline."""
    memory: Ratio
    """Matched over natural baseline: what the drafter's share of the KV cache costs."""
    rest: Ratio
    """Arm over matched baseline: what the drafter does, with equal KV caches."""
    oversubscribed: bool = False
    """Client and engine shared a core: an indication."""

    @property
    def at(self) -> str:
        """The level as text: `C=16`."""
        return AXES[self.axis].at(self.level)


def capacity_rows(results: Iterable[CellResult | Mapping[str, Any]]) -> tuple[CapacityRow, ...]:
    """Return one row an arm whose engine told its capacity: by layout, baselines first, then by label."""
    cells = [cell for cell in as_results(results) if _figure(cell, "kv/capacity_tokens") is not None]
    labels = arm_labels(cells)
    arms: dict[str, list[CellResult]] = defaultdict(list)
    for cell in cells:
        arms[cell.arm].append(cell)
    baselines = {_pair(own[0]): own for own in arms.values() if own[0].role != TREATMENT}
    rows = [_row(own, labels[arm], baselines.get(_pair(own[0]), [])) for arm, own in arms.items()]
    first = {own[0].arm for own in baselines.values()}
    return tuple(sorted(rows, key=lambda row: (row.layout, row.arm not in first, row.label)))


def memory_costs(
    results: Iterable[CellResult | Mapping[str, Any]], *, objective: str = DEFAULT
) -> tuple[MemoryCost, ...]:
    """Return every arm and level that was measured beside its baseline with matched KV, by label and level.

    Each ratio is a geometric mean over the segments that have all three, with the interval of its own t: they
    answer one question each, so no interval is widened for the others.
    """
    cells = [cell for cell in as_results(results) if cell.outcome == MEASURED and cell.counts]
    labels = arm_labels(cells)
    metric = OBJECTIVES[objective].metric
    places: dict[tuple[Any, ...], dict[str, list[CellResult]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        if (_figure(cell, metric) or 0.0) > 0.0:
            key = (_pair(cell), cell.block, cell.segment, cell.axis, cell.level)
            places[key][cell.arm if cell.role == TREATMENT else OPENING].append(cell)
    found: dict[tuple[str, str, float], list[tuple[float, float, bool]]] = defaultdict(list)
    for place in places.values():
        for arm, (matched, *_) in place.items():
            own = place.get(str(matched.identity.get("kv_of")))
            if matched.counterfactual != KV_MATCHED or own is None or OPENING not in place:
                continue
            natural = float(np.mean([_log(cell, metric) for cell in place[OPENING]]))
            clamped = float(np.mean([_log(cell, metric) for cell in place[arm]]))
            crowded = any(cell.oversubscribed for cell in (*own, *place[arm], *place[OPENING]))
            found[own[0].arm, own[0].axis, own[0].level].append(
                (clamped - natural, _log(own[0], metric) - clamped, crowded)
            )
    rows = [
        MemoryCost(
            label=labels[arm],
            axis=axis,
            level=level,
            whole=_ratio([memory + rest for memory, rest, _ in logs]),
            memory=_ratio([memory for memory, _, _ in logs]),
            rest=_ratio([rest for _, rest, _ in logs]),
            oversubscribed=any(crowded for _, _, crowded in logs),
        )
        for (arm, axis, level), logs in found.items()
    ]
    return tuple(sorted(rows, key=lambda row: (row.label, row.level)))


def _row(own: Sequence[CellResult], label: str, baseline: Sequence[CellResult]) -> CapacityRow:
    tokens = _least(own, "kv/capacity_tokens") or 0.0
    natural = None if own[0].role != TREATMENT else _least(baseline, "kv/capacity_tokens")
    waits_from, waits = waiting_from(own)
    return CapacityRow(
        arm=own[0].arm,
        label=label,
        layout=own[0].layout,
        counterfactual=own[0].counterfactual,
        tokens=tokens,
        tokens_per_rank=_least(own, "kv/capacity_tokens_per_rank"),
        ranks=_least(own, "kv/ranks"),
        blocks=_least(own, "kv/blocks"),
        block_size=_least(own, "kv/block_size"),
        taken=None if natural is None else natural - tokens,
        taken_share=(natural - tokens) / natural if natural else None,
        context_mean=_mean([_figure(cell, "kv/context_mean") for cell in own]),
        context_largest=max((_figure(cell, "kv/context_largest") or 0.0 for cell in own), default=0.0)
        or None,
        conversations_mean=_least(own, "kv/conversations_mean"),
        conversations_largest=_least(own, "kv/conversations_largest"),
        waits_from=waits_from,
        waits=waits,
    )


def waiting_from(own: Sequence[CellResult]) -> tuple[float | None, str]:
    """Return the lowest level at which an arm's requests wait in most samples, and the same in words."""
    axis = AXES[own[0].axis]
    levels: dict[float, list[CellResult]] = defaultdict(list)
    for cell in own:
        if _figure(cell, "engine/waiting_share") is not None:
            levels[cell.level].append(cell)
    if not levels:
        return None, "unknown: no level was sampled long enough"
    tried = sorted(levels)
    shares = {
        level: _mean([_figure(cell, "engine/waiting_share") for cell in levels[level]]) for level in tried
    }
    waits = next((level for level in tried if (shares[level] or 0.0) >= WAITING), None)
    if waits is None:
        span = axis.at(tried[0]) if len(tried) == 1 else f"{axis.at(tried[0])} to {axis.at(tried[-1])}"
        return None, f"not within the levels sampled ({span})"
    below = [level for level in tried if level < waits]
    where = f"between {axis.at(below[-1])} and {axis.at(waits)}" if below else f"at {axis.at(waits)} already"
    usage = _mean([_figure(cell, "kv/usage_peak") for cell in levels[waits]])
    return waits, where if usage is None else f"{where} (KV cache up to {usage:.0%} full)"


def _pair(cell: CellResult) -> str:
    return str(cell.identity.get("pair_key") or cell.layout)


def _figure(cell: CellResult, name: str) -> float | None:
    value = cell.metrics.get(name)
    return None if value is None or not math.isfinite(value) else float(value)


def _log(cell: CellResult, metric: str) -> float:
    return math.log(_figure(cell, metric) or math.nan)


def _least(cells: Sequence[CellResult], name: str) -> float | None:
    return min((value for cell in cells if (value := _figure(cell, name)) is not None), default=None)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _ratio(logs: Sequence[float]) -> Ratio:
    mean, count = float(np.mean(logs)), len(logs)
    if count < 2:
        return Ratio.of_log(mean, pairs=count)
    error = float(np.std(logs, ddof=1)) / math.sqrt(count)
    half = error * float(stats.t.ppf((1.0 + CONFIDENCE) / 2.0, count - 1))
    return Ratio.of_log(mean, half, pairs=count)
