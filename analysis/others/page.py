"""Judged results of other tools as one HTML file: the shell, figures and tables of a sweep's report."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from analysis.axis import AXES
from analysis.decision_words import change
from analysis.figures.crossover import crossover
from analysis.frame import Sweep, cells_frame
from analysis.objectives import OBJECTIVES
from analysis.report.page.shell import render_page
from analysis.report.summary_tables import summary_sections
from analysis.summary import Summary
from analysis.verdict import WINS

TITLE = "Results of another tool, judged"


def render_judged(summary: Summary, words: Sequence[str]) -> str:
    """Return the page of judged results.

    Args:
        summary: what `compare` says of them.
        words: of the command that judged them.
    """
    nothing = Sweep(directory=Path(), plan={}, cells=cells_frame(()), results=[])
    figures = crossover(nothing, summary)
    command = f"specload judge {shlex.join(words)}"
    return render_page(
        "judged.html",
        figures=figures,
        marks={},
        package="analysis.others",
        prints_all=f"{command} --json",
        title=TITLE,
        command=command,
        objective=OBJECTIVES[summary.objective],
        findings=list(findings(summary)),
        caveats=summary.caveats,
        drawn=figures,
        sections=[section for section in summary_sections(summary) if len(section.frame)],
    )


def findings(summary: Summary) -> Iterator[str]:
    """Yield a sentence a load level: the best of the arms that win there, or that none does."""
    objective, axis = OBJECTIVES[summary.objective], AXES[summary.axis]
    for level in sorted({row.level for row in summary.rows}):
        rows = [row for row in summary.rows if row.level == level]
        gains = [(gain, row) for row in rows if row.verdict == WINS and (gain := row.gain(summary.objective))]
        if gains:
            gain, row = max(gains, key=lambda pair: pair[0].value)
            yield f"{axis.at(level)}: {row.label} wins with {change(gain, objective)}"
        else:
            words = ", ".join(sorted({row.verdict for row in rows}))
            yield f"{axis.at(level)}: no arm wins ({words})"
