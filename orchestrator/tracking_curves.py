"""The curves of a sweep in MLflow: one run per arm, its ratios logged at their load levels. Pure functions.

MLflow draws a metric that has several steps as a line over the steps, one line a run. So the ratio against
the load by drafter is a chart that its UI offers by itself. Its charts leave out what is folded up
below another run, so these runs stand beside their sweep's run and not below it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from analysis.axis import number
from analysis.objectives import OBJECTIVES
from analysis.untrusted import markdown
from engines.digest import digest
from orchestrator import tracking_fields as fields
from orchestrator.plan import Plan
from orchestrator.tracking_note import shortened

if TYPE_CHECKING:  # pandas and scipy take a second to load, and a sweep begins without them
    from analysis.rows import Ratio, VerdictRow
    from analysis.summary import Summary

CURVE = "curve"
"""Tag `specload.kind` of these runs."""
ID = "specload.curve_id"
PREFIXES = {"concurrency": "at_C", "rate": "at_rate", "rate_scale": "at_rate_scale"}
"""Axis of the sweep -> prefix of the metrics: a section of the charts page, which cuts long names."""
THOUSANDTHS = "_x1000"
"""Ends the prefix of the metrics where levels are no whole numbers: MLflow's steps are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One value of a metric."""

    name: str
    """Metric: `at_C/ratio_total`."""
    step: int
    """Load level, or its thousandfold (`THOUSANDTHS`)."""
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """What the run of one arm shows."""

    id: str
    """Unique in the sweep."""
    name: str
    """Of the run: `tp1/eagle3-k3, emulated (quickstart-b162da04c2)`."""
    params: Mapping[str, str]
    tags: Mapping[str, str]
    points: tuple[Point, ...]

    @property
    def content(self) -> str:
        """Digest of everything that the run shows."""
        return digest(asdict(self))


def curves(plan: Plan, summary: "Summary") -> tuple[Curve, ...]:
    """Return the curve of every arm that has a ratio, in the order of the verdict table.

    What was measured while client and engine shared a core is a curve of its own: it is not to be compared.
    """
    groups: dict[tuple[str, bool], list[VerdictRow]] = {}
    for row in summary.rows:
        groups.setdefault((row.arm, row.oversubscribed), []).append(row)
    scale = 1 if all(float(row.level).is_integer() for row in summary.rows) else 1000
    found = (_curve(plan, summary, rows, scale) for rows in groups.values())
    return tuple(curve for curve in found if curve.points)


def curve_tags(plan: Plan, curve: Curve) -> dict[str, str]:
    """Return the tags of a curve's run."""
    return {
        **curve.tags,
        fields.SWEEP_ID: plan.sweep,
        fields.KIND: CURVE,
        fields.CONTENT: curve.content,
        ID: curve.id,
    }


def _curve(plan: Plan, summary: "Summary", rows: list["VerdictRow"], scale: int) -> Curve:
    first = rows[0]
    marks = {
        "emulated": any(row.emulated for row in rows),
        "synthetic": any(row.synthetic for row in rows),
        "counterfactual": bool(first.counterfactual),
        "oversubscribed": first.oversubscribed,
    }
    said = "".join(f", {name}" for name, holds in marks.items() if holds)
    name = f"{first.label}{said} ({plan.sweep})"
    verdicts = [
        f"- {markdown(row.at)}: **{row.verdict}**, {markdown(row.reason)}"
        + "".join(f"; {markdown(caveat)}" for caveat in row.caveats)
        for row in rows
    ]
    objective = OBJECTIVES[summary.objective].title
    return Curve(
        id=f"{first.arm}{'-oversubscribed' if first.oversubscribed else ''}",
        name=name,
        params={
            "study": plan.name,
            "workload": plan.workload.name,
            "drafter.method": first.drafter,
            "drafter.k": str(first.k),
            "layout": first.layout,
            "arm": first.label,
            "axis": summary.axis,
            "levels": ", ".join(number(row.level) for row in rows),
        },
        tags={
            fields.NOTE: shortened("\n".join((f"Verdicts on {objective}:", "", *verdicts))),
            "specload.arm": first.arm,
            **{
                f"specload.{mark}": fields.flag(holds)
                for mark, holds in marks.items()
                if mark != "counterfactual"
            },
            "specload.counterfactual": first.counterfactual,
        },
        points=tuple(_points(rows, PREFIXES[summary.axis] + (THOUSANDTHS if scale > 1 else ""), scale)),
    )


def _points(rows: Iterable["VerdictRow"], prefix: str, scale: int) -> Iterable[Point]:
    for row in rows:
        step = round(row.level * scale)
        values: dict[str, float | None] = {f"{prefix}/mal": row.mal}
        for name in OBJECTIVES:
            ratio: Ratio | None = row.ratio(name)
            if ratio is not None:
                values[f"{prefix}/ratio_{name}"] = ratio.value
                values[f"interval_{prefix}/ratio_{name}_lo"] = ratio.lo
                values[f"interval_{prefix}/ratio_{name}_hi"] = ratio.hi
        for name, value in fields.finite(values).items():
            yield Point(name=name, step=step, value=value)
