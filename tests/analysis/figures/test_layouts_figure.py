"""Layout and drafter together: the index, its intervals, hit rates, and the control of the load."""

from dataclasses import replace

import pytest

from analysis.figures.layouts import layouts
from analysis.frame import cells_frame
from analysis.summary import summary_of
from tests.analysis.figures.sliders import check_slider, stepped
from tests.analysis.made import Arm, made_sweep

DEVICES = 2


def drawn(sweep):
    return layouts(sweep, summary_of(sweep, threshold=0.02))


def heights(figure):
    return {
        (trace.name, place): height
        for trace in figure.data
        if trace.yaxis in (None, "y")
        for place, height in zip(trace.x, trace.y, strict=True)
    }


@pytest.fixture(scope="module")
def crossed():
    """A drafter that gains on tp2 and loses on dp2; bare, dp2 is three times as fast at C=8."""
    arms = [
        Arm(label="tp2/eagle3-k3", layout="tp2", tokens=2.0, step=1.0),
        Arm(label="dp2/eagle3-k3", layout="dp2", tokens=1.0, step=1.25),
    ]
    sweep = made_sweep(arms, levels=(2, 8), blocks=3, share=0.9999, noise=0.01, devices=DEVICES)
    results = [
        replace(
            cell,
            metrics={
                **cell.metrics,
                "throughput/total_tok_s": cell.metrics["throughput/total_tok_s"]
                * (1.5 if cell.layout == "dp2" else 1.0),
                "cache/hit_rate": 0.4 if cell.layout == "dp2" else 0.6,
            },
        )
        for cell in sweep.results
    ]
    return replace(sweep, results=results, cells=cells_frame(results))


def test_every_combination_is_indexed_to_the_best_with_intervals(crossed) -> None:
    (figure,) = drawn(crossed)
    found = heights(figure.plot)
    assert found["eagle3-k3", "tp2"] == 100.0
    assert found["none", "dp2"] == pytest.approx(75.0, rel=0.02)
    assert found["none", "tp2"] == pytest.approx(50.0, rel=0.02)
    assert found["eagle3-k3", "dp2"] == pytest.approx(60.0, rel=0.02)
    drafter = next(trace for trace in figure.plot.data if trace.name == "eagle3-k3")
    assert list(drafter.x) == ["dp2", "tp2"]
    assert drafter.error_y.array[0] > 0.5
    assert drafter.error_y.array[1] == 0.0, "the best is what the others are compared with"
    assert figure.sections == ("layouts", "effects")
    assert "At C=8 the best is tp2 with eagle3-k3; next dp2 with no drafter at 7" in figure.finding
    assert figure.finding.endswith("without a drafter dp2 instead.")


def test_hit_rates_stand_below_and_the_control_moves_the_load(crossed) -> None:
    (figure,) = drawn(crossed)
    rates = [trace for trace in figure.plot.data if trace.yaxis == "y2"]
    assert [dict(zip(trace.x, trace.y, strict=True)) for trace in rates] == [{"dp2": 40.0, "tp2": 60.0}] * 2
    check_slider(figure.plot)
    assert [step.label for step in figure.plot.layout.sliders[0].steps] == ["C=2", "C=8"]
    first = stepped(figure.plot, 0)
    assert first.layout.xaxis2.title.text == "layout, at C=2"
    assert heights(first) != heights(figure.plot)


def test_one_layout_shows_its_drafters_against_each_other() -> None:
    arms = [Arm(label="tp1/eagle3-k3", tokens=2.0), Arm(label="tp1/ngram-k3", drafter="ngram", tokens=1.6)]
    sweep = made_sweep(arms, levels=(4,), blocks=2, share=0.9999)
    (figure,) = drawn(sweep)
    assert heights(figure.plot) == {
        ("none", "tp1"): pytest.approx(50.0, rel=1e-3),
        ("eagle3-k3", "tp1"): 100.0,
        ("ngram-k3", "tp1"): pytest.approx(80.0, rel=1e-3),
    }
    assert not figure.plot.layout.sliders, "one level has nothing to be moved to"


def test_crowded_cells_are_never_shown() -> None:
    sweep = made_sweep([Arm(label="tp1/eagle3-k3")], blocks=2, oversubscribed=True)
    (figure,) = drawn(sweep)
    assert figure.plot is None
    assert "specload" in figure.missing
