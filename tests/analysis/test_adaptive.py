"""Adaptive levels: which level comes next and why, and when a search ends."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.adaptive import (
    FOUND,
    OPEN,
    OUTSIDE,
    UNKNOWN,
    Search,
    choose,
    next_level,
    search_states,
    state_of,
)
from analysis.bundles import best_bundle, candidates, predicted_width
from analysis.crossings import crossover_rows
from analysis.crossover import find_crossover
from analysis.frame import cells_frame
from analysis.levels import fit_levels
from analysis.prices import Prices
from analysis.search_curve import Curve, ratio_curves
from analysis.search_interval import integers_decided
from analysis.search_section import search as section
from analysis.searches import SLO
from analysis.table import verdict_rows
from jobs.result import CONFIRMATION, INVALID
from tests.analysis.made import Arm, made_results, made_sweep

FALLING = {1.0: 1.4, 8.0: 1.2, 32.0: 0.9, 128.0: 0.7}
CROSSOVER = Search(kind="crossover", width=1.25)


def curve(means: dict[float, float], noise: float = 0.02, blocks: int = 2, df: float = 9.0) -> Curve:
    """Return a curve whose every mean has the error of so many blocks."""
    count = len(means)
    variance = noise**2 * 1.5 / blocks
    return Curve(
        arm="arm",
        label="tp1/arm",
        axis="concurrency",
        levels=tuple(means),
        means=tuple(math.log(value) if value else -math.inf for value in means.values()),
        blocks=(blocks,) * count,
        covariance=np.diag([variance if value else 0.0 for value in means.values()]),
        df=df,
    )


def test_the_next_levels_lie_about_the_crossing_and_narrow_it() -> None:
    known = curve(FALLING)
    state = state_of(known, CROSSOVER, Prices())
    assert state.status == OPEN
    assert state.bundle is not None
    assert all(8.0 <= level <= 32.0 and level == int(level) for level in state.bundle.levels)
    assert state.bundle.width < state.width
    asked = choose([state])
    assert asked is not None
    assert asked.arms == {"arm": state.bundle.levels}
    assert "times apart" in asked.reason


def test_a_search_ends_where_its_interval_is_narrow_outside_or_between_whole_numbers() -> None:
    narrow = {1.0: 1.4, 14.0: 1.03, 15.0: 1.0, 16.0: 0.97, 128.0: 0.7}
    found = state_of(curve(narrow, noise=0.003, blocks=6), CROSSOVER, Prices())
    assert (found.status, choose([found])) == (FOUND, None)
    above = state_of(curve(dict.fromkeys(FALLING, 1.2)), CROSSOVER, Prices())
    assert above.status == OUTSIDE
    assert "above C=128, the highest level" in above.text
    assert "below C=1" in state_of(curve(dict.fromkeys(FALLING, 0.8)), CROSSOVER, Prices()).text
    assert integers_decided(2.1, 2.9, "concurrency")
    assert not integers_decided(2.1, 2.9, "rate")


def test_beside_a_level_that_ran_out_of_memory_the_middle_of_the_gap_comes_next() -> None:
    known = curve({1.0: 1.4, 8.0: 1.3, 64.0: 0.0})
    found = find_crossover(known.levels, known.means, known.covariance, known.df)
    assert set(candidates(known, found, spacing=1.1)) - set(known.levels) == {23.0}
    bundle = best_bundle(known, found, Prices(), width=1.25)
    assert bundle is not None
    assert 23.0 in bundle.levels


def test_dearer_starts_are_worth_more_levels_each() -> None:
    known = curve(FALLING, noise=0.05)
    found = find_crossover(known.levels, known.means, known.covariance, known.df)
    free = best_bundle(known, found, Prices(start=0.0), width=1.25)
    dear = best_bundle(known, found, Prices(start=3600.0), width=1.25)
    assert free is not None
    assert dear is not None
    assert len(dear.levels) >= len(free.levels)
    assert len(dear.levels) > 1


def test_more_blocks_at_a_level_near_the_crossing_are_expected_to_narrow_it() -> None:
    known = curve({1.0: 1.4, 14.0: 1.05, 18.0: 0.95, 128.0: 0.7})
    few, many = predicted_width(known, (14.0, 18.0), 1), predicted_width(known, (14.0, 18.0), 8)
    far = predicted_width(known, (1.0,), 8)
    assert many < few < far


def made(blocks: int = 3, **changes: object) -> list:
    arms = [Arm(label="tp1/a-k3", tokens=FALLING), Arm(label="tp1/b-k3", tokens=1.5)]
    return made_results(arms, levels=tuple(FALLING), blocks=blocks, noise=0.01, **changes)


def test_curves_are_those_of_the_crossover_rows() -> None:
    cells = cells_frame(made())
    levels = fit_levels(cells)
    rows = crossover_rows(verdict_rows(cells, levels, threshold=0.02, objective="total"), levels)
    wanted = {row.arm: row.crossover for row in rows if row.objective == "total"}
    curves = ratio_curves(cells, "total")
    assert {each.arm for each in curves} == set(wanted)
    for each in curves:
        assert find_crossover(each.levels, each.means, each.covariance, each.df) == wanted[each.arm]


def test_arms_that_are_decided_leave_the_search_and_confirmations_are_no_part_of_it() -> None:
    results = made()
    asked = next_level(cells_frame(results), CROSSOVER)
    assert asked is not None
    assert list(asked.arms) == ["tp1/a-k3".ljust(64, ".")]
    fresh = [
        replace(cell, block=cell.block + 10, kind=CONFIRMATION, cell=f"fresh-{cell.cell}")
        for cell in made(seed=7)
    ]
    assert next_level(cells_frame([*results, *fresh]), CROSSOVER) == asked


def test_a_level_that_was_tried_twice_for_nothing_is_not_tried_again() -> None:
    results = made()
    asked = next_level(cells_frame(results), CROSSOVER)
    assert asked is not None
    new = set(asked.levels) - set(FALLING)
    assert new
    lost = [
        replace(
            cell,
            concurrency=int(level),
            block=cell.block + 10,
            outcome=INVALID,
            cell=f"lost-{cell.cell}-{level}",
        )
        for cell in made(blocks=2)
        for level in new
        if cell.level == min(FALLING)
    ]
    again = next_level(cells_frame([*results, *lost]), CROSSOVER)
    assert again is not None
    assert not new & set(again.levels)


def test_a_service_level_is_searched_for_arms_and_baselines() -> None:
    """TTFT p95 is 10 ms times the level: 300 ms are kept up to 30."""
    figures = {level: {"latency/ttft_p95_ms": 10.0 * level} for level in FALLING}
    results = [
        replace(
            cell, metrics={**cell.metrics, "latency/ttft_p95_ms": 10.0 * cell.level * (1 + 0.01 * cell.block)}
        )
        for cell in made_results([Arm(label="tp1/a-k3", figures=figures)], levels=tuple(FALLING), blocks=3)
    ]
    states = search_states(cells_frame(results), Search(kind=SLO, limits={"ttft_ms": 300.0}))
    assert [state.curve.label for state in states] == ["tp1/a-k3", "tp1/none"]
    for state in states:
        assert state.crossover.main is not None
        assert state.crossover.main.log_log == pytest.approx(29.7, rel=0.01)
        assert "keeps TTFT p95 <= 300 ms up to" in state.text
    with pytest.raises(KeyError):
        search_states(cells_frame(results), Search(kind=SLO, limits={"itl_ms": 1.0}))


def test_a_search_among_oversubscribed_cells_says_why_it_goes_nowhere() -> None:
    arms, plan = (
        [Arm(label="tp1/a-k3", tokens=FALLING)],
        {"search": {"kind": SLO, "width": 1.25, "rounds": 4}, "slo": {"ttft_ms": 300.0}},
    )
    made = made_sweep(arms, plan=plan, levels=tuple(FALLING), blocks=2)
    crowded = [replace(result, oversubscribed=True) for result in made.results]
    found = section(replace(made, cells=cells_frame(crowded), results=crowded))
    assert [row["status"] for row in found.rows()] == [UNKNOWN] * 2
    assert all("oversubscribed" in row["text"] for row in found.rows())
    assert next_level(cells_frame(crowded), Search(kind=SLO, limits={"ttft_ms": 300.0})) is None


def test_the_section_says_where_each_arm_is_and_how_to_search() -> None:
    arms = [Arm(label="tp1/a-k3", tokens=FALLING)]
    plan = {"search": {"kind": "crossover", "width": 1.25, "rounds": 4}, "objective": "total"}
    found = section(made_sweep(arms, plan=plan, levels=tuple(FALLING), blocks=3, noise=0.01))
    (row,) = found.rows()
    assert 8.0 < row["level_lo"] < row["level"] < row["level_hi"] < 32.0
    assert row["status"] == OPEN
    assert row["next"]
    nothing = section(made_sweep(arms, levels=tuple(FALLING)))
    assert "load.search=crossover" in nothing.missing
    assert isinstance(nothing.frame, pd.DataFrame)
