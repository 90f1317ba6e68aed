"""The ratio against the load: brackets, estimates, intervals, and what has no ratio."""

from dataclasses import replace

import pytest

from analysis.figures.crossover import crossover
from analysis.frame import cells_frame
from analysis.summary import summarise, summary_of
from jobs.result import FAILED, TREATMENT
from tests.analysis.made import Arm, made_results, made_sweep

# The published case of DESIGN section 7.
PUBLISHED = Arm(
    label="tp1/eagle3-k7",
    k=7,
    tokens=3.07,
    ratios={
        10: {
            "throughput/total_tok_s": 1.29,
            "throughput/computed_tok_s": 1.73,
            "throughput/output_tok_s": 1.29,
            "user/speed_tok_s": 2.13,
        },
        16: {
            "throughput/total_tok_s": 0.91,
            "throughput/computed_tok_s": 0.80,
            "throughput/output_tok_s": 0.91,
            "user/speed_tok_s": 1.41,
        },
    },
)


def drawn(sweep, **changes):
    summary = summary_of(sweep, **{"threshold": 0.02, **changes})
    return {figure.name: figure for figure in crossover(sweep, summary)}


def traces(figure, **wanted):
    return [
        trace
        for trace in figure.plot.data
        if all(getattr(trace, key) == value for key, value in wanted.items())
    ]


def test_the_published_crossover() -> None:
    figures = drawn(made_sweep([PUBLISHED], levels=(10, 16), blocks=2))
    assert list(figures) == ["ratio-total", "ratio-computed", "ratio-user-speed"]
    total = figures["ratio-total"]
    assert "The ratios of output throughput are the same" in total.reading
    (line,) = traces(total, name="eagle3-k7")
    assert list(line.y) == pytest.approx([1.29, 0.91])
    bracket, *_, ring = traces(total, yaxis="y2")
    assert list(bracket.x) == [10, 16]
    assert ring.x[0] == pytest.approx(14.09, abs=0.005)
    assert total.plot.layout.xaxis2.title.text == "concurrency C (live conversations)"
    assert "1.29 [1.29, 1.29] at C=10, 0.91 [0.91, 0.91] at C=16" in total.finding
    assert "falls through 1 between C=10 and C=16, near 14.1" in total.finding
    assert total.sections == ("verdicts", "crossovers")
    speed = figures["ratio-user-speed"]
    (end,) = traces(speed, yaxis="y2", mode="markers")
    assert (end.x[0], end.marker.symbol) == (16, "triangle-right-open"), "above 1 at every level tried"
    assert "not within the levels tried" in speed.finding


def test_an_interval_that_reaches_beyond_the_levels_points_there() -> None:
    arm = Arm(label="tp1/ngram-k3", tokens={1: 1.6, 4: 1.2, 16: 0.99}, step=1.0)
    figure = drawn(made_sweep([arm], levels=(1, 4, 16), blocks=4, noise=0.05, seed=3))["ratio-total"]
    (interval,) = traces(figure, yaxis="y2", mode="lines+markers")
    assert interval.x[1] == 16
    assert interval.marker.symbol == ("line-ns", "triangle-right")


def test_what_has_no_ratio_is_marked_and_said() -> None:
    arm = Arm(label="tp1/ngram-k3", tokens=1.4, step=1.2)
    sweep = made_sweep([arm], levels=(1, 4), blocks=2)
    lost = [
        replace(cell, outcome=FAILED, metrics={}) if (cell.role, cell.concurrency) == (TREATMENT, 1) else cell
        for cell in sweep.results
    ]
    figure = drawn(replace(sweep, results=lost, cells=cells_frame(lost)))["ratio-total"]
    (cross,) = traces(figure, name="no valid pair")
    assert list(cross.x) == [1]
    assert "Crosses on the floor" in figure.reading


def test_the_sweeps_own_objective_comes_first_and_a_latency_says_that_less_is_better() -> None:
    arm = Arm(label="tp1/ngram-k3", tokens=1.4, ratios={4: {"latency/ttft_p95_ms": 1.0}})
    figures = drawn(made_sweep([arm], blocks=2), objective="ttft_p95")
    assert next(iter(figures)) == "ratio-ttft-p95"
    assert figures["ratio-ttft-p95"].plot is None, "the made sweep has no TTFT"
    assert "specload sweep" in figures["ratio-ttft-p95"].missing
    assert "Below 1 is better" in figures["ratio-ttft-p95"].reading
    assert "wins on ttft_p95" not in figures["ratio-total"].finding


def test_crowded_and_forced_and_counterfactual_arms_are_told_apart() -> None:
    arms = [
        Arm(label="tp1/free-k3-a1", drafter="free", tokens=4.0, synthetic=True, requested=4.0),
        Arm(label="tp1/eagle3-k3-loaded", tokens=1.0, step=1.1, counterfactual="loaded_only"),
    ]
    sweep = made_sweep(arms, levels=(1, 4), blocks=2, oversubscribed=True)
    figure = drawn(sweep)["ratio-total"]
    (line,) = traces(figure, name="free-k3-a1")
    assert set(line.marker.symbol) == {"circle-open"}
    assert not traces(figure, name="eagle3-k3-loaded")
    for word in ("Open symbols", "Forced acceptance", "Counterfactual arms are left out"):
        assert word in figure.reading
    assert "forced acceptance" in figure.finding


def test_more_arms_than_can_be_told_apart_are_left_out_and_counted() -> None:
    arms = [Arm(label=f"tp1/ngram-k{k}", k=k, tokens=1.0 + 0.05 * k) for k in range(1, 12)]
    figure = drawn(made_sweep(arms, levels=(1, 4), blocks=1))["ratio-total"]
    names = [
        trace.name for trace in figure.plot.data if trace.mode == "lines+markers" and trace.showlegend is None
    ]
    assert names == [f"ngram-k{k}" for k in range(11, 3, -1)]
    assert "3 less relevant arms are left out" in figure.reading


def test_the_band_of_no_difference_is_as_wide_as_the_baselines_differ() -> None:
    results = made_results([Arm(label="tp1/ngram-k3", tokens=1.4)], blocks=2, levels=(1, 4))
    apart = [
        replace(
            cell,
            metrics={**cell.metrics, "throughput/total_tok_s": cell.metrics["throughput/total_tok_s"] * 1.1},
        )
        if (cell.role, cell.concurrency) == ("closing", 4)
        else cell
        for cell in results
    ]
    summary = summarise(apart, threshold=0.02)
    sweep = made_sweep([Arm(label="tp1/ngram-k3", tokens=1.4)], blocks=2, levels=(1, 4))
    (band,) = traces(crossover(replace(sweep, results=apart), summary)[0], name="no difference")
    assert list(band.y[:2]) == pytest.approx([1.02, 1.1], abs=1e-3)
