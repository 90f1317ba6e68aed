"""A comparison as one HTML file that works offline: the shell, tables and figure of a sweep's report."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from analysis.banners import BANNERS
from analysis.compare.comparison import Comparison
from analysis.compare.figure import comparison_figure
from analysis.report.page.shell import render_page
from analysis.section import Section

TEMPLATE = "comparison.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """What the template shows."""

    title: str
    a: Path
    b: Path
    banners: tuple[tuple[str, str], ...]
    findings: tuple[str, ...]
    caveats: tuple[str, ...]
    sections: tuple[Section, ...]


def render_comparison(found: Comparison) -> str:
    """Return the page of a comparison."""
    figure = comparison_figure(found)
    frame = found.section("ratios").frame
    page = _Page(
        title=_title(found.a.name, found.b.name),
        a=found.a.sweep.directory,
        b=found.b.sweep.directory,
        banners=tuple(words for name, words in BANNERS.items() if name in frame and bool(frame[name].any())),
        findings=found.findings,
        caveats=found.caveats,
        sections=found.sections,
    )
    return render_page(
        TEMPLATE,
        figures=[figure],
        marks={},
        package="analysis.compare",
        page=page,
        figure=figure,
        prints_all=shlex.join(["specload", "compare", str(page.a), str(page.b), "--json"]),
    )


def _title(a: str, b: str) -> str:
    return f"{a}, measured twice" if a == b else f"{a} against {b}"
