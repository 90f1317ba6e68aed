"""What to serve with: ranges and margins of known truth, and what is never recommended."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.bestk import best_k
from analysis.confirmation import weakest
from analysis.frame import Sweep, cells_frame
from analysis.recommendation import CONFIRMED, NO_NEED, PROVISIONAL, recommend
from analysis.recommendation_table import recommendation, recommendation_frame
from analysis.rows import VerdictRow

SHORT = {1: 1.3, 4: 1.25, 16: 1.10, 64: 0.90}
LONG = {1: 1.8, 4: 1.30, 16: 0.90, 64: 0.60}
LEVELS = (1, 4, 16, 64)


@pytest.fixture(scope="module")
def arms(true_arm):
    return (
        true_arm(label="tp1/eagle3-k1", drafter="eagle3", k=1, ratios=SHORT),
        true_arm(label="tp1/eagle3-k5", drafter="eagle3", k=5, ratios=LONG),
    )


def of(results, **plan):
    return Sweep(directory=Path("results/s"), plan=plan, cells=cells_frame(results), results=results)


@pytest.fixture(scope="module")
def found(make_sweep, arms):
    """The recommendation of a sweep whose best draft length falls with load."""
    return recommend(of(make_sweep(arms, levels=LEVELS, blocks=4, noise=0.004)))


def test_one_configuration_a_range_with_edges_between_levels(found):
    labels = [part.candidate.label for part in found.ranges]
    assert labels == ["tp1/eagle3-k5", "tp1/eagle3-k1", "tp1/none"]
    # ln(1.30/1.25) and ln(0.90/1.10) cross at a share of the way in log load; so do ln 1.10 and ln 0.90
    first = 4 * 4 ** (math.log(1.30 / 1.25) / (math.log(1.30 / 1.25) - math.log(0.90 / 1.10)))
    second = 16 * 4 ** (math.log(1.10) / (math.log(1.10) - math.log(0.90)))
    assert found.ranges[0].ends.at == pytest.approx(first, rel=0.05)
    assert found.ranges[1].ends.at == pytest.approx(second, rel=0.05)
    assert found.ranges[0].ends == found.ranges[1].begins
    for edge, truth in ((found.ranges[0].ends, first), (found.ranges[1].ends, second)):
        assert edge.lo < truth < edge.hi
        assert (edge.lower, edge.upper) in ((4, 16), (16, 64))
    assert (found.ranges[0].low, found.ranges[-1].high) == (1, 64)
    assert [found.status(part) for part in found.ranges] == [PROVISIONAL, PROVISIONAL, NO_NEED]


def test_margins_are_over_the_baseline_and_over_the_runner_up(found):
    (choice,) = found.at(1)
    assert choice.over_baseline.value == pytest.approx(1.8, rel=0.02)
    assert choice.runner_up.label == "tp1/eagle3-k1"
    assert choice.margin.value == pytest.approx(1.8 / 1.3, rel=0.02)
    assert choice.margin.lo < 1.8 / 1.3 < choice.margin.hi
    (top,) = found.at(64)
    assert top.over_baseline is None
    assert top.margin.value == pytest.approx(1 / 0.90, rel=0.02)
    assert "no arm with a drafter wins (loses)" in top.reason


def test_the_winner_is_weakest_at_the_end_of_its_own_range(found):
    """At C=4 it gains 1.30; what it would lose at C=16 is no promise: another arm serves there."""
    (choice,) = found.at(1)
    best = VerdictRow(
        arm=choice.candidate.arm,
        label="",
        pair="",
        layout="tp1",
        drafter="eagle3",
        k=5,
        axis="concurrency",
        level=1.0,
        blocks=4,
        verdict="wins",
        reason="",
        threshold=0.02,
    )
    assert weakest(best, found.ranges) == 4
    assert weakest(replace(best, level=16.0), found.ranges) == 16, "another is ahead of it there"
    assert weakest(best, ()) == 1


def test_k_by_load_comes_of_the_same_ranges(found):
    (schedule,) = found.schedules
    assert [(step.k, step.levels) for step in schedule.steps] == [(5, (1, 4)), (1, (16,)), (0, (64,))]
    assert schedule.probes == (4, 16, 64)
    assert (schedule.longest.k, schedule.steps[0].low, schedule.steps[-1].high) == (5, 0.0, None)


def test_where_no_draft_length_has_a_figure_that_counts_the_schedule_says_nothing(make_sweep, arms):
    """Every K invalid at C=16: the baseline stands there by default, which is no finding for K=0."""
    cells = [
        replace(cell, outcome="invalid") if (cell.concurrency, cell.role) == (16, "treatment") else cell
        for cell in make_sweep(arms, levels=LEVELS, blocks=4, noise=0.004)
    ]
    (schedule,) = recommend(of(cells)).schedules
    assert [(step.k, step.levels) for step in schedule.steps] == [(5, (1, 4)), (0, (64,))]


def test_a_search_that_passed_an_arm_over_chooses_nothing_there(make_sweep, arms, found):
    """K=5 alone is asked at 8, where it gains nothing, and the baseline alone at 2; then both K at 8."""
    planned = make_sweep(arms, levels=LEVELS, blocks=4, noise=0.004)

    def searched(*of_arms, level, block):
        return [
            replace(result, block=result.block + block, kind="search", cell=f"{block}-{result.cell}")
            for result in make_sweep(of_arms, levels=(level,), blocks=2, noise=0.004, seed=block)
        ]

    short, long = (replace(arm, ratios={8: ratio}) for arm, ratio in zip(arms, (1.15, 1.0), strict=True))
    some = [*planned, *searched(level=2, block=10), *searched(long, level=8, block=20)]
    again = recommend(of(some))
    assert [choice.level for part in again.ranges for choice in part.choices] == list(LEVELS)
    labels = [part.candidate.label for part in found.ranges]
    assert [part.candidate.label for part in again.ranges] == labels
    assert [step.levels for step in again.schedules[0].steps] == [(1, 4), (16,), (64,)]
    assert "K=5 at C=1 to C=4, K=1 at C=16, K=0 at C=64" in " ".join(best_k(of(some)).notes)
    whole = recommend(of([*planned, *searched(short, long, level=8, block=30)]))
    assert [choice.level for choice in whole.ranges[1].choices] == [8, 16]


def test_an_edge_is_looked_for_at_levels_without_a_choice(make_sweep, arms):
    """K=1 falls through 1 between 32 and 64, and K=5 was not asked at 32."""
    planned = make_sweep(arms, levels=LEVELS, blocks=4, noise=0.004)
    between = [
        replace(result, block=result.block + 10, kind="search", cell=f"search-{result.cell}")
        for result in make_sweep([replace(arms[0], ratios={32: 1.05})], levels=(32,), blocks=2, noise=0.004)
    ]
    edge = recommend(of([*planned, *between])).ranges[1].ends
    assert (edge.lower, edge.upper) == (32, 64)
    assert 32 < edge.lo < edge.at < edge.hi < 64


def test_no_schedule_where_one_configuration_is_ahead_of_it(make_sweep, true_arm, arms):
    always = true_arm(label="tp1/mtp-k2", drafter="mtp", k=2, ratios=dict.fromkeys(LEVELS, 2.0))
    found = recommend(of(make_sweep([*arms, always], levels=LEVELS, blocks=4, noise=0.004)))
    assert [part.candidate.label for part in found.ranges] == ["tp1/mtp-k2"]
    assert found.schedules == ()


def test_no_schedule_where_only_noise_tells_draft_lengths_apart(make_sweep, true_arm):
    """The best K of each level is whichever was lucky: to follow it would gain nothing."""
    arms = [
        true_arm(label=f"tp1/eagle3-k{k}", drafter="eagle3", k=k, ratios=dict.fromkeys(LEVELS, 1.3))
        for k in (1, 3, 5)
    ]
    results = make_sweep(arms, levels=LEVELS, blocks=3, noise=0.01, seed=3)
    found = recommend(of(results))
    assert len({part.candidate.k for part in found.ranges}) > 1
    assert found.schedules == ()


def test_what_does_not_win_is_not_recommended(make_sweep, true_arm):
    small = true_arm(label="tp1/eagle3-k1", drafter="eagle3", k=1, ratios=dict.fromkeys(LEVELS, 1.01))
    (part,) = recommend(of(make_sweep([small], levels=(1, 4), blocks=4, noise=0.004))).ranges
    assert part.candidate.label == "tp1/none"
    assert "no arm with a drafter wins" in part.choices[0].reason
    one = recommend(of(make_sweep([true_arm()], blocks=1)))
    assert [part.candidate.label for part in one.ranges] == ["tp1/none"]
    assert one.ranges[0].choices[0].margin.lo is None


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"synthetic": True}, "forced acceptance"),
        ({"counterfactual": "loaded_only"}, "counterfactual arms"),
    ],
)
def test_what_nobody_can_serve_is_never_recommended(make_sweep, arms, change, note):
    results = [
        replace(result, **change) if result.k else result
        for result in make_sweep(arms, levels=LEVELS, blocks=4, noise=0.004)
    ]
    found = recommend(of(results))
    assert {part.candidate.label for part in found.ranges} == {"tp1/none"}
    assert found.schedules == ()
    assert any(note in text for text in found.notes)
    assert any("only the baseline" in text for text in found.notes)


def test_no_choice_where_client_and_engine_shared_a_core(make_sweep, arms):
    results = [
        replace(result, oversubscribed=result.level == 16)
        for result in make_sweep(arms, levels=LEVELS, blocks=4, noise=0.004)
    ]
    section = recommendation(of(results))
    told = dict(zip(section.frame["levels"], section.frame["recommended"], strict=True))
    assert told["16"] == "nothing can be said"
    assert "shared a core" in section.frame.set_index("levels").loc["16", "reason"]


def test_layouts_of_one_slice_compete_and_a_better_baseline_wins(make_sweep, true_arm):
    """Their baselines are alike here, so the second layout's arm is ahead of the first's by its ratio."""
    first = true_arm(label="tp1/eagle3-k1", drafter="eagle3", k=1, ratios={1: 1.3, 4: 1.3})
    second = replace(first, label="tp2/eagle3-k1", layout="tp2", ratios={1: 1.5, 4: 1.5})
    found = recommend(of(make_sweep([first, second], levels=(1, 4), blocks=4, noise=0.004)))
    (part,) = found.ranges
    assert (part.group, part.candidate.label) == ("tp1, tp2", "tp2/eagle3-k1")
    assert part.choices[0].runner_up.label == "tp1/eagle3-k1"


def test_fresh_blocks_confirm_or_take_back(make_sweep, arms):
    planned = make_sweep(arms, levels=LEVELS, blocks=4, noise=0.004)

    def fresh(*ratios, noise=0.004):
        levels = LEVELS[: len(ratios)]
        again = replace(arms[1], ratios=dict(zip(levels, ratios, strict=True)))
        return [
            replace(result, block=result.block + 10, kind="confirmation", cell=f"fresh-{result.cell}")
            for result in make_sweep([again], levels=levels, blocks=3, noise=noise, seed=5)
        ]

    good = recommend(of([*planned, *fresh(1.8)]))
    assert good.status(good.ranges[0]) == CONFIRMED
    unsure = recommend(of([*planned, *fresh(1.8, 1.05, noise=0.05)]))
    assert [entry.confirmed for entry in unsure.confirmations] == [True, False]
    assert [choice.level for choice in unsure.ranges[0].choices] == [1, 4]
    assert unsure.status(unsure.ranges[0]) == PROVISIONAL  # it has to win at the weaker level, too
    less = recommend(of([*planned, *fresh(1.8, 1.0)]))
    assert [choice.level for choice in less.ranges[0].choices] == [1]
    assert less.status(less.ranges[0]) == CONFIRMED
    bad = recommend(of([*planned, *fresh(1.0)]))
    (choice,) = bad.at(1)
    assert choice.candidate.label == "tp1/eagle3-k1"
    assert any("fresh blocks contradicted tp1/eagle3-k5" in note for note in bad.notes)
    assert bad.schedules == good.schedules  # what was measured stays what was proposed


def test_an_objective_where_less_is_better(make_sweep, arms):
    found = recommend(of(make_sweep(arms, levels=LEVELS, blocks=4, noise=0.004)), objective="ttft_p95")
    (choice,) = found.at(1)
    assert choice.candidate.label == "tp1/eagle3-k5"
    assert choice.over_baseline.value == pytest.approx(1.8, rel=0.02)
    with pytest.raises(ValueError, match="objective 'speed' is unknown"):
        recommend(of(make_sweep(arms, levels=LEVELS)), objective="speed")


def test_an_empty_sweep_says_why(make_sweep):
    empty = of(make_sweep((), blocks=0))
    section = recommendation(empty)
    assert section.frame.empty
    assert "specload status" in section.missing
    assert recommendation_frame(recommend(empty)).empty
