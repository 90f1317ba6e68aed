"""A sweep in one value: verdict rows, crossovers, baselines, spreads, outcomes and caveats."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.banners import BANNERS
from analysis.confirmation import Confirmation, confirmations
from analysis.contrasts import counted
from analysis.crossings import crossover_rows
from analysis.frame import Sweep, as_results, cells_frame
from analysis.levels import Level, fit_levels, planned_levels, planned_sides
from analysis.objectives import DEFAULT, OBJECTIVES, check_objective
from analysis.pairs import LOGS, log_metric, pairs_frame
from analysis.rows import BaselineRow, CrossoverRow, Spread, VerdictRow
from analysis.table import planned_rows, verdict_rows
from jobs.nouns import counted as number_of
from jobs.result import CONFIRMATION, MEASURED, OUTCOMES, TREATMENT, CellResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a sweep says."""

    objective: str
    """Name of the objective that the verdicts are on."""
    threshold: float
    """Practical threshold, as a share."""
    axis: str = "concurrency"
    """What the load levels are a number of: a key of `analysis.axis.AXES`."""
    rows: tuple[VerdictRow, ...] = ()
    """By layout, drafter, K, label and level."""
    crossovers: tuple[CrossoverRow, ...] = ()
    baselines: tuple[BaselineRow, ...] = ()
    aa_spread: tuple[Spread, ...] = ()
    """By level."""
    confirmations: tuple[Confirmation, ...] = ()
    """Of winners that were measured again, by their fresh blocks alone; these count nowhere else above."""
    outcomes: Mapping[str, int] = field(default_factory=dict)
    """Number of cells by outcome, zeros included."""
    emulated: bool = False
    """Whether any cell came from an emulated engine."""
    synthetic: bool = False
    """Whether acceptance was forced in any cell."""
    oversubscribed: bool = False
    """Whether client and engine shared a core in any cell."""
    unpaired: bool = False
    """Whether arms and baselines come from runs of their own, as others' results do, and not from blocks."""
    caveats: tuple[str, ...] = ()
    """Of the sweep as a whole; those of a row are in the row."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return asdict(self)


def summarise(
    results: Sequence[CellResult | Mapping[str, Any]], *, threshold: float, objective: str = DEFAULT
) -> Summary:
    """Return what the results say.

    Args:
        results: all cells of one sweep, whatever their outcome.
        threshold: practical threshold as a share (0.02 is 2 %).
        objective: what the verdicts are on.

    Raises:
        ValueError: two cells claim the same place in the sweep, or an unknown objective.
    """
    check_objective(objective)
    items = sorted(
        as_results(results), key=lambda item: item.cell
    )  # sums then round alike, whatever the order
    made = Sweep(directory=Path(), plan={}, cells=cells_frame(items), results=items)
    return _summary(made, threshold, objective)


def summary_of(sweep: Sweep, *, threshold: float | None = None, objective: str | None = None) -> Summary:
    """Return what a sweep says, worked out once for all that ask.

    Args:
        sweep: the sweep.
        threshold: practical threshold as a share; the plan's where None.
        objective: what the verdicts are on; the plan's where None.

    Raises:
        ValueError: an unknown objective.
    """
    wanted = objective or str(sweep.plan.get("objective") or DEFAULT)
    check_objective(wanted)
    return sweep.once(_summary, sweep.threshold if threshold is None else threshold, wanted)


def _summary(sweep: Sweep, threshold: float, objective: str) -> Summary:
    items, cells = sweep.results, sweep.cells
    counts = Counter(item.outcome for item in items)
    outcomes = {outcome: counts.get(outcome, 0) for outcome in OUTCOMES}
    if cells.empty:
        return Summary(
            objective=objective, threshold=threshold, outcomes=outcomes, caveats=("there are no results",)
        )
    levels = planned_levels(sweep)
    rows = planned_rows(sweep, threshold=threshold, objective=objective)
    return Summary(
        objective=objective,
        threshold=threshold,
        axis=items[0].axis,
        rows=rows,
        crossovers=crossover_rows(rows, levels),
        baselines=baseline_rows(counted(cells)),
        aa_spread=_spreads(planned_sides(sweep), levels),
        confirmations=_confirmations(cells, threshold=threshold, objective=objective),
        outcomes=outcomes,
        emulated=any(item.emulated for item in items),
        synthetic=any(item.synthetic for item in items),
        oversubscribed=any(item.oversubscribed for item in items),
        caveats=_caveats(rows, outcomes, items[0].axis),
    )


def cell_ratios(results: Iterable[CellResult | Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the ratios `ratio/<objective>` of each speculative cell that has a valid pair, by cell id."""
    cells = cells_frame(results)
    if cells.empty:
        return {}
    pairs = pairs_frame(cells)
    found: dict[str, dict[str, float]] = {}
    for row in pairs[pairs["valid"]].to_dict("records"):
        logs = {name: float(row[column]) for name, column in LOGS.items()}
        ratios = {f"ratio/{name}": math.exp(value) for name, value in logs.items() if math.isfinite(value)}
        if ratios:
            found[str(row["cell"])] = ratios
    return found


