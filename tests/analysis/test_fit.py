import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.fit import fit_level
from analysis.frame import cells_frame
from analysis.pairs import pairs_frame
from jobs.result import CellResult

Sweep = Callable[..., list[CellResult]]


@pytest.fixture
def arms(true_arm: Any) -> tuple[Any, ...]:
    eagle = true_arm(label="tp1/eagle3-k7", drafter="eagle3", k=7, ratios={1: 2.0, 4: 1.4, 16: 0.7})
    return true_arm(), eagle


def test_recovers_known_ratios_exactly_without_noise(make_sweep: Sweep, arms: Any) -> None:
    cells = cells_frame(make_sweep(arms, levels=(4,), blocks=3, block_effect=0.3))
    fit = fit_level(cells, "total")
    values = sorted(math.exp(contrast.estimate) for contrast in fit.contrasts.values())
    assert values == pytest.approx([1.2, 1.4])
    assert fit.variance == pytest.approx(0.0, abs=1e-20)


def test_with_every_arm_in_every_block_the_contrast_is_the_mean_log_ratio(
    make_sweep: Sweep, arms: Any
) -> None:
    cells = cells_frame(make_sweep(arms, levels=(4,), blocks=4, noise=0.05))
    fit = fit_level(cells, "total")
    means = pairs_frame(cells).groupby("arm")["log_total"].mean()
    assert {arm: contrast.estimate for arm, contrast in fit.contrasts.items()} == pytest.approx(
        means.to_dict()
    )


def test_degrees_of_freedom_variance_and_correlation_of_the_balanced_design(
    make_sweep: Sweep, arms: Any
) -> None:
    blocks = 4
    fit = fit_level(cells_frame(make_sweep(arms, levels=(4,), blocks=blocks, noise=0.05)), "total")
    assert fit.df == 2 * (blocks - 1) + blocks
    for contrast in fit.contrasts.values():
        assert contrast.factor == pytest.approx(1.5 / blocks)
        assert contrast.correlation == pytest.approx(1 / 3)
        assert contrast.family == 2
        assert contrast.pairs == blocks
        assert contrast.error == pytest.approx(math.sqrt((fit.variance or 0.0) * 1.5 / blocks))


def test_one_arm_gets_the_student_interval_by_hand(make_sweep: Sweep) -> None:
    cells = cells_frame(make_sweep(levels=(4,), blocks=2, noise=0.05))
    (contrast,) = fit_level(cells, "total").contrasts.values()
    assert contrast.half_width is not None
    assert contrast.half_width == pytest.approx(stats.t.ppf(0.975, 3) * (contrast.error or 0.0))
    y = np.log(cells.sort_values(["block", "role"])["throughput/total_tok_s"].to_numpy()).reshape(2, 3)
    closing, opening, treated = y.T  # roles in alphabetical order
    residual = np.column_stack([opening, closing, treated])
    log_ratio = treated - (opening + closing) / 2
    assert contrast.estimate == pytest.approx(log_ratio.mean())
    squares = ((opening - closing) ** 2 / 2).sum() + ((log_ratio - log_ratio.mean()) ** 2).sum() * 2 / 3
    assert (contrast.error or 0.0) ** 2 == pytest.approx(squares / 3 * 1.5 / 2)
    assert residual.shape == (2, 3)


def test_residuals_are_pooled_over_layouts_but_contrasts_are_not(
    make_sweep: Sweep, arms: Any, true_arm: Any
) -> None:
    other = true_arm(layout="dp2", label="dp2/ngram-k3", ratios={4: 0.9})
    cells = cells_frame(make_sweep((*arms, other), levels=(4,), blocks=3, noise=0.02))
    fit = fit_level(cells, "total")
    families = sorted((contrast.family, contrast.estimate) for contrast in fit.contrasts.values())
    assert [family for family, _ in families] == [1, 2, 2]
    assert families[0][1] == pytest.approx(math.log(0.9), abs=0.06)
    assert fit.df == (2 * 2 + 3) + (1 * 2 + 3)


def test_without_a_replicate_there_is_no_interval(make_sweep: Sweep, arms: Any) -> None:
    fit = fit_level(cells_frame(make_sweep(arms, levels=(4,), blocks=1, noise=0.02)), "total")
    assert fit.variance is None
    assert all(contrast.half_width is None for contrast in fit.contrasts.values())


def test_an_arm_missing_in_a_block_keeps_an_interval_from_the_others(make_sweep: Sweep, arms: Any) -> None:
    results = make_sweep(arms, levels=(4,), blocks=2, noise=0.02)
    lost = next(r for r in results if r.drafter == "eagle3" and r.block == 1)
    results[results.index(lost)] = dataclasses.replace(lost, outcome="failed", cause="died", metrics={})
    fit = fit_level(cells_frame(results), "total")
    by_pairs = {contrast.pairs: contrast for contrast in fit.contrasts.values()}
    assert set(by_pairs) == {1, 2}
    assert by_pairs[1].half_width is not None
    assert by_pairs[2].half_width is not None
    assert by_pairs[1].half_width > by_pairs[2].half_width


def test_cells_without_a_baseline_in_their_segment_are_left_out(make_sweep: Sweep) -> None:
    results = make_sweep(levels=(4,), blocks=2, noise=0.02)
    moved = [
        dataclasses.replace(r, segment=1) if r.role == "treatment" and r.block == 1 else r for r in results
    ]
    (contrast,) = fit_level(cells_frame(moved), "total").contrasts.values()
    assert contrast.pairs == 1


def test_empty_level() -> None:
    assert fit_level(cells_frame([]), "total").contrasts == {}


def simulated(
    cells: pd.DataFrame, ratios: dict[str, float], *, noise: float, start: float, seed: int
) -> pd.DataFrame:
    """Return the same cells with throughputs drawn anew."""
    generator = np.random.default_rng(seed)
    blocks = generator.normal(0.0, 0.1, size=cells["block"].max() + 1)
    logs = blocks[cells["block"].to_numpy()] + generator.normal(
        0.0, math.hypot(noise, start), size=len(cells)
    )
    logs += [math.log(ratios[label]) for label in cells["label"]]
    return cells.assign(**{"throughput/total_tok_s": np.exp(logs)})


@pytest.mark.parametrize(("count", "blocks"), [(1, 2), (1, 4), (4, 2)])
def test_interval_covers_the_truth_of_all_arms_at_once(
    make_sweep: Sweep, true_arm: Any, count: int, blocks: int
) -> None:
    """Simultaneous 95 % intervals in 200 sweeps with fixed seeds."""
    arms = [true_arm(label=f"tp1/x-k{k}", k=k, ratios={4: 1.0}) for k in range(1, count + 1)]
    cells = cells_frame(make_sweep(arms, levels=(4,), blocks=blocks))
    ratios = {"tp1/none": 1.0} | {arm.label: 1.0 + arm.k / 10 for arm in arms}
    hits = 0
    for seed in range(200):
        fit = fit_level(simulated(cells, ratios, noise=0.02, start=0.02, seed=seed), "total")
        errors = {
            arm: abs(contrast.estimate - math.log(ratios[arm.rstrip("0")]))
            for arm, contrast in fit.contrasts.items()
        }
        hits += all(error < (fit.contrasts[arm].half_width or 0.0) for arm, error in errors.items())
    assert 0.915 <= hits / 200 <= 0.985
