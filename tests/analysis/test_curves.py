"""Curves over K: published acceptance lengths, the line of step times, and how both miss."""

import math

import numpy as np
import pytest

from analysis import curves
from analysis.curves import FITS, MISSES, UNTESTED, best_length, fit_alpha, fit_steps, position_rates
from analysis.formulas import mean_acceptance_length

PUBLISHED = {
    "kimi-k3": (1.84, 2.45, 2.87, 3.22, 3.44, 3.54, 3.78, 3.88),
    "glm-5.2": (1.84, 2.50, 2.99, 3.33, 3.61, 3.78, 3.91, 4.06),
    "deepseek-v4 on": (1.79, 2.27, 2.49, 2.54, 2.55, 2.55, 2.54, 2.58),
    "deepseek-v4 off": (1.92, 2.61, 2.97, 3.00, 3.10, 3.16, 3.00, 3.11),
    "minimax-m3 on": (1.78, 2.38, 2.83, 3.11, 3.35, 3.45, 3.53, 3.74),
    "minimax-m3 off": (1.84, 2.52, 2.93, 3.41, 3.59, 3.57, 3.85, 4.06),
}


def lengths(name: str) -> dict[int, float]:
    return dict(enumerate(PUBLISHED[name], start=1))


@pytest.mark.parametrize(
    ("name", "cost", "best", "ratio"),
    [
        ("kimi-k3", 0.05, 7, 2.8), ("kimi-k3", 0.1, 4, 2.3), ("kimi-k3", 0.9, 0, 1.0),
        ("glm-5.2", 0.05, 6, 2.9077), ("glm-5.2", 0.1, 5, 2.4067), ("glm-5.2", 0.4, 2, 1.3889),
        ("deepseek-v4 on", 0.02, 4, 2.3519), ("deepseek-v4 on", 0.1, 3, 1.9154),
        ("deepseek-v4 on", 0.4, 1, 1.2786), ("deepseek-v4 off", 0.02, 6, 2.8214),
        ("deepseek-v4 off", 0.05, 3, 2.5826), ("deepseek-v4 off", 0.9, 1, 1.0105),
        ("minimax-m3 on", 0.1, 5, 2.2333), ("minimax-m3 off", 0.02, 8, 3.5),
        ("minimax-m3 off", 0.1, 4, 2.4357),
    ],
)  # fmt: skip
def test_best_length_of_published_curves(name: str, cost: float, best: int, ratio: float) -> None:
    assert best_length(lengths(name), cost) == (best, pytest.approx(ratio, abs=5e-5))


def test_a_fixed_cost_moves_the_best_length_up_and_ties_go_to_the_shorter() -> None:
    assert best_length(lengths("glm-5.2"), 0.2) == (3, pytest.approx(2.99 / 1.6))
    assert best_length(lengths("glm-5.2"), 0.2, 0.5) == (4, pytest.approx(3.33 / 2.3))
    assert best_length({1: 1.1, 2: 1.2}, 0.1) == (0, 1.0)


def test_one_alpha_does_not_fit_glm() -> None:
    fit = fit_alpha(lengths("glm-5.2"))
    assert fit.word == MISSES
    assert fit.value == pytest.approx(0.786, abs=5e-3)
    assert fit.misfit[1] == pytest.approx(1.84 / (1 + fit.value) - 1)
    assert fit.worst == fit.misfit[2] > 0.035
    assert fit.misfit[7] < -0.02, "the last positions are worse than the first"
    assert {name: fit_alpha(lengths(name)).word for name in PUBLISHED} == dict.fromkeys(PUBLISHED, MISSES)


def test_one_alpha_fits_what_it_made() -> None:
    made = {k: mean_acceptance_length(0.74, k) for k in (1, 3, 5, 7)}
    fit = fit_alpha(made)
    assert fit.value == pytest.approx(0.74, abs=1e-6)
    assert (fit.word, fit.spare) == (FITS, 3)
    assert fit_alpha({7: 3.07}).value == pytest.approx(0.6912, abs=5e-5)
    assert fit_alpha({7: 3.07}).word == UNTESTED


