"""Drift of the baselines, on sweeps whose closing baselines were moved by a known factor."""

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from analysis.drift import drift, drift_frame
from analysis.frame import Sweep, cells_frame
from jobs.result import CLOSING, CellResult

Make = Callable[..., list[CellResult]]
TOTAL = "throughput/total_tok_s"


def moved(results: list[CellResult], factor: Callable[[int], float]) -> list[CellResult]:
    """Closing baselines with their throughput times a factor of the block."""
    return [
        dataclasses.replace(r, metrics={**r.metrics, TOTAL: (r.metrics[TOTAL] or 0.0) * factor(r.block)})
        if r.role == CLOSING
        else r
        for r in results
    ]


def test_a_steady_drift_is_told_with_its_size(make_sweep: Make) -> None:
    results = moved(make_sweep(blocks=4, noise=1e-4), lambda _: 0.97)
    frame = drift_frame(cells_frame(results))
    assert frame["level"].isna().sum() == 1  # over all levels
    assert frame["close_open"].to_numpy() == pytest.approx(np.full(4, 0.97), abs=1e-3)
    assert frame["spread"].to_numpy() == pytest.approx(np.full(4, 1 / 0.97 - 1), abs=1e-3)
    assert (frame["segments"] == 4).all()
    sweep = Sweep(directory=Path(), plan={}, cells=cells_frame(results), results=results)
    told = [note for note in drift(sweep).notes if "steady drift" in note]
    assert len(told) == 1
    assert "total throughput was -3.0%" in told[0]


def test_mean_and_slope_by_hand(make_sweep: Make) -> None:
    gaps = [0.00, 0.03, 0.01, 0.06]
    results = moved(make_sweep(blocks=4, levels=(4,)), lambda block: math.exp(gaps[block]))
    (row,) = drift_frame(cells_frame(results)).to_dict("records")
    half = stats.t.ppf(0.975, 3) * np.std(gaps, ddof=1) / 2.0
    assert row["close_open"] == pytest.approx(math.exp(0.025))
    assert row["close_open_lo"] == pytest.approx(math.exp(0.025 - half))
    assert row["close_open_hi"] == pytest.approx(math.exp(0.025 + half))
    assert row["per_block"] == pytest.approx(0.016)  # (-1.5 x 0 - .5 x .03 + .5 x .01 + 1.5 x .06) / 5
    assert row["per_block_lo"] < 0.0 < row["per_block_hi"]
    assert row["spread"] == pytest.approx(math.expm1(math.sqrt((0.03**2 + 0.01**2 + 0.06**2) / 4)))


def test_without_drift_nothing_is_warned_of_and_two_blocks_have_no_slope(make_sweep: Make) -> None:
    results = make_sweep(blocks=2, noise=0.01, seed=4)
    sweep = Sweep(directory=Path(), plan={}, cells=cells_frame(results), results=results)
    section = drift(sweep)
    assert section.frame["per_block"].isna().all()
    assert len(section.notes) == 1


def test_without_closing_baselines_the_section_says_what_would_help(make_sweep: Make) -> None:
    results = make_sweep(blocks=2, closing=False)
    sweep = Sweep(directory=Path(), plan={}, cells=cells_frame(results), results=results)
    section = drift(sweep)
    assert section.frame.empty
    assert "specload sweep" in section.missing
    nothing = Sweep(directory=Path(), plan={}, cells=cells_frame([]), results=[])
    assert drift(nothing).frame.empty
