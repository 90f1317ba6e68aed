"""Amdahl's curves: DESIGN section 7's known answers, and what the control marks."""

import re

import pytest

from analysis.figures.amdahl import amdahl
from analysis.summary import summary_of
from tests.analysis.figures.sliders import check_slider, stepped
from tests.analysis.made import Arm, made_sweep

ARM = Arm(label="tp1/eagle3-k3", tokens=2.4, step=1.2, other=1.3)


def drawn(arms=(ARM,), **changes):
    sweep = made_sweep(list(arms), **changes)
    (figure,) = amdahl(sweep, summary_of(sweep, threshold=0.02))
    return figure


@pytest.fixture(scope="module")
def known():
    return drawn(share=0.83, blocks=2, levels=(4,))


def target(figure):
    line, marks = figure.data[-2:]
    return line.y[0], list(marks.x), figure.layout.annotations[-1].text


@pytest.mark.parametrize(("g", "x"), [(1.2, 1.25), (1.5, 1.67), (2.0, 2.52)])
def test_a_target_needs_the_known_decode_speed_up(known, g, x) -> None:
    place = [step.label for step in known.plot.layout.sliders[0].steps].index(f"{g:.1f}")
    line, marks, text = target(stepped(known.plot, place))
    assert line == g
    assert marks == pytest.approx([x], abs=0.005)
    needed = re.fullmatch(rf"<b>G = {g} needs</b><br>C=4: x ([\d.]+), ([\d.]+) tokens/step", text)
    assert needed is not None
    assert [float(found) for found in needed.groups()] == pytest.approx([x, 1.2 * x], abs=0.011)


def test_the_curve_is_that_of_the_measured_share_and_the_drafter_lies_off_it(known) -> None:
    check_slider(known.plot)
    (curve,) = [trace for trace in known.plot.data if trace.name == "C=4: f=0.83"]
    at = dict(zip(curve.x, curve.y, strict=True))
    for x, g in at.items():
        assert g == pytest.approx(1 / (0.17 + 0.83 / x), rel=1e-3)
    (arm,) = [trace for trace in known.plot.data if trace.name == "tp1/eagle3-k3"]
    assert arm.x[0] == pytest.approx(2.0)
    assert arm.y[0] == pytest.approx(1 / (0.17 * 1.3 + 0.83 / 2.0)), "all other time grew"
    assert "83 % [83, 83] at C=4" in known.finding
    assert "at most 5.88 times faster" in known.finding
    assert "1.5 needs x 1.67" in known.finding


def test_a_target_beyond_the_cap_has_no_mark() -> None:
    figure = drawn(share=0.5, blocks=1, levels=(4,))
    steps = [step.label for step in figure.plot.layout.sliders[0].steps]
    _, marks, text = target(stepped(figure.plot, steps.index("2.5")))
    assert marks == [None]
    assert "C=4: none, cap 2.00" in text
    *_, text = target(stepped(figure.plot, steps.index("1.9")))
    assert "(over K+1=4)" in text


def test_at_most_four_of_many_levels_are_drawn_and_baselines_alone_have_curves() -> None:
    levels = (1, 2, 4, 8, 16, 32)
    figure = drawn(levels=levels, blocks=1)
    bold = [trace.name for trace in figure.plot.data if trace.name and trace.name.startswith("C=")]
    assert [name.split(":")[0] for name in bold] == ["C=1", "C=4", "C=8", "C=32"]
    assert "2 levels between are left out" in figure.reading
