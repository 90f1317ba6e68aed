"""The parts of the analysis, by name: each a pure function of a sweep, in the order of a report."""

from collections.abc import Callable

from analysis.frame import Sweep
from analysis.section import Section

SECTIONS: dict[str, Callable[[Sweep], Section]] = {}
"""Name -> what makes its section."""
