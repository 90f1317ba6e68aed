"""The front of user speed against throughput per device, and what tokens cost."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analysis.cost import cost, cost_frame, cost_section
from analysis.frame import Sweep, cells_frame
from analysis.pareto import OFF, ON, UNSURE, on_front, pareto, pareto_frame
from analysis.points import figure, points_of


def brute(x, y):
    """A point is on the front when no other is at least as good in both and better in one."""
    points = list(zip(x, y, strict=True))
    return [
        not any(a >= c and b >= d and (a > c or b > d) for a, b in points) if np.isfinite(c + d) else False
        for c, d in points
    ]


def test_the_front_is_that_of_its_definition():
    generator = np.random.default_rng(1)
    for size in (1, 2, 5, 9):
        x, y = (generator.integers(0, 6, size=(40, size)).astype(float) for _ in range(2))
        y[0, 0] = np.nan
        found = on_front(x, y)
        assert [row.tolist() for row in found] == [brute(a, b) for a, b in zip(x, y, strict=True)]


def of(results, **plan):
    return Sweep(directory=Path("results/s"), plan=plan, cells=cells_frame(results), results=results)


def slower_with_load(results):
    """User speed falls with the level, as it does; throughput rises."""
    return [
        replace(
            result,
            metrics={**result.metrics, "user/speed_tok_s": result.metrics["user/speed_tok_s"] / result.level},
        )
        for result in results
    ]


def test_the_front_has_the_best_arm_of_each_level(make_sweep, true_arm):
    arms = [true_arm(ratios={1: 1.5, 4: 1.2, 16: 0.8})]
    frame = pareto_frame(cells_frame(slower_with_load(make_sweep(arms, blocks=4, noise=0.005))))
    front = {(row.label, row.level) for row in frame.itertuples() if row.front == ON}
    assert front == {("tp1/ngram-k3", 1), ("tp1/ngram-k3", 4), ("tp1/none", 16)}
    assert set(frame["front"]) == {ON, OFF}
    alone = pareto_frame(cells_frame(slower_with_load(make_sweep(arms, blocks=1))))
    assert set(alone["front"]) == {UNSURE}
    assert alone["user_speed_lo"].isna().all()


def test_forced_acceptance_is_on_no_front(make_sweep):
    results = [replace(result, synthetic=bool(result.k)) for result in make_sweep(blocks=2)]
    section = pareto(of(results))
    assert set(section.frame["label"]) == {"tp1/none"}
    assert any("forced acceptance" in note for note in section.notes)


def test_intervals_of_single_figures_cover_the_truth(make_sweep):
    """1000 x 4^0.7 of the baseline at level 4, blocks spread by 10 %."""
    truth, hits = 1000.0 * 4**0.7, 0
    for seed in range(16):
        points = points_of(cells_frame(make_sweep(levels=(4,), blocks=5, noise=0.01, seed=seed)))
        _, low, high = figure(points, "throughput/total_tok_s").interval()
        place = int(np.flatnonzero((points.facts["k"] == 0) & (points.facts["level"] == 4))[0])
        hits += bool(low[place] <= truth <= high[place])
    assert hits >= 14


def test_costs_by_hand(make_sweep):
    """At 3.60 an hour a device-second costs 0.001: 2000 tokens/s on two devices are 1e-6 a token."""
    results = [
        replace(
            result,
            devices=2,
            metrics={
                **result.metrics,
                "throughput/output_tok_s_per_device": 1000.0,
                "throughput/computed_tok_s": 4000.0,
                "energy/joules_per_output_token": 0.25,
            },
        )
        for result in make_sweep(levels=(4,), blocks=2)
    ]
    frame = cost_frame(cells_frame(results), price=3.6)
    assert frame["output_cost"].tolist() == pytest.approx([1.0, 1.0])
    assert frame["computed_cost"].tolist() == pytest.approx([0.5, 0.5])
    assert frame["output_energy"].tolist() == pytest.approx([0.25, 0.25])
    section = cost_section(of(results), price=3.6, currency="EUR")
    assert section.title == "Cost of tokens (EUR)"
    assert "costs are in EUR at 3.6 EUR per device-hour" in section.notes


def test_without_a_price_money_is_missing_and_said(make_sweep):
    results = make_sweep(blocks=2)
    section = cost(of(results))
    assert section.frame["output_cost"].isna().all()
    assert any("--price" in note for note in section.notes)
    bare = [
        replace(result, metrics={**result.metrics, "energy/joules_per_output_token": None})
        for result in results
    ]
    nothing = cost(of(bare))
    assert nothing.frame.empty
    assert "--price PRICE" in nothing.missing
    assert list(itertools.chain(nothing.notes)) == []
