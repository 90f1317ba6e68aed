"""Measured against fitted, and contexts: what is drawn, and what is said of it."""

from dataclasses import replace

import pytest

from analysis.figures.context import context
from analysis.figures.misfit import misfit
from analysis.frame import cells_frame
from analysis.summary import summary_of
from tests.analysis.made import Arm, made_sweep


def arms_of(*ks: int) -> list[Arm]:
    """A drafter whose acceptance is alpha .7 and whose step is 1.1 + .08 K."""
    return [
        Arm(label=f"tp1/eagle3-k{k}", k=k, tokens=sum(0.7**i for i in range(k + 1)), step=1.1 + 0.08 * k)
        for k in ks
    ]


def drawn(figure, arms, **changes):
    sweep = made_sweep(arms, **changes)
    return figure(sweep, summary_of(sweep, threshold=0.02))


def test_points_are_measured_and_lines_fitted() -> None:
    (figure,) = drawn(misfit, arms_of(1, 3, 7), levels=(4, 8), blocks=2, noise=0.01)
    points = [trace for trace in figure.plot.data if trace.mode == "markers"]
    assert [tuple(trace.x) for trace in points] == [(1, 3, 7)] * 4
    assert points[0].y[2] == pytest.approx(sum(0.7**i for i in range(8)))
    assert min(points[1].error_y["array"]) > 0.0
    lines = [trace for trace in figure.plot.data if trace.mode == "lines"]
    assert lines[1].y[-1] == pytest.approx(1.66, abs=0.05)
    assert "alpha 0.700, fits" in lines[0].hovertemplate
    assert "tp1/eagle3: one alpha misses by" in figure.finding


@pytest.mark.parametrize("changes", [{"arms": arms_of(3)}, {"arms": arms_of(1, 3), "oversubscribed": True}])
def test_one_length_or_shared_cores_have_nothing_to_hold_lines_against(changes) -> None:
    (figure,) = drawn(misfit, **changes)
    assert figure.plot is None
    assert "drafter.k=1,3,5,7" in figure.missing


def long_context(short: float, long: float, mal: float = 2.0) -> dict[int, dict[str, float | None]]:
    return {
        4: {
            f"context/{figure}_{name}": value
            for name, speed in (("0_1k", short), ("16k_64k", long))
            for figure, value in (("speed_tok_s", speed), ("tokens_per_chunk", mal), ("mal", mal))
        }
    }


def test_speed_that_falls_while_acceptance_stays_is_the_steps() -> None:
    made = made_sweep([Arm(label="tp1/eagle3-k3", figures=long_context(120.0, 20.0))], blocks=2)
    plain = long_context(100.0, 40.0, 1.0)[4]
    results = [cell if cell.k else replace(cell, metrics={**cell.metrics, **plain}) for cell in made.results]
    sweep = replace(made, results=results, cells=cells_frame(results))
    (figure,) = context(sweep, summary_of(sweep, threshold=0.02))
    lengths, ratios = figure.plot.data
    assert list(lengths.x) == ["below 1,000", "16,000 to 64,000"]
    assert list(lengths.y) == pytest.approx([2.0, 2.0])
    assert list(ratios.y) == pytest.approx([1.2, 0.5])
    assert "acceptance length 2.00 to 2.00, decode speed over the baseline's 1.20" in figure.finding


def test_one_range_of_contexts_says_what_would_tell_more() -> None:
    (figure,) = drawn(context, [Arm(label="tp1/eagle3-k3", figures={4: {"context/speed_tok_s_0_1k": 100.0}})])
    assert figure.plot is None
    assert "specload sweep" in figure.missing