def test_positions_of_glm_are_its_increments() -> None:
    """The last two rise (.13, .15), which no position can: they become their mean."""
    rates = position_rates(lengths("glm-5.2"))
    assert rates == pytest.approx((0.84, 0.66, 0.49, 0.34, 0.28, 0.17, 0.14, 0.14))


def test_lengths_that_fall_give_rates_that_do_not_rise_or_fall_below_nothing() -> None:
    rates = position_rates(lengths("deepseek-v4 on"))
    assert np.all(np.diff(rates) <= 1e-12)
    assert min(rates) >= 0.0
    assert rates[:3] == pytest.approx((0.79, 0.48, 0.22))
    assert sum(rates[4:]) == pytest.approx(0.04, abs=1e-9)
    assert position_rates({3: 2.5}) == pytest.approx((0.5, 0.5, 0.5))
    assert position_rates({}) == ()


@pytest.mark.parametrize("noise", [0.002, 0.02])
def test_the_interval_of_alpha_covers_the_truth(noise: float) -> None:
    generator = np.random.default_rng(1)
    inside = 0
    for _ in range(200):
        values = {
            k: np.log(mean_acceptance_length(0.7, k)) + generator.normal(0.0, noise, 4) for k in (1, 3, 5)
        }
        spread = curves.pooled_error({k: list(own) for k, own in values.items()})
        assert spread is not None
        fit = fit_alpha({k: float(np.exp(own.mean())) for k, own in values.items()}, *spread)
        inside += fit.low <= 0.7 <= fit.high
    assert 0.92 <= inside / 200 <= 1.0


def shares(count: int, blocks: int) -> np.ndarray:
    """What arms that share two baselines a block have: (1 + 1/2) / blocks, and 1/2 / blocks in common."""
    return (np.eye(count) + 0.5) / blocks


def test_the_line_of_step_times_is_found_exactly() -> None:
    fit = fit_steps({k: 1.1 + 0.06 * k for k in (1, 3, 7)}, shares(3, 4), 1e-4, 9)
    assert (fit.fixed, fit.value) == (pytest.approx(0.1), pytest.approx(0.06))
    assert fit.low < 0.06 < fit.high
    assert fit.fixed_low < 0.1 < fit.fixed_high
    assert (fit.word, fit.fixed_is_zero) == (FITS, False)


def test_two_lengths_cannot_tell_a_fixed_cost() -> None:
    fit = fit_steps({3: 1.3, 7: 1.5}, shares(2, 1), None, 0)
    assert fit.fixed_is_zero
    assert math.isnan(fit.low)
    assert fit.spare == 1
    assert fit.word == MISSES, "1 + sK misses one of them by more than 2 %"
    alone = fit_steps({5: 1.5}, shares(1, 1), None, 0)
    assert (alone.value, alone.word) == (pytest.approx(0.1), UNTESTED)


def test_a_bend_is_flagged_when_noise_does_not_explain_it() -> None:
    """A second kernel from K=5 on: the step jumps by a fifth."""
    bent = {1: 1.05, 3: 1.15, 5: 1.45, 7: 1.55}
    assert fit_steps(bent, shares(4, 4), 1e-4, 12).word == MISSES
    noisy = fit_steps(bent, shares(4, 2), 0.02, 6)
    assert noisy.word == FITS
    assert noisy.p > 0.05


def test_the_interval_of_s_covers_the_truth_with_errors_that_go_together() -> None:
    generator = np.random.default_rng(2)
    covariance = shares(3, 4) * 0.02**2
    inside = 0
    for _ in range(200):
        logs = np.log([1.2, 1.4, 1.8]) + generator.multivariate_normal(np.zeros(3), covariance)
        variance = 0.02**2 * generator.chisquare(12) / 12
        fit = fit_steps(dict(zip((1, 3, 7), np.exp(logs), strict=True)), shares(3, 4), variance, 12)
        inside += fit.low <= 0.1 <= fit.high
    assert 0.92 <= inside / 200 <= 0.99
