"""The figures of a sweep, by name: pure functions of a sweep and its summary, in the order of the report.

A figure is one module here with one function, and one line in `FIGURES`; all of one kind come together, one
an objective or one a drafter. They are plotly figures, drawn alike in the report, in MLflow and in notebooks.
"""

from collections.abc import Callable

from analysis.figures.crossover import crossover
from analysis.figures.draft_length import draft_length
from analysis.figures.figure import Figure
from analysis.figures.layouts import layouts
from analysis.frame import Sweep
from analysis.summary import Summary

FIGURES: dict[str, Callable[[Sweep, Summary], tuple[Figure, ...]]] = {
    "draft_length": draft_length,
    "crossover": crossover,
    "layouts": layouts,
}
"""Name -> what draws its figures."""

__all__ = ["FIGURES", "Figure"]
