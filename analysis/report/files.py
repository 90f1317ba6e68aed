"""The files of a report: the page, the same as Markdown, and the figures as pictures and as data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.frame import Sweep, as_results, cells_frame
from analysis.report.context import Page, build_context
from analysis.report.markdown import render_markdown
from analysis.report.page import render_html
from analysis.report.pictures import FigureFiles, write_figures
from analysis.summary import Summary
from analysis.whole_file import write_whole
from jobs.result import CellResult

HTML, MARKDOWN = "report.html", "report.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was written."""

    html: Path
    markdown: Path
    figures: FigureFiles
    decision: str
    """What to serve with, in the words that both open with; plain text."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every file."""
        return self.html, self.markdown, *self.figures.pictures.values(), *self.figures.data.values()


def write_report(
    directory: Path,
    *,
    plan: Mapping[str, Any],
    results: Sequence[CellResult | Mapping[str, Any]],
    summary: Summary,
    pictures: bool = False,
) -> Report:
    """Write the report into a sweep's folder; an earlier one is replaced, its pictures with it.

    Args:
        directory: `results/<sweep>`; a `provenance.json` in it is shown.
        plan: content of the plan (`Plan.to_dict()`, or `plan.json` as read).
        results: all cells, whatever their outcome.
        summary: `summarise` of the same results.
        pictures: whether to draw the figures as PNG too, which takes a browser.

    Raises:
        OSError: a file cannot be written.
    """
    return write_page(build_context(_sweep(directory, plan, results), summary), pictures=pictures)


def write_page(page: Page, *, pictures: bool = False) -> Report:
    """Write a report whose content is known already; see `write_report`."""
    directory = page.directory
    directory.mkdir(parents=True, exist_ok=True)
    figures = write_figures(page.drawn, directory, pictures=pictures)
    relative = {name: path.relative_to(directory).as_posix() for name, path in figures.pictures.items()}
    return Report(
        html=write_whole(directory / HTML, render_html(page)),
        markdown=write_whole(directory / MARKDOWN, render_markdown(page, relative)),
        figures=figures,
        decision=page.decision.sentence,
    )


def render(
    directory: Path,
    *,
    plan: Mapping[str, Any],
    results: Sequence[CellResult | Mapping[str, Any]],
    summary: Summary,
) -> str:
    """Return the page alone; see `write_report`."""
    return render_html(build_context(_sweep(directory, plan, results), summary))


def _sweep(
    directory: Path, plan: Mapping[str, Any], results: Sequence[CellResult | Mapping[str, Any]]
) -> Sweep:
    cells = as_results(results)
    return Sweep(directory=directory, plan=dict(plan), cells=cells_frame(cells), results=cells)
