import numpy as np
import pytest
from scipy import stats

from analysis.fit import mean_correlation
from analysis.leastsquares import solve
from analysis.multiplicity import critical_value, simultaneous_coverage

# Dunnett's two-sided 5 % points for equal group sizes (correlation 1/2), as printed in any table of them.
TABLE = {
    (5, 2): 3.03,
    (5, 3): 3.29,
    (10, 2): 2.57,
    (10, 3): 2.76,
    (20, 2): 2.38,
    (20, 3): 2.54,
    (20, 4): 2.65,
}


@pytest.mark.parametrize(("where", "value"), TABLE.items())
def test_dunnett_table(where: tuple[int, int], value: float) -> None:
    df, comparisons = where
    assert critical_value(comparisons, df, 0.5) == pytest.approx(value, abs=6e-3)


@pytest.mark.parametrize("df", [1, 3, 30])
def test_one_comparison_is_student(df: int) -> None:
    assert critical_value(1, df, 0.0) == pytest.approx(stats.t.ppf(0.975, df))
    assert simultaneous_coverage(float(stats.t.ppf(0.975, df)), 1, df, 0.3) == pytest.approx(0.95, abs=2e-4)


@pytest.mark.parametrize("df", [1, 2, 3, 8])
@pytest.mark.parametrize("comparisons", [2, 3, 8])
def test_between_student_and_bonferroni(df: int, comparisons: int) -> None:
    value = critical_value(comparisons, df, 1 / 3)
    assert stats.t.ppf(0.975, df) < value <= stats.t.ppf(1 - 0.025 / comparisons, df)


def test_agrees_with_simulation() -> None:
    generator = np.random.default_rng(5)
    baseline = generator.standard_normal((200_000, 1)) / np.sqrt(4)
    arms = generator.standard_normal((200_000, 3)) / np.sqrt(2)
    spread = np.sqrt(generator.chisquare(5, size=(200_000, 1)) / 5)
    largest = np.abs((arms - baseline) / np.sqrt(1 / 2 + 1 / 4) / spread).max(axis=1)
    assert np.mean(largest < critical_value(3, 5, 1 / 3)) == pytest.approx(0.95, abs=0.002)


def test_agrees_with_scipy_where_they_overlap() -> None:
    """scipy's Dunnett test has no blocks: one stratum, 4 values an arm and 8 of the baseline."""
    generator = np.random.default_rng(11)
    control, arms = generator.normal(1.0, 0.02, 8), generator.normal(1.05, 0.02, (3, 4))
    theirs = stats.dunnett(*arms, control=control, rng=np.random.default_rng(0)).confidence_interval(0.95)
    y = np.concatenate([control, arms.ravel()])
    own = np.concatenate([np.full(8, -1), np.repeat(np.arange(3), 4)])
    solution = solve(np.zeros(20, dtype=int), own, y[:, None])
    assert solution is not None
    assert solution.df == 16
    error = np.sqrt(float((solution.residuals**2).sum()) / solution.df * np.diag(solution.shares))
    half = critical_value(3, solution.df, mean_correlation(solution.shares)) * error
    assert solution.estimates[:, 0] - half == pytest.approx(theirs.low, abs=2e-4)
    assert solution.estimates[:, 0] + half == pytest.approx(theirs.high, abs=2e-4)
