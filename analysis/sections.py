"""The parts of the analysis, by name: each a pure function of a sweep, in the order of a report."""

from collections.abc import Callable

from analysis.bestk import best_k
from analysis.frame import Sweep
from analysis.ksweep import k_sweep
from analysis.positions import positions
from analysis.section import Section
from analysis.stepcost import step_cost

SECTIONS: dict[str, Callable[[Sweep], Section]] = {
    "k_sweep": k_sweep,
    "positions": positions,
    "step_cost": step_cost,
    "best_k": best_k,
}
"""Name -> what makes its section."""
