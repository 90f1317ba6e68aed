"""The parts of the analysis, by name: each a pure function of a sweep, in the order of a report."""

from collections.abc import Callable

from analysis.amdahl import amdahl
from analysis.bestk import best_k
from analysis.capacity_sections import capacity, memory
from analysis.ceiling import ceiling
from analysis.context import context
from analysis.conversations import conversations
from analysis.cost import cost
from analysis.decomposition import decomposition, identities
from analysis.drift import drift
from analysis.effect_sections import effects_section, layouts_section
from analysis.frame import Sweep
from analysis.goodput import goodput
from analysis.ksweep import k_sweep
from analysis.load_curves import load_curves
from analysis.pareto import pareto
from analysis.positions import positions
from analysis.recommendation_table import recommendation
from analysis.search_section import search
from analysis.section import Section
from analysis.step_time import step_time
from analysis.stepcost import step_cost

SECTIONS: dict[str, Callable[[Sweep], Section]] = {
    "search": search,
    "drift": drift,
    "conversations": conversations,
    "k_sweep": k_sweep,
    "positions": positions,
    "step_cost": step_cost,
    "step_time": step_time,
    "best_k": best_k,
    "load_curves": load_curves,
    "context": context,
    "capacity": capacity,
    "memory": memory,
    "ceiling": ceiling,
    "decomposition": decomposition,
    "identities": identities,
    "amdahl": amdahl,
    "effects": effects_section,
    "layouts": layouts_section,
    "goodput": goodput,
    "pareto": pareto,
    "cost": cost,
    "recommendation": recommendation,
}
"""Name -> what makes its section."""
