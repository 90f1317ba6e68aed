"""What the report's template is filled with: plain values, nothing formatted and nothing escaped yet."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from analysis.axis import AXES, number
from analysis.capacity import capacity_rows, memory_costs
from analysis.figures import FIGURES, Figure
from analysis.fit import CONFIDENCE
from analysis.frame import Sweep, arm_labels, as_results, cells_frame
from analysis.objectives import OBJECTIVES
from analysis.report.engines import command_lines, differences
from analysis.rows import VerdictRow
from analysis.sections import SECTIONS
from analysis.summary import Summary
from jobs.metric_names import METRICS
from jobs.result import MEASURED, CellResult

FACTS = ("engine", "engine_version", "model", "validity", "host", "cores", "devices", "workload", "seed")
"""Keys of a cell's identity worth a line in the provenance, where present."""
CELL_METRICS = (
    "throughput/total_tok_s",
    "throughput/computed_tok_s",
    "throughput/output_tok_s",
    "user/speed_tok_s",
    "latency/ttft_p95_ms",
    "latency/e2el_p95_ms",
    "spec/mal",
    "spec/tokens_per_step",
    "step/mean_ms",
    "cache/hit_rate",
    "kv/capacity_tokens",
    "kv/usage_peak",
    "engine/preemptions",
    "window/occupancy",
)
"""Shown in the table of all cells."""


def build_context(
    directory: Path,
    *,
    plan: Mapping[str, Any],
    results: Sequence[CellResult | Mapping[str, Any]],
    summary: Summary,
) -> dict[str, Any]:
    """Return everything the template names; see `write_report`."""
    cells = as_results(results)
    labels = arm_labels(cells)
    planned = [cell for cell in cells if cell.counts]
    sweep = Sweep(directory=directory, plan=dict(plan), cells=cells_frame(cells), results=cells)
    return {
        "plan": plan,
        "title": str(plan.get("sweep") or plan.get("name") or directory.name),
        "summary": summary,
        "objective": OBJECTIVES[summary.objective],
        "objectives": OBJECTIVES,
        "compared": [
            name
            for name, objective in OBJECTIVES.items()
            if name != "fixed_total"
            and (not objective.optional or any(row.ratio(name) for row in summary.rows))
        ],
        "confidence": CONFIDENCE,
        "arms": _arms(summary.rows),
        "banners": _banners(summary),
        "axis": AXES[summary.axis],
        "level": number,
        "blocks": len({cell.block for cell in planned}),
        "figures": _figures(sweep, summary) if cells else [],
        "sections": [make(sweep) for make in SECTIONS.values()] if cells else [],
        "capacities": capacity_rows(planned),
        "memory_costs": memory_costs(planned),
        "failed_gates": [
            (labels[cell.arm], cell, gate) for cell in cells for gate in cell.gates if gate.failed
        ],
        "gates": _gate_counts(cells),
        "troubles": [(labels[cell.arm], cell) for cell in cells if cell.outcome != MEASURED],
        "refused": _refused(plan),
        "differences": differences(directory, cells, labels),
        "command_lines": command_lines(directory, cells, labels),
        "cells": [(labels[cell.arm], cell) for cell in sorted(cells, key=_cell_order)],
        "cell_metrics": CELL_METRICS,
        "metrics": METRICS,
        "facts": _facts(cells),
        "provenance": _provenance(directory),
    }


def _arms(rows: Iterable[VerdictRow]) -> list[list[VerdictRow]]:
    arms: dict[str, list[VerdictRow]] = {}
    for row in rows:
        arms.setdefault(row.arm, []).append(row)
    return list(arms.values())


def _banners(summary: Summary) -> list[tuple[str, str]]:
    found = []
    if summary.emulated:
        found.append(
            ("EMULATED", "an emulated engine made these figures: they are a model's, not a machine's")
        )
    if summary.synthetic:
        told = "acceptance was forced in some arms: their ratios are a ceiling, no drafter earned them"
        found.append(("SYNTHETIC ACCEPTANCE", told))
    if summary.oversubscribed:
        told = "client and engine shared a core in some cells: measured, but they get no verdict"
        found.append(("OVERSUBSCRIBED", told))
    return found


def _figures(sweep: Sweep, summary: Summary) -> list[tuple[Figure, Markup]]:
    """Return the figures that there are, each with its element and script."""
    drawn = [figure for draw in FIGURES.values() for figure in draw(sweep, summary)]
    return [(figure, _body(figure)) for figure in drawn if figure.plot is not None]


def _body(figure: Figure) -> Markup:
    assert figure.plot is not None
    html = figure.plot.to_html(
        full_html=False,
        include_plotlyjs=False,
        div_id=f"figure-{figure.name}",
        config={"displayModeBar": False, "responsive": True},
    )
    return Markup(html)  # noqa: S704 - plotly escapes its JSON, and the labels in it were escaped when drawn


def _gate_counts(cells: Iterable[CellResult]) -> list[tuple[str, int, int, int]]:
    """Return name, passed, failed and not checked."""
    counts: dict[str, Counter[bool | None]] = {}
    for cell in cells:
        for gate in cell.gates:
            counts.setdefault(gate.name, Counter())[gate.passed] += 1
    return [(name, found[True], found[False], found[None]) for name, found in sorted(counts.items())]


def _refused(plan: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    found = []
    for entry in plan.get("refused", ()):
        config = entry.get("arm", {}).get("config", {})
        drafter, layout = config.get("drafter", {}), config.get("layout", {})
        sizes = (
            "-".join(f"{key}{layout[key]}" for key in ("tp", "dp", "pp") if layout.get(key, 1) > 1) or "tp1"
        )
        matched = config.get("kv_match")
        told = f"{drafter.get('method', '?')}-k{drafter.get('k', '?')}"
        name = f"{sizes}/none-kv-matched-{matched.get('drafter', '?')}" if matched else f"{sizes}/{told}"
        found.append((name, str(entry.get("rule", "")), str(entry.get("reason", ""))))
    return found


def _cell_order(cell: CellResult) -> tuple[Any, ...]:
    return (
        cell.block,
        cell.segment,
        cell.layout,
        cell.drafter,
        cell.k,
        cell.arm_label,
        cell.level,
        cell.role,
    )


def _facts(cells: Iterable[CellResult]) -> list[tuple[str, list[Any]]]:
    """Return the distinct values of the identity's facts: more than one where the sweep was not uniform."""
    cells = list(cells)
    found = []
    for key in FACTS:
        values: list[Any] = []
        for cell in cells:
            value = cell.identity.get(key)
            if value is not None and value not in values:
                values.append(value)
        if values:
            found.append((key, values[:20]))
    return found


def _provenance(directory: Path) -> list[tuple[str, Any]]:
    path = directory / "provenance.json"
    if not path.is_file():
        return []
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        return [("provenance.json", f"is damaged: {error}")]
    return sorted(content.items()) if isinstance(content, dict) else [("provenance.json", content)]
