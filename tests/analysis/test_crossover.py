import math

import numpy as np
import pytest

from analysis.axis import AXES
from analysis.crossings import crossover_text
from analysis.crossover import ABOVE, BELOW, CROSSES, UNKNOWN, find_crossings, find_crossover
from analysis.interpolation import allowances, share_of_zero

CONCURRENCY = AXES["concurrency"]
TOTAL = (math.log(1.29), math.log(0.91))
COMPUTED = (math.log(1.73), math.log(0.80))


def test_published_crossover() -> None:
    (crossing,) = find_crossings((10, 16), TOTAL)
    assert (crossing.lower, crossing.upper, crossing.downward) == (10, 16, True)
    assert crossing.linear == pytest.approx(14.58, abs=5e-3)
    assert crossing.log_linear == pytest.approx(14.38, abs=5e-3)
    assert crossing.log_log == pytest.approx(14.09, abs=5e-3)
    (computed,) = find_crossings((10, 16), COMPUTED)
    assert computed.log_linear == pytest.approx(14.26, abs=5e-3)


@pytest.mark.parametrize(
    ("k", "ratios", "bracket"),
    [
        (1, (1.29, 1.28, 1.26, 1.23, 1.19, 1.14, 1.08, 1.04), None),
        (3, (1.81, 1.73, 1.65, 1.52, 1.36, 1.18, 1.03, 0.93), (256, 512)),
        (5, (2.01, 1.86, 1.73, 1.53, 1.29, 1.07, 0.90, 0.78), (128, 256)),
    ],
)
def test_published_brackets_by_draft_length(
    k: int, ratios: tuple[float, ...], bracket: tuple[int, int] | None
) -> None:
    found = find_crossover((1, 8, 16, 32, 64, 128, 256, 512), [math.log(ratio) for ratio in ratios])
    if bracket is None:
        assert found.kind == ABOVE
        assert found.main is None
    else:
        assert found.kind == CROSSES
        assert found.main is not None
        assert (found.main.lower, found.main.upper) == bracket


def test_not_within_the_levels_tried() -> None:
    above, below = find_crossover((1, 4), (0.5, 0.1)), find_crossover((1, 4), (-0.1, -0.5))
    assert (above.kind, below.kind) == (ABOVE, BELOW)
    assert "not within the levels tried: above 1 from C=1 to C=4" in crossover_text(
        above, (1, 4), CONCURRENCY
    )
    assert "below 1 from C=1 to C=4" in crossover_text(below, (1, 4), CONCURRENCY)
    assert "at C=8, the only level tried" in crossover_text(find_crossover((8,), (0.2,)), (8,), CONCURRENCY)
    assert find_crossover((), ()).kind == UNKNOWN
    assert crossover_text(find_crossover((), ()), (), CONCURRENCY) == "no ratios"


def test_every_crossing_of_a_curve_that_is_not_monotone() -> None:
    found = find_crossover((1, 4, 16, 64), (-0.1, 0.2, -0.2, 0.1))
    assert [crossing.downward for crossing in found.crossings] == [False, True, False]
    assert found.main is found.crossings[1]
    text = crossover_text(found, (1, 4, 16, 64), CONCURRENCY)
    assert text.startswith("falls through 1 between C=4 and C=16")
    assert "rises through 1 between C=1 and C=4" in text
    assert "rises through 1 between C=16 and C=64" in text


def test_only_rising() -> None:
    found = find_crossover((1, 4), (-0.1, 0.2))
    assert found.main is None
    assert crossover_text(found, (1, 4), CONCURRENCY).startswith("rises through 1 between C=1 and C=4")


def test_levels_of_an_open_loop_are_told_as_rates() -> None:
    found = find_crossover((0.5, 2.0), (0.1, -0.1))
    assert (
        crossover_text(found, (0.5, 2.0), AXES["rate"])
        == "falls through 1 between 0.5/s and 2/s, near 1 (1 to 1.29 by method)"
    )
    above = find_crossover((1.0, 2.5), (0.2, 0.1))
    assert "above 1 from x1 to x2.5" in crossover_text(above, (1.0, 2.5), AXES["rate_scale"])


def test_exactly_one_at_a_level_is_the_crossing() -> None:
    (crossing,) = find_crossings((1, 4, 16), (0.3, 0.0, -0.4))
    assert crossing.log_log == pytest.approx(4.0)


def test_running_out_of_memory_is_a_loss_without_a_point() -> None:
    covariance = np.diag([1e-4, 1e-4, 0.0])
    found = find_crossover((1, 4, 16), (0.5, 0.3, -math.inf), covariance, df=6)
    assert found.main is not None
    assert (found.main.lower, found.main.upper) == (4, 16)
    assert found.main.log_log is None
    assert found.main.linear is None
    assert crossover_text(found, (1, 4, 16), CONCURRENCY) == (
        "falls through 1 between C=4 and C=16, where memory ran out [95 %: 4 to 16]"
    )


