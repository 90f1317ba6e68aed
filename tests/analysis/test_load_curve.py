"""Curves against the load: known step times come back, between levels too, and intervals hold the truth."""

import math
from dataclasses import replace

import numpy as np
import pytest

from analysis.frame import cells_frame
from analysis.load_curve import fit_curve, fit_time
from analysis.load_curves import load_curves, load_curves_of
from tests.analysis.made import PROMPT, TOKENS, Arm, made_sweep

ARM = Arm(label="tp1/eagle3-k3", tokens=2.4, step=1.5, other=1.3)
LEVELS = (1, 4, 16)


def truth(load: float, *, tokens: float = 1.0, step: float = 1.0, other: float = 1.0) -> dict[str, float]:
    """What `made_sweep` gives an arm at a load, block effects aside."""
    plain = 10.0 + load / 2.0
    speed = 1000.0 * tokens / (plain * step)
    rest = TOKENS * plain / 1000.0 * 0.25 * other
    return {
        "step": plain * step,
        "speed": speed,
        "total": load * (PROMPT + TOKENS) / (TOKENS / speed + rest),
    }


def test_a_straight_line_comes_back() -> None:
    curve = fit_time([1, 4, 16], [10.5, 12.0, 18.0])
    assert (curve.floor, curve.slope, curve.knee) == pytest.approx((10.0, 0.5, 1.0))
    assert curve.at(np.array([8.0, 64.0])) == pytest.approx([14.0, 42.0])
    assert curve.spare == 1


def test_a_roofline_comes_back_with_its_knee() -> None:
    levels = [1, 2, 4, 8, 16, 32]
    curve = fit_time(levels, [(20.0**3 + (2.0 * load) ** 3) ** (1 / 3) for load in levels])
    assert (curve.floor, curve.slope, curve.knee) == pytest.approx((20.0, 2.0, 3.0), rel=1e-3)
    assert curve.spare == 3


def test_a_time_that_does_not_rise_stays_flat_and_one_level_makes_no_curve() -> None:
    flat = fit_time([1, 4, 16], [10.0, 10.0, 10.0])
    assert flat.at(np.array([32.0])) == pytest.approx([10.0], rel=0.01)
    falling = fit_time([1, 4, 16], [10.0, 9.9, 9.8])
    assert falling.at(np.array([4.0])) == pytest.approx([9.9], rel=0.01)
    assert fit_time([4], [10.0]) is None


@pytest.mark.parametrize("levels", [(1, 4, 16), (1, 2, 4, 8, 16, 32)])
def test_how_a_curve_moves_with_its_points(levels: tuple[int, ...]) -> None:
    times = np.array([(20.0**2 + (1.5 * load) ** 2) ** 0.5 for load in levels])
    load = np.array([3.0, 24.0])
    curve = fit_time(levels, times)
    for place in range(len(levels)):
        moved = times * np.exp(1e-4 * (np.arange(len(levels)) == place))
        slope = np.log(fit_time(levels, moved).at(load) / curve.at(load)) / 1e-4
        assert slope == pytest.approx(curve.influence(load)[:, place], abs=0.02)


def test_every_curve_passes_between_the_levels_where_the_truth_lies() -> None:
    curves = load_curves_of(made_sweep([ARM], levels=LEVELS))
    load = np.array([1.0, 8.0, 32.0])
    for arm, shape in (("tp1/none", {}), (ARM.label, {"tokens": 2.4, "step": 1.5, "other": 1.3})):
        curve = curves.curves[arm.ljust(64, ".")]
        base = math.exp(np.log(curve.step_ms(load) / [truth(c, **shape)["step"] for c in load]).mean())
        assert curve.step_ms(load) / base == pytest.approx([truth(c, **shape)["step"] for c in load])
        assert curve.user_speed(load) * base == pytest.approx([truth(c, **shape)["speed"] for c in load])
        assert curve.total(load) * base == pytest.approx([truth(c, **shape)["total"] for c in load])
        assert curve.worst == pytest.approx(0.0, abs=1e-6)
    (ratio,) = curves.ratio(ARM.digest, "tp1/none".ljust(64, "."), np.array([8.0]), "speed")
    assert (ratio.value, ratio.lo) == (pytest.approx(1.6), None), "one block has no interval"


