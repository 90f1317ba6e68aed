"""Where a decode step's time goes: the fitted estimate, and profiles, as numbers and as bars."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.figures.step_time import step_time
from analysis.frame import Sweep
from analysis.step_parts import COLOURS, DRAFTING, DRAFTS, FIXED, NOT_TOLD_APART, PARTS, PLAIN_STEP, VERIFYING
from analysis.step_time import FITTED, profile_command, step_times
from analysis.step_time import step_time as section
from analysis.summary import summary_of
from tests.analysis.made import Arm, made_sweep

C, S = 0.05, 0.1
"""Cost of speculation at any K, and of one more draft token, in plain steps."""


def arms(*lengths: int) -> list[Arm]:
    return [
        Arm(label=f"tp1/eagle3-k{k}", k=k, tokens=2.0, step={4: 1.0 + C + S * k, 8: 1.0 + C + 2.0 * S * k})
        for k in lengths
    ]


def figures(sweep: Sweep):
    return step_time(sweep, summary_of(sweep, threshold=0.02))


def test_the_fitted_parts_are_those_that_made_the_steps() -> None:
    sweep = made_sweep(arms(1, 3, 7), levels=(4, 8))
    low, high = step_times(sweep)
    assert (low.source, low.at, high.at) == (FITTED, "C=4", "C=8")
    plain, *rest = low.steps
    assert (plain.k, plain.label) == (0, "tp1/none")
    longest = rest[-1]
    t0 = plain.step_ms
    assert longest.parts[DRAFTS] / t0 == pytest.approx(7 * S)
    assert longest.parts[FIXED] / t0 == pytest.approx(C)
    assert sum(longest.parts.values()) == pytest.approx(longest.step_ms)
    assert high.steps[-1].parts[DRAFTS] / high.steps[0].step_ms == pytest.approx(14 * S)


def test_what_cannot_be_told_apart_is_one_part() -> None:
    (one,) = step_times(made_sweep(arms(3)))
    assert set(one.steps[1].parts) == {PLAIN_STEP, NOT_TOLD_APART}
    assert sum(one.steps[1].parts.values()) == pytest.approx(one.steps[1].step_ms)
    (two,) = step_times(made_sweep(arms(3, 7)))
    assert set(two.steps[1].parts) == {PLAIN_STEP, DRAFTS}


def test_the_figure_has_a_bar_an_arm_a_slider_of_loads_and_the_command_that_measures() -> None:
    sweep = made_sweep(arms(1, 3, 7), levels=(4, 8), blocks=3, noise=0.01)
    (figure,) = figures(sweep)
    plot = figure.plot
    assert plot is not None
    assert [trace.name for trace in plot.data] == [PLAIN_STEP, DRAFTS, FIXED, "measured step", None]
    assert list(plot.data[0].y) == ["none", "eagle3-k1", "eagle3-k3", "eagle3-k7"]
    (slider,) = plot.layout.sliders
    assert [step.label for step in slider.steps] == ["C=4", "C=8"]
    restyled = slider.steps[slider.active].args[0]
    assert list(plot.data[1].x) == restyled["x"][1], "it is drawn as its step says"
    assert restyled["x"] != slider.steps[0].args[0]["x"]
    shares = [sum(int(trace.text[row].rstrip("%") or 0) for trace in plot.data[:3]) for row in (0, 3)]
    assert shares[0] == 100
    assert 90 <= shares[1] <= 101, "small parts have no words"
    assert all(above > 0.0 for above in plot.data[-2].error_x.array[1:]), "measured steps have intervals"
    assert figure.finding.startswith("An estimate at C=8: ")
    assert "plain steps" in figure.finding
    assert [float(text) for text in plot.data[-1].text] == pytest.approx(list(plot.data[-2].x), rel=0.01)
    assert "`specload profile tp1/eagle3-k" in figure.reading
    assert "--from results/made --concurrency 8`" in figure.reading


def test_forced_acceptance_is_said_and_only_relevant_arms_are_drawn() -> None:
    sweep = made_sweep([replace(arm, synthetic=True) for arm in arms(*range(1, 12))])
    (figure,) = figures(sweep)
    assert "(forced acceptance)" in figure.finding
    assert figure.plot is not None
    assert len(figure.plot.data[0].y) == 8
    assert "4 less relevant arms are left out" in figure.reading


def test_without_step_times_it_says_what_measures_them() -> None:
    unknown = {4: {"step/mean_ms": None, "spec/tokens_per_step": None}}
    for sweep in (made_sweep([replace(arms(3)[0], figures=unknown)]), made_sweep([])):
        (figure,) = figures(sweep)
        assert figure.plot is None
        assert "`specload profile " in figure.missing
        assert section(sweep).frame.empty
    assert profile_command(made_sweep([])) == "specload profile ARM --from results/made --concurrency C"


def profiled(folder: Path, source: str, concurrency: int, parts: dict[str, float]) -> None:
    own = folder / "profiles" / "arm" / f"c{concurrency}-n100"
    own.mkdir(parents=True)
    engines = [
        {"arm": "b" * 64, "label": "tp1/none", "k": 0, "step_ms": 10.0,
         "parts": [{"name": "attention", "ms": 10.0}]},
        {
            "arm": arms(3)[0].digest, "label": "tp1/eagle3-k3", "k": 3, "step_ms": sum(parts.values()),
            "parts": [{"name": name, "ms": ms} for name, ms in parts.items()],
        },
    ]  # fmt: skip
    content = {
        "source": source, "concurrency": concurrency, "contexts": [100, 400], "engines": engines,
        "arms": [{"config": {"device": "emulated"}}], "notes": ["a note"],
    }  # fmt: skip
    (own / "profile.json").write_text(json.dumps(content))


def test_a_profile_takes_the_place_of_the_estimate(tmp_path: Path) -> None:
    profiled(tmp_path, "estimate", 8, {"attention": 10.0, DRAFTS: 5.0})
    profiled(tmp_path, "trace", 4, {"attention": 10.0, VERIFYING: 3.0, DRAFTING: 2.0, "rest": -0.1})
    sweep = replace(made_sweep(arms(3)), directory=tmp_path)
    traced, estimated = figures(sweep)
    assert (traced.name, estimated.name) == ("step-time", "step-time-2")
    assert traced.plot is not None
    assert not traced.plot.layout.sliders
    assert traced.finding == (
        "C=4, 100 tokens: a step of tp1/eagle3-k3 takes 14.9 ms, 1.49 plain steps; "
        "20 % of it verification overhead and 13 % of it drafting."
    )
    assert "profiler" in traced.reading
    assert estimated.finding.startswith(
        "An estimate at C=8, 100 tokens: a step of tp1/eagle3-k3 takes 15.0 ms"
    )
    assert "estimate" in estimated.reading
    table = section(sweep)
    assert table.frame["source"].tolist() == ["trace", "trace", "estimate", "estimate"]
    assert table.frame["emulated"].all()
    assert "a note" in table.notes


def test_every_part_has_its_colour() -> None:
    assert set(COLOURS) == set(PARTS)
