"""The ceiling ladder and the waterfall: rungs and parts with known answers, level by level."""

import math

import pytest

from analysis.figures.ceiling import ceiling
from analysis.figures.decomposition import decomposition
from analysis.summary import summary_of
from tests.analysis.figures.sliders import check_slider, stepped
from tests.analysis.made import Arm, made_sweep

LEVELS = (2, 16)
REAL = Arm(label="tp1/eagle3-k3", tokens=2.4, step={2: 1.2, 16: 2.0}, other=1.3)
PERFECT = Arm(label="tp1/free-k3-a1", drafter="free", tokens=4.0, step=1.25, synthetic=True, requested=4.0)
LOADED = Arm(label="tp1/eagle3-k3-loaded", tokens=1.0, step=1.1, counterfactual="loaded_only")
PLAN = {"arms": [{"digest": PERFECT.digest, "config": {"drafter": {"acceptance": {"alpha": 1.0}}}}]}


def drawn(draw, arms, **changes):
    sweep = made_sweep(arms, **changes)
    (figure,) = draw(sweep, summary_of(sweep, threshold=0.02))
    return figure


def rungs(figure, panel):
    trace = figure.data[panel]
    return {
        place.replace("<br>", " "): (value, shape)
        for place, value, shape in zip(trace.y, trace.x, trace.marker.symbol, strict=True)
    }


@pytest.fixture(scope="module")
def ladder():
    return drawn(ceiling, [REAL, PERFECT, LOADED], levels=LEVELS, blocks=2, noise=0.01, plan=PLAN)


def test_the_ladder_rises_from_the_baseline_to_perfect_acceptance(ladder) -> None:
    speed = rungs(ladder.plot, 1)
    assert list(speed) == ["baseline", "loaded, never asked", "real drafter", "perfect"]
    assert speed["baseline"][0] == 1.0
    assert speed["real drafter"][0] == pytest.approx(2.0, rel=0.03)
    assert speed["perfect"] == (pytest.approx(3.2, rel=0.03), "square")
    assert ladder.plot.data[1].error_x.array[2] > 0.0
    capture = [
        trace for trace in ladder.plot.data if trace.yaxis == "y2" and trace.legendgroup == "user_speed"
    ]
    assert capture[0].y[0] == pytest.approx(100 * math.log(2.0) / math.log(3.2), rel=0.03)
    assert "At C=2 tp1/eagle3-k3 has 2.0" in ladder.finding
    assert "synthetic, geometric: `drafter=free" in ladder.reading


def test_the_ladders_control_moves_the_level(ladder) -> None:
    check_slider(ladder.plot)
    high = stepped(ladder.plot, 1)
    assert rungs(high, 1)["real drafter"][0] == pytest.approx(1.2, rel=0.03)
    assert high.layout.xaxis.title.text == "ratio to baseline at C=16"


def test_perfect_acceptance_that_was_not_run_is_hollow() -> None:
    figure = drawn(ceiling, [REAL], levels=(2,), blocks=1)
    assert rungs(figure.plot, 1)["perfect"] == (pytest.approx(4.0 / 1.2, rel=1e-4), "square-open")
    assert figure.plot.data[1].error_x.array[-1] == 0.0


def test_forced_acceptance_alone_captures_nothing() -> None:
    figure = drawn(ceiling, [PERFECT], levels=(2,), blocks=2, plan=PLAN)
    assert "(forced acceptance)" in figure.finding
    assert "no real drafter was run" in figure.finding
    assert all(trace.yaxis != "y2" for trace in figure.plot.data)


@pytest.fixture(scope="module")
def waterfall():
    return drawn(decomposition, [REAL], levels=LEVELS, blocks=3, noise=0.01)


def test_the_parts_add_up_to_the_ratio_on_the_log_scale(waterfall) -> None:
    check_slider(waterfall.plot)
    for place in range(len(LEVELS)):
        bars = stepped(waterfall.plot, place).data[0]
        *parts, whole = zip(bars.base, bars.x, strict=True)
        assert sum(value for _, value in parts) == pytest.approx(whole[1], abs=2e-4)
        reached = 0.0
        for base, value in parts:
            assert base == pytest.approx(reached, abs=2e-4)
            reached += value
        assert whole[0] == 0.0
        assert bars.error_x.array[0] > 0.0


def test_the_waterfall_names_the_largest_parts(waterfall) -> None:
    assert waterfall.finding.startswith("tp1/eagle3-k3, total throughput: ")
    assert "at C=16, mostly acceptance" in waterfall.finding
    ticks = stepped(waterfall.plot, 0).layout.yaxis.ticktext
    assert ticks[4].startswith("KV capacity"), ticks
    assert ticks[4][-1] == "\N{EN DASH}", "without a baseline with matched KV it is not told apart"
    assert waterfall.plot.data[0].marker.color[:2] == ("#0072B2", "#D55E00")


def test_in_an_open_loop_user_speed_is_split() -> None:
    figure = drawn(decomposition, [REAL], levels=(2,), blocks=1, concurrency=None, rate=2.0)
    assert figure.finding.startswith("tp1/eagle3-k3, user speed: 2.00 at 2/s")
    assert figure.plot.layout.xaxis.title.text == "factor of the ratio at 2/s"
    assert not figure.plot.layout.sliders
