"""Speed against concurrency: points as measured, curves as fitted, and what the slider reads between."""

import re

import pytest

from analysis.figures.speed import speed
from analysis.summary import summary_of
from tests.analysis.figures.sliders import check_slider, stepped
from tests.analysis.made import Arm, made_sweep

ARM = Arm(label="tp1/eagle3-k3", tokens=2.4, step=1.5, other=1.3)


def drawn(arms=(ARM,), **changes):
    sweep = made_sweep(list(arms), **changes)
    (figure,) = speed(sweep, summary_of(sweep, threshold=0.02))
    return figure


@pytest.fixture(scope="module")
def known():
    return drawn(levels=(1, 4, 16), blocks=2, noise=0.002)


def at(figure, load):
    steps = figure.plot.layout.sliders[0].steps
    return stepped(figure.plot, [step.label for step in steps].index(f"{load:g}"))


def test_the_slider_reads_both_curves_between_the_levels(known) -> None:
    check_slider(known.plot)
    plot = at(known, 8)
    lines = plot.layout.annotations[0].text.split("<br>")
    assert lines[0] == "<b>C=8</b>, between loads tried"
    found = {
        name: [float(number.replace(",", "")) for number in numbers]
        for line in lines[1:]
        for name, *numbers in [
            re.fullmatch(
                r"(\w+) ([\d.,]+) / ([\d.,]+) (?:tok/s|ms) = ([\d.]+) \[([\d.]+), ([\d.]+)\]", line
            ).groups()
        ]
    }
    assert found["step"][0] / found["step"][1] == pytest.approx(1.5, rel=0.02)
    assert found["user"][2] == pytest.approx(1.6, abs=0.02)
    assert found["user"][3] <= found["user"][2] <= found["user"][4]
    assert found["total"][2] == pytest.approx(1 / (0.2 * 1.3 + 0.8 / 1.6), abs=0.02)
    users, totals = plot.data[-2:]
    assert tuple(users.x) == tuple(totals.x) == (8.0, 8.0)
    assert users.y[1] / users.y[0] == pytest.approx(1.6, abs=0.02)


def test_beyond_the_levels_the_curves_are_dashed_and_named(known) -> None:
    for line in [trace for trace in known.plot.data if trace.mode == "lines"]:
        beyond = max(line.x) > 16
        assert (line.line.dash == "dash") == beyond
        assert ("beyond the levels tried" in line.hovertemplate) == beyond
    assert "beyond the loads tried" in at(known, 32).layout.annotations[0].text
    assert "measured, curves read here" in at(known, 4).layout.annotations[0].text


def test_points_have_intervals_and_the_words_have_figures(known) -> None:
    points = [trace for trace in known.plot.data if trace.mode == "markers"]
    assert [tuple(trace.x) for trace in points] == [(1.0, 4.0, 16.0)] * 4
    assert all(min(trace.error_y.array) > 0.0 for trace in points)
    assert re.search(
        r"From C=1 to C=16 tp1/eagle3-k3 gives users 1\.60 \[1\.\d+, 1\.6\d\] to 1\.", known.finding
    )
    assert re.search(r", in total 1\.3\d \[1\.3\d, 1\.3\d\] to 1\.3", known.finding)
    assert re.search(r"fitted steps miss by 0\.\d % at most, speeds by 0\.\d %", known.finding)
    assert "a = " in known.reading
    assert len(known.finding) < 225


def test_one_level_and_an_open_loop_have_points_alone() -> None:
    one = drawn(levels=(4,), blocks=2)
    assert not one.plot.layout.sliders
    assert "load.concurrency=[1,4,16,64]" in one.reading
    opened = drawn(levels=(2,), concurrency=None, rate=2.0)
    assert not opened.plot.layout.sliders
    assert "The load is what arrives" in opened.reading


def test_without_decode_shares_only_users_have_a_curve() -> None:
    unknown = {level: {"latency/decode_share": None} for level in (1, 4, 16)}
    figure = drawn([Arm(label="tp1/eagle3-k3", tokens=2.4, step=1.5, figures=unknown)], levels=(1, 4, 16))
    text = at(figure, 8).layout.annotations[0].text
    assert "user" in text
    assert "total" not in text
    assert len(figure.plot.layout.sliders[0].steps[0].args[2]) == 1


def test_forced_acceptance_and_shared_cores_are_said() -> None:
    arm = Arm(label="tp1/free-k3-a1", drafter="free", tokens=4.0, synthetic=True)
    figure = drawn([arm], levels=(1, 4), oversubscribed=True)
    assert "(forced acceptance)" in figure.finding
    assert "an indication only" in figure.reading