def test_interval_covers_and_shrinks() -> None:
    wide = find_crossover((10, 16), TOTAL, np.diag([0.03**2] * 2), df=30)
    narrow = find_crossover((10, 16), TOTAL, np.diag([0.01**2] * 2), df=30)
    assert wide.low is not None
    assert wide.high is not None
    assert narrow.low is not None
    assert narrow.high is not None
    assert wide.low < narrow.low < 14.09 < narrow.high < wide.high


def test_interval_of_a_straight_curve_is_that_of_its_noise() -> None:
    """To first order the point moves by the gradient of the interpolation; independent ends of sd 0.01."""
    curve = (0.3, 0.1, -0.1, -0.3)
    found = find_crossover((4, 8, 16, 32), curve, np.diag([0.01**2] * 4), df=30)
    assert found.low is not None
    assert found.high is not None
    sd = math.log(2.0) * math.hypot(0.5, 0.5) * 0.01 / 0.2
    assert math.log(found.high / found.low) == pytest.approx(2 * 2.04 * sd, rel=0.1)


def test_without_noise_the_interval_is_what_interpolation_leaves_open() -> None:
    """A logistic curve through 1 at 11.009, its levels twice and four times apart, and two levels alone."""

    def curve(levels: tuple[float, ...]) -> list[float]:
        steep = [1.0 / (1.0 + (level / 8.0) ** -1.5) for level in levels]
        return [math.log(1.3) + (math.log(0.85) - math.log(1.3)) * share for share in steep]

    widths = []
    for levels in ((1, 2, 4, 8, 16, 32, 64), (1, 4, 16, 64), (4, 32)):
        none = np.zeros((len(levels), len(levels)))
        found = find_crossover(levels, curve(levels), none, df=30)
        assert found.low is not None
        assert found.high is not None
        assert found.low < 11.009 < found.high
        widths.append(found.high / found.low)
    assert widths[0] < 1.08 < widths[1] < 1.25 < widths[2] < 2.3


def test_interval_with_common_error_is_wider_than_with_opposed() -> None:
    common = np.full((4, 4), 0.02**2)
    opposed = common * np.outer([1.0, 1.0, -1.0, -1.0], [1.0, 1.0, -1.0, -1.0])
    widths = []
    for covariance in (common, opposed):
        found = find_crossover((4, 8, 16, 32), (0.3, 0.1, -0.1, -0.3), covariance, df=30)
        assert found.low is not None
        assert found.high is not None
        widths.append(found.high - found.low)
    assert widths[0] > 1.5 * widths[1]


def test_censored_ends_say_so() -> None:
    high = find_crossover((1, 4, 16), (0.5, 0.2, -0.01), np.diag([0.05**2] * 3), df=5)
    assert high.high is None
    assert high.high_censored
    assert not high.low_censored
    assert "above 16]" in crossover_text(high, (1, 4, 16), CONCURRENCY)
    low = find_crossover((1, 4, 16), (0.01, -0.2, -0.5), np.diag([0.05**2] * 3), df=5)
    assert low.low is None
    assert low.low_censored
    assert "[95 %: below 1 to" in crossover_text(low, (1, 4, 16), CONCURRENCY)
    sure = find_crossover((1, 4), (0.5, 0.4), np.diag([0.01**2] * 2), df=20)
    assert (sure.low, sure.high, sure.high_censored, sure.low_censored) == (None, None, True, False)


def test_simulation_repeats() -> None:
    covariance = np.diag([0.05**2] * 2)
    assert find_crossover((10, 16), TOTAL, covariance, 5.0) == find_crossover(
        (10, 16), TOTAL, covariance, 5.0
    )


def test_a_failed_level_takes_no_part_in_the_curvature_beside_it() -> None:
    worked = allowances((1, 4, 16), (0.5, 0.3, 0.2))
    failed = allowances((1, 4, 16, 64), (0.5, 0.3, 0.2, -math.inf))
    assert list(failed[:2]) == list(worked)
    assert failed[2] == 0.0


def test_curvature_that_noise_explains_is_not_allowed_for_twice() -> None:
    levels, curve = (1, 2, 4, 8, 16), (0.3, 0.1, -0.05, -0.2, -0.3)
    sure, noisy = allowances(levels, curve), allowances(levels, curve, np.diag([0.05**2] * 5))
    assert sure[1] == pytest.approx((0.3 - 0.2 - 0.05) / 2)  # half the second difference at 2, the larger one
    assert noisy[1] == 0.0


@pytest.mark.parametrize("bend", [0.0, 0.1, -0.1, 3.0, -3.0])
def test_share_of_zero_is_the_root(bend: float) -> None:
    before, after = np.array([0.2, 0.01, 0.0]), np.array([-0.1, -0.5, -0.2])
    share = share_of_zero(before, after, bend)
    assert before + (after - before) * share + bend * share * (1 - share) == pytest.approx(np.zeros(3))
