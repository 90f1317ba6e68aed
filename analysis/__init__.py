"""What the numbers mean: pairs, verdicts, crossovers, effects, report. Reads results only.

    from analysis import crossovers, load_sweep, verdicts

    sweep = load_sweep("results/my-sweep")
    verdicts(sweep.cells)

Every function here is pure and takes and gives tidy frames (`docs/python.md` lists them). A name is imported
when it is first used, so that `import analysis` costs nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.errors import ResultsError
    from analysis.factorial import combinations, effects
    from analysis.frame import Sweep, cells_frame, load_sweep
    from analysis.pairs import pairs_frame
    from analysis.tidy import crossovers, verdicts

_HOMES = {
    "ResultsError": "errors",
    "Sweep": "frame",
    "cells_frame": "frame",
    "combinations": "factorial",
    "crossovers": "tidy",
    "effects": "factorial",
    "load_sweep": "frame",
    "pairs_frame": "pairs",
    "verdicts": "tidy",
}
"""Public name -> module of it."""

__all__ = [
    "ResultsError",
    "Sweep",
    "cells_frame",
    "combinations",
    "crossovers",
    "effects",
    "load_sweep",
    "pairs_frame",
    "verdicts",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its module, once."""
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