@pytest.mark.parametrize("name", ["step", "speed", "total"])
def test_how_each_curve_moves_with_what_was_measured(name: str) -> None:
    levels = [1.0, 4.0, 16.0]
    figures = [truth(c, tokens=2.0, step=1.4, other=1.2) for c in levels]
    share = [
        own["total"] / (c * own["speed"] * (PROMPT + TOKENS) / TOKENS)
        for c, own in zip(levels, figures, strict=True)
    ]
    logs = np.log(
        [
            [own["step"] for own in figures],
            [own["speed"] for own in figures],
            [f / (1.0 - f) for f in share],
            [own["total"] for own in figures],
        ]
    )
    load = np.array([2.0, 8.0])
    curve = fit_curve(levels, logs, [2, 2, 2])
    told = {"step": "step_ms", "speed": "user_speed", "total": "total"}[name]
    for row in range(4):
        for place in range(3):
            moved = logs.copy()
            moved[row, place] += 1e-4
            other = fit_curve(levels, moved, [2, 2, 2])
            slope = np.log(getattr(other, told)(load) / getattr(curve, told)(load)) / 1e-4
            assert slope == pytest.approx(curve.gradients(load)[name][:, row, place], abs=0.02)


def test_intervals_of_the_curves_ratio_hold_the_truth() -> None:
    base = "tp1/none".ljust(64, ".")
    load = np.array([8.0])
    held = {"step": 0, "speed": 0, "total": 0}
    for seed in range(12):
        curves = load_curves_of(made_sweep([ARM], levels=LEVELS, blocks=2, noise=0.02, seed=seed))
        for name in held:
            (ratio,) = curves.ratio(ARM.digest, base, load, name)
            own = truth(8.0, tokens=2.4, step=1.5, other=1.3)[name] / truth(8.0)[name]
            held[name] += ratio.lo < own < ratio.hi
            assert ratio.hi / ratio.lo < 1.25
    assert min(held.values()) >= 9


def test_the_section_shows_what_was_measured_beside_the_curves() -> None:
    section = load_curves(made_sweep([ARM], levels=LEVELS, blocks=2, noise=0.005))
    rows = section.frame
    assert rows[["arm", "level"]].to_numpy().tolist() == [
        [arm, float(level)] for arm in (ARM.label, "tp1/none") for level in LEVELS
    ]
    assert (rows["user_speed_lo"] < rows["user_speed"]).all()
    assert (rows["step_ms"] / rows["step_ms_fitted"]).to_numpy() == pytest.approx(1.0, abs=0.03)
    assert rows["misfit"].abs().max() < 0.03
    assert (rows["spare"] == 1).all()
    assert rows["knee"].to_numpy() == pytest.approx(1.0)


def test_a_curve_that_misses_is_said_to() -> None:
    steps = {1: 10.0, 4: 30.0, 16: 12.0}
    figures = {
        level: {"step/mean_ms": value, "user/speed_tok_s": 2400.0 / value} for level, value in steps.items()
    }
    section = load_curves(made_sweep([Arm(label="tp1/eagle3-k3", figures=figures)], levels=LEVELS))
    assert any("read figures between levels as a sketch" in note for note in section.notes)


def test_an_open_loop_and_one_level_have_points_and_no_curve() -> None:
    for sweep in (
        made_sweep([ARM], levels=(2,), concurrency=None, rate=2.0),
        made_sweep([ARM], levels=(4,), blocks=2),
    ):
        section = load_curves(sweep)
        assert section.frame["user_speed"].notna().all()
        assert section.frame["step_ms_fitted"].isna().all()
        assert any("it needs a closed loop" in note for note in section.notes)


def test_without_step_times_the_time_of_a_token_stands_for_them() -> None:
    made = made_sweep([ARM], levels=LEVELS)
    results = [replace(cell, metrics={**cell.metrics, "step/mean_ms": None}) for cell in made.results]
    curves = load_curves_of(replace(made, results=results, cells=cells_frame(results)))
    curve = curves.curves[ARM.digest]
    assert curve.tokens == pytest.approx(1.0)
    assert curve.worst == pytest.approx(0.0, abs=1e-6)
