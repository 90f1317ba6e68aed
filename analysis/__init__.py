"""What the numbers mean: pairs, verdicts, crossovers, effects, report. Reads results only.

    from analysis import crossovers, load_sweep, verdicts

    sweep = load_sweep("results/my-sweep")
    verdicts(sweep.cells)

Functions are pure: they take and give tidy frames, and change none (`docs/python.md` lists them). A name is
imported when it is first used, so that `import analysis` costs nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.compare.comparison import compare_sweeps
    from analysis.cost import cost_frame
    from analysis.errors import ResultsError
    from analysis.factorial import combinations, effects
    from analysis.factors import swept_factors
    from analysis.figures import sweep_figures
    from analysis.fleet import fleet_value
    from analysis.frame import Sweep, cells_frame, load_sweep
    from analysis.goodput import goodput_frame, with_limits
    from analysis.others.comparison import compare as judge_others
    from analysis.pairs import pairs_frame
    from analysis.pareto import pareto_frame
    from analysis.recommendation import recommend
    from analysis.recommendation_table import recommendation_frame
    from analysis.sections import SECTIONS
    from analysis.sign_flips import flips
    from analysis.summary import summarise
    from analysis.tidy import crossovers, verdicts
    from analysis.traffic import fleet_load
    from analysis.traffic_file import read_traffic

_HOMES = {
    "SECTIONS": "sections",
    "ResultsError": "errors",
    "Sweep": "frame",
    "cells_frame": "frame",
    "combinations": "factorial",
    "compare_sweeps": "compare.comparison",
    "cost_frame": "cost",
    "crossovers": "tidy",
    "effects": "factorial",
    "fleet_load": "traffic",
    "fleet_value": "fleet",
    "flips": "sign_flips",
    "goodput_frame": "goodput",
    "judge_others": "others.comparison",
    "load_sweep": "frame",
    "pairs_frame": "pairs",
    "pareto_frame": "pareto",
    "read_traffic": "traffic_file",
    "recommend": "recommendation",
    "recommendation_frame": "recommendation_table",
    "summarise": "summary",
    "sweep_figures": "figures",
    "swept_factors": "factors",
    "verdicts": "tidy",
    "with_limits": "goodput",
}
"""Public name -> module of it. None may be called like a module, which would take its place once imported."""
_OWN_NAMES = {"judge_others": "compare"}
"""Public name -> name in its module, where that needs its module's name to be understood."""

__all__ = [
    "SECTIONS",
    "ResultsError",
    "Sweep",
    "cells_frame",
    "combinations",
    "compare_sweeps",
    "cost_frame",
    "crossovers",
    "effects",
    "fleet_load",
    "fleet_value",
    "flips",
    "goodput_frame",
    "judge_others",
    "load_sweep",
    "pairs_frame",
    "pareto_frame",
    "read_traffic",
    "recommend",
    "recommendation_frame",
    "summarise",
    "sweep_figures",
    "swept_factors",
    "verdicts",
    "with_limits",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its module, once."""
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), _OWN_NAMES.get(name, name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
