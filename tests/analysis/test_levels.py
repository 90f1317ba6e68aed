import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from analysis.frame import cells_frame
from analysis.levels import common_correlation, fit_levels, level_covariance
from analysis.summary import summarise
from jobs.result import CellResult

Sweep = Callable[..., list[CellResult]]


def test_common_correlation_of_simple_residuals() -> None:
    x = [1.0, -1.0, 2.0, -2.0]
    assert common_correlation(np.array([x, [3.0, -3.0, 6.0, -6.0]])) == pytest.approx(1.0)
    assert common_correlation(np.array([x, [-1.0, 1.0, -2.0, 2.0]])) == 0.0
    assert common_correlation(np.array([x, [1.0, 1.0, 1.0, 1.0]])) == 0.0
    assert common_correlation(np.array([[1.0, np.nan], [np.nan, 1.0]])) == 0.0
    assert common_correlation(np.array([x])) == 0.0


def test_common_correlation_weights_pairs_of_levels_by_the_runs_they_share() -> None:
    """Levels 1 and 2 share four runs (correlation 1), 1 and 3 two (0), 2 and 3 two (0): 4 of 8."""
    residuals = np.array([[1.0, -1.0, 1.0, -1.0], [2.0, -2.0, 2.0, -2.0], [1.0, 1.0, np.nan, np.nan]])
    assert common_correlation(residuals) == pytest.approx(0.5)


def test_correlation_is_the_share_of_the_engine_start(make_sweep: Sweep) -> None:
    """Start and cell noise alike: half of the variance is common to the levels of an engine."""
    levels = fit_levels(cells_frame(make_sweep(blocks=60, noise=0.02, start=0.02)))
    found = level_covariance(levels, "total", "tp1/ngram-k3".ljust(64, "0"))
    assert found is not None
    covariance, df = found
    assert df == 1 * 59 + 60
    scale = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(scale, scale)
    assert correlation[0, 1] == pytest.approx(0.5, abs=0.12)
    assert correlation[0, 1] == pytest.approx(correlation[1, 2])
    assert scale == pytest.approx(math.hypot(0.02, 0.02) * math.sqrt(1.5 / 60), rel=0.2)


def test_no_replicate_anywhere_gives_no_covariance(make_sweep: Sweep) -> None:
    levels = fit_levels(cells_frame(make_sweep(blocks=1, noise=0.02)))
    assert level_covariance(levels, "total", "tp1/ngram-k3".ljust(64, "0")) is None


def test_levels_are_ascending_and_split_by_what_shared_a_core(make_sweep: Sweep, true_arm: Any) -> None:
    crowded = make_sweep([true_arm(layout="tp2", label="tp2/ngram-k3")], oversubscribed=True)
    levels = fit_levels(cells_frame([*crowded, *make_sweep()]))
    assert [(level.value, level.oversubscribed) for level in levels] == [
        (1, False), (1, True), (4, False), (4, True), (16, False), (16, True),
    ]  # fmt: skip


def test_counterfactual_arms_do_not_enter_the_fits_of_the_others(make_sweep: Sweep, true_arm: Any) -> None:
    arm, loaded = true_arm(), true_arm(label="tp1/eagle3-k3-loaded", drafter="eagle3")
    results = make_sweep([arm, loaded], levels=(4,), blocks=3, noise=0.02)
    results = [
        dataclasses.replace(r, counterfactual="loaded_only") if r.drafter == "eagle3" else r for r in results
    ]
    without = [r for r in results if not r.counterfactual]
    (both,), (alone,) = fit_levels(cells_frame(results)), fit_levels(cells_frame(without))
    served = arm.label.ljust(64, "0")
    assert both.fits["total"].contrasts[served] == alone.fits["total"].contrasts[served]
    assert both.fits["total"].df == alone.fits["total"].df
    assert len(both.fits["total"].contrasts) == 2
    rows = {row.drafter: row for row in summarise(results, threshold=0.02).rows}
    assert (rows["ngram"].verdict, rows["eagle3"].verdict) == ("wins", "no verdict")
    assert rows["eagle3"].total is not None