def _confirmations(cells: pd.DataFrame, *, threshold: float, objective: str) -> tuple[Confirmation, ...]:
    """Judge the cells of confirming rounds by themselves: others count nothing here, nor these there."""
    appended = cells[cells["kind"] == CONFIRMATION].reset_index(drop=True)
    if appended.empty:
        return ()
    rows = verdict_rows(appended, fit_levels(appended), threshold=threshold, objective=objective)
    return confirmations(rows, objective=objective)


def baseline_rows(cells: pd.DataFrame) -> tuple[BaselineRow, ...]:
    """Return the figures of each baseline by layout, label and level."""
    measured = cells[(cells["role"] != TREATMENT) & (cells["outcome"] == MEASURED)]
    rows = []
    for _, group in measured.groupby(["layout", "label", "pair", "level"]):
        first = group.iloc[0]
        values: dict[str, float | None] = {}
        for name in OBJECTIVES:
            mean = float(log_metric(group, name).mean())
            values[name] = math.exp(mean) if math.isfinite(mean) else None
        rows.append(
            BaselineRow(
                label=str(first["label"]),
                pair=str(first["pair"]),
                layout=str(first["layout"]),
                level=float(first["level"]),
                cells=len(group),
                values=values,
            )
        )
    return tuple(rows)


def _spreads(table: pd.DataFrame, levels: Sequence[Level]) -> tuple[Spread, ...]:
    both = Counter(table["level"][table["opening"].notna() & table["closing"].notna()])
    merged: dict[float, dict[str, float]] = {}
    for level in levels:
        known = {name: value for name, value in level.spread.items() if value is not None}
        if known:
            merged[level.value] = known
    return tuple(
        Spread(level=level, values=values, segments=both[level]) for level, values in sorted(merged.items())
    )


def _caveats(rows: Sequence[VerdictRow], outcomes: Mapping[str, int], axis: str) -> tuple[str, ...]:
    found = []
    if rows and axis != "concurrency":
        found.append(
            "open loop: until an arm cannot keep up, its throughput is what arrives, and only latencies and "
            "user speed tell arms apart"
        )
    if not rows:
        found.append("no arm was compared with a baseline: there is nothing to judge")
    lost = {outcome: count for outcome, count in outcomes.items() if count and outcome != MEASURED}
    if lost:
        told = ", ".join(f"{count} {outcome}" for outcome, count in lost.items())
        cells = number_of(sum(outcomes.values()), "cell")
        found.append(f"{sum(lost.values())} of {cells} have no measurement that counts: {told}")
    if rows and all(row.blocks <= 1 for row in rows):
        found.append("one block: the noise between blocks is unknown, so nothing is decided")
    if any(row.oversubscribed for row in rows):
        found.append(BANNERS["oversubscribed"][1])
    if any(row.synthetic for row in rows):
        found.append(BANNERS["synthetic"][1])
    causes = sorted({row.label for row in rows if row.counterfactual})
    if causes:
        found.append(f"counterfactual arms show causes, nobody would serve with them: {', '.join(causes)}")
    return tuple(found)
