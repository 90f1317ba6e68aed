import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import formulas


@pytest.mark.parametrize(
    ("alpha", "k", "mal"),
    [(0.74, 3, 2.6928), (0.74, 7, 3.5003), (0.6912, 7, 3.07), (1.0, 5, 6.0), (0.0, 5, 1.0), (0.9, 0, 1.0)],
)
def test_mean_acceptance_length(alpha: float, k: int, mal: float) -> None:
    assert formulas.mean_acceptance_length(alpha, k) == pytest.approx(mal, abs=5e-4 if mal == 3.07 else 5e-5)


def test_alpha_of_the_published_length() -> None:
    assert formulas.alpha_of(3.07, 7) == pytest.approx(0.6912, abs=5e-5)
    assert formulas.alpha_of(4.0, 3) == 1.0
    assert formulas.alpha_of(1.0, 3) == pytest.approx(0.0, abs=1e-12)


@given(st.floats(0.01, 0.99), st.integers(1, 12))
def test_alpha_inverts_the_length(alpha: float, k: int) -> None:
    closed = (1 - alpha ** (k + 1)) / (1 - alpha)
    assert formulas.mean_acceptance_length(alpha, k) == pytest.approx(closed, rel=1e-9)
    assert formulas.alpha_of(closed, k) == pytest.approx(alpha, rel=1e-6)


@pytest.mark.parametrize(("mal", "k"), [(0.9, 3), (4.1, 3), (1.0, 0)])
def test_impossible_lengths_are_refused(mal: float, k: int) -> None:
    with pytest.raises(ValueError, match="no acceptance gives a mean length"):
        formulas.alpha_of(mal, k)


def test_shares_outside_0_to_1_are_refused() -> None:
    with pytest.raises(ValueError, match=r"alpha is 1\.2"):
        formulas.mean_acceptance_length(1.2, 3)
    with pytest.raises(ValueError, match="k is -1"):
        formulas.mean_acceptance_length(0.5, -1)
    with pytest.raises(ValueError, match=r"f is -0\.1"):
        formulas.speed_up_cap(-0.1)
    with pytest.raises(ValueError, match="target speed-up is 0"):
        formulas.required_decode_speed_up(0.0, 0.8)


@pytest.mark.parametrize(
    ("g", "f", "x"),
    [
        (1.2, 0.70, 1.312), (1.2, 0.83, 1.251), (1.2, 0.93, 1.218),
        (1.5, 0.70, 1.909), (1.5, 0.83, 1.671), (1.5, 0.93, 1.559),
        (2.0, 0.70, 3.500), (2.0, 0.83, 2.515), (2.0, 0.93, 2.163),
    ],
)  # fmt: skip
def test_required_decode_speed_up(g: float, f: float, x: float) -> None:
    required = formulas.required_decode_speed_up(g, f)
    assert required == pytest.approx(x, abs=5e-4)
    assert required is not None
    assert formulas.end_to_end_speed_up(f, required) == pytest.approx(g)


def test_cap_and_infeasible_targets() -> None:
    assert formulas.speed_up_cap(0.83) == pytest.approx(5.88, abs=5e-3)
    assert formulas.speed_up_cap(1.0) == math.inf
    assert formulas.required_decode_speed_up(1 / 0.17, 0.83) is None
    assert formulas.required_decode_speed_up(6.0, 0.83) is None
    assert formulas.required_decode_speed_up(5.8, 0.83) is not None


def test_published_crossover_identities() -> None:
    """MAL 3.07 at both levels; total, computed and user-speed ratios as published."""
    assert formulas.implied_step_ratio(3.07, 2.13) == pytest.approx(1.441, abs=5e-4)
    assert formulas.implied_step_ratio(3.07, 1.41) == pytest.approx(2.177, abs=5e-4)
    assert formulas.implied_token_cost(3.07, 2.13, 7) == pytest.approx(0.063, abs=5e-4)
    assert formulas.implied_token_cost(3.07, 1.41, 7) == pytest.approx(0.168, abs=5e-4)
    assert formulas.uncached_share_ratio(1.73, 1.29) == pytest.approx(1.341, abs=5e-4)
    assert formulas.uncached_share_ratio(0.80, 0.91) == pytest.approx(0.879, abs=5e-4)
    assert formulas.other_time_growth(1.29, 0.83, 2.13) == pytest.approx(2.27, abs=5e-3)
    assert formulas.other_time_growth(0.91, 0.83, 1.41) == pytest.approx(3.00, abs=5e-3)


def test_step_cost_and_ratio_agree() -> None:
    ratio = formulas.step_ratio(0.04, 0.023, 7)
    assert formulas.step_time(10.0, 0.04, 0.023, 7) == pytest.approx(10.0 * ratio)
    assert ratio == pytest.approx(1.441)
    assert formulas.predicted_ratio(3.07, ratio) == pytest.approx(2.13, abs=5e-3)
