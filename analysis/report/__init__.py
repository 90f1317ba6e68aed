"""The report: one HTML file of a sweep that works offline, and says how far each number can be trusted."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from analysis.report.context import build_context
from analysis.report.format import FILTERS
from analysis.report.section import heading, table_rows
from analysis.summary import Summary
from analysis.untrusted import for_html
from jobs.result import CellResult

NAME = "report.html"


def write_report(
    directory: Path,
    *,
    plan: Mapping[str, Any],
    results: Sequence[CellResult | Mapping[str, Any]],
    summary: Summary,
) -> Path:
    """Write `report.html` into a sweep's folder and return its path.

    Args:
        directory: `results/<sweep>`; a `provenance.json` in it is shown.
        plan: content of the plan (`Plan.to_dict()`, or `plan.json` as read).
        results: all cells, whatever their outcome.
        summary: `summarise` of the same results.
    """
    directory.mkdir(parents=True, exist_ok=True)
    target = directory / NAME
    part = directory / f".{NAME}.part"
    part.write_text(render(directory, plan=plan, results=results, summary=summary), encoding="utf-8")
    part.replace(target)  # a reader never sees half a report
    return target


def render(
    directory: Path,
    *,
    plan: Mapping[str, Any],
    results: Sequence[CellResult | Mapping[str, Any]],
    summary: Summary,
) -> str:
    """Return the report's HTML; see `write_report`."""
    folder = files("analysis.report")
    environment = jinja2.Environment(
        autoescape=True,
        finalize=for_html,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8")),
    )
    environment.filters.update(FILTERS, heading=heading, table_rows=table_rows)
    context = build_context(directory, plan=plan, results=results, summary=summary)
    style = Markup((folder / "style.css").read_text(encoding="utf-8"))  # noqa: S704 - our own file
    script = Markup(get_plotlyjs()) if context["figures"] else ""  # noqa: S704 - plotly's own bundle
    return environment.get_template("report.html").render(**context, style=style, plotly=script)
