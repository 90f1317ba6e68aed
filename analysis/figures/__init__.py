"""The figures of a sweep, by name: pure functions of a sweep and its summary, in the order of the report.

A figure is one module here with one function, and one line in `FIGURES`; all of one kind come together, one
an objective or one a drafter. They are plotly figures, drawn alike in the report, in MLflow and in notebooks.
"""

from collections.abc import Callable

from analysis.figures.amdahl import amdahl
from analysis.figures.capacity import capacity
from analysis.figures.ceiling import ceiling
from analysis.figures.context import context
from analysis.figures.cost import cost
from analysis.figures.crossover import crossover
from analysis.figures.cycle import cycle
from analysis.figures.decomposition import decomposition
from analysis.figures.draft_length import draft_length
from analysis.figures.figure import Figure
from analysis.figures.layouts import layouts
from analysis.figures.misfit import misfit
from analysis.figures.pareto import pareto
from analysis.figures.speed import speed
from analysis.figures.step_time import step_time
from analysis.frame import Sweep
from analysis.summary import Summary, summary_of

FIGURES: dict[str, Callable[[Sweep, Summary], tuple[Figure, ...]]] = {
    "cycle": cycle,
    "speed": speed,
    "draft_length": draft_length,
    "crossover": crossover,
    "layouts": layouts,
    "step_time": step_time,
    "amdahl": amdahl,
    "capacity": capacity,
    "ceiling": ceiling,
    "decomposition": decomposition,
    "pareto": pareto,
    "cost": cost,
    "misfit": misfit,
    "context": context,
}
"""Name -> what draws its figures."""


def sweep_figures(sweep: Sweep, summary: Summary | None = None) -> dict[str, Figure]:
    """Return every figure of a sweep by its name, in the order of the report; an absent one says why.

    Args:
        sweep: the sweep.
        summary: its `summary_of`; made with the plan's own threshold and objective where None.
    """
    if summary is None:
        summary = summary_of(sweep)
    return {figure.name: figure for draw in FIGURES.values() for figure in draw(sweep, summary)}


__all__ = ["FIGURES", "Figure", "sweep_figures"]
