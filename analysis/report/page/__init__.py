"""The report as one HTML page: it asks for nothing, and works offline, on paper, on phones, by keyboard."""

import shlex

from analysis.report.context import STRONGEST, Page
from analysis.report.methods import METHODS
from analysis.report.page.shell import render_page
from analysis.report.page.tables import MARKS, arm_marks
from jobs.result import CellResult

CELLS = 1000
"""Cells that the table of all cells shows; a browser is slow with more."""
TROUBLES = 60
"""Cells without a measurement whose reason and last lines are shown."""


def render_html(page: Page) -> str:
    """Return the page of a report."""
    return render_page(
        "page.html",
        figures=page.drawn,
        marks=arm_marks(page.sweep.cells),
        prints_all=f"specload analyse {shlex.quote(str(page.directory))} --json",
        page=page,
        strongest=STRONGEST,
        methods=METHODS,
        cell_marks=_marks,
        most_cells=CELLS,
        most_troubles=TROUBLES,
    )


def _marks(cell: CellResult) -> list[str]:
    """Return what has to be said of all figures of a cell."""
    return [word for name, word in MARKS.items() if getattr(cell, name)]
