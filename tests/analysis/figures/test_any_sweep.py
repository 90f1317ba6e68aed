"""No sweep, however poor, breaks a figure: what has nothing to draw says why and what would measure it."""

import re
from dataclasses import replace

import pytest

from analysis.figures import sweep_figures
from analysis.frame import Sweep, cells_frame
from jobs.result import FAILED, TREATMENT
from tests.analysis.made import Arm, made_sweep

REAL = Arm(label="tp1/eagle3-k3", tokens=2.0, step=1.3)
FREE = Arm(label="tp1/free-k3-a1", drafter="free", tokens=4.0, synthetic=True, requested=4.0)
LOADED = Arm(label="tp1/eagle3-k3-loaded", tokens=1.0, step=1.1, counterfactual="loaded_only")


def changed(sweep: Sweep, **changes) -> Sweep:
    """Return the sweep with every cell changed."""
    results = [replace(cell, **changes) for cell in sweep.results]
    return replace(sweep, results=results, cells=cells_frame(results))


def poor(sweep: Sweep, keep) -> Sweep:
    """Return the sweep with only those metrics whose names are kept."""
    results = [
        replace(cell, metrics={name: value if keep(name) else None for name, value in cell.metrics.items()})
        for cell in sweep.results
    ]
    return replace(sweep, results=results, cells=cells_frame(results))


def some_failed(sweep: Sweep) -> Sweep:
    results = [
        replace(cell, outcome=FAILED, cause="out_of_memory", metrics={}) if cell.role == TREATMENT else cell
        for cell in sweep.results
    ]
    return replace(sweep, results=results, cells=cells_frame(results))


def baselines(sweep: Sweep) -> Sweep:
    results = [cell for cell in sweep.results if cell.role != TREATMENT]
    return replace(sweep, results=results, cells=cells_frame(results))


SWEEPS = {
    "no cells": lambda: made_sweep([], levels=()),
    "baselines only": lambda: baselines(made_sweep([REAL])),
    "all failed": lambda: changed(made_sweep([REAL]), outcome=FAILED, metrics={}),
    "drafters failed": lambda: some_failed(made_sweep([REAL], levels=(1, 8), blocks=2)),
    "an open loop": lambda: made_sweep([REAL], levels=(2,), concurrency=None, rate=2.0),
    "oversubscribed only": lambda: made_sweep([REAL], blocks=2, oversubscribed=True),
    "throughput only": lambda: poor(
        made_sweep([REAL], blocks=2), lambda name: name.startswith("throughput/total")
    ),
    "forced and counterfactual": lambda: made_sweep([FREE, LOADED], levels=(1, 8), blocks=2, noise=0.01),
}


@pytest.mark.parametrize("kind", SWEEPS)
def test_every_figure_is_drawn_or_says_why_not(kind: str) -> None:
    sweep = SWEEPS[kind]()
    for name, figure in sweep_figures(sweep).items():
        if figure.plot is None:
            assert "specload" in figure.missing, f"{name} does not name the command that would measure it"
        else:
            assert figure.plot.data, name
            assert not re.search(r"\b(nan|None|inf)\b", figure.finding), figure.finding
