"""A search of levels: what it refuses, and which blocks its rounds are."""

from dataclasses import replace
from pathlib import Path

import pytest

from jobs.result import CLOSING, OPENING, SEARCH, TREATMENT, CellResult
from orchestrator.errors import ConfigError
from orchestrator.pending import pending
from orchestrator.plan import Plan
from orchestrator.rounds import Rounds
from orchestrator.search_blocks import worst_round
from orchestrator.search_plan import SearchPlan
from orchestrator.search_request import check_range, search_plan
from orchestrator.searching import search_round, search_words
from tests.orchestrator.conftest import outcomes

LOAD = {"search": "crossover", "search_width": 1.25, "search_rounds": 12}
DESIGN = {"blocks": 2, "objective": "total", "slo": {"ttft_ms": None, "tpot_ms": None, "e2el_ms": None}}
NOISE = (0.0, 0.013, -0.008, 0.004, -0.011)


@pytest.mark.parametrize(
    ("load", "design", "message"),
    [
        ({"search": "binary"}, {}, "load.search is 'binary'; choose crossover or slo"),
        ({"search_width": 1.0}, {}, "load.search_width=1 "),
        ({"search_rounds": 0}, {}, "load.search_rounds=0"),
        ({}, {"blocks": 1}, "design.blocks is 1: choose 2 or more"),
        ({}, {"objective": "ttft_p95"}, "ttft_p95 has none: choose one of total"),
        ({"search": "slo"}, {}, "design.slo, which has no limit"),
    ],
)
def test_a_search_that_cannot_be_is_refused(load: dict, design: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace(".", r"\.")):
        search_plan({**LOAD, **load}, {**DESIGN, **design})


def test_no_search_is_none_and_one_needs_a_range(small_plan: Plan) -> None:
    assert search_plan({**LOAD, "search": None}, {**DESIGN, "blocks": 1}) is None
    search = search_plan(LOAD, DESIGN)
    assert search == SearchPlan(kind="crossover", width=1.25, rounds=12)
    check_range(search, small_plan.arms)
    (first, *_) = small_plan.arms
    with pytest.raises(ConfigError, match="has one \\(c1\\): give a coarse list"):
        check_range(search, [replace(first, levels=first.levels[:1])])


def test_a_search_is_no_part_of_the_digest_and_is_read_back(small_plan: Plan) -> None:
    searched = replace(small_plan, search=SearchPlan(kind="slo", width=1.5, rounds=3))
    assert Plan.from_dict(searched.to_dict()) == searched
    assert searched.digest == small_plan.digest


def with_figures(
    plan: Plan, found: list[CellResult], ratios: dict[int, dict[float, float]]
) -> list[CellResult]:
    """Give cells total throughput: ratio by K and level, the block's own noise on treatments."""
    results = []
    for place, cell in enumerate(found):
        curve = ratios.get(cell.k, {})
        ratio = curve.get(cell.level, 1.0) * (1.0 + NOISE[(place * 3 + cell.block) % len(NOISE)])
        pair = plan.arm(cell.arm).pair_key
        results.append(
            replace(
                cell,
                metrics={"throughput/total_tok_s": 1000.0 * ratio},
                identity={"pair_key": pair},
                seconds=180.0,
                kind=SEARCH if cell.block > 1 else "planned",
            )
        )
    return results


def test_rounds_are_blocks_of_the_open_arms_until_they_are_used_up(small_plan: Plan, tmp_path: Path) -> None:
    """K=3 falls through 1 between the levels and stays open; K=7 is surely above at both: it stays out."""
    levels = tuple(replace(small_plan.arms[0].levels[0], concurrency=level) for level in (1, 64))
    arms = tuple(replace(arm, levels=levels) for arm in small_plan.arms)
    blocks = tuple(
        replace(block, devices=4, runs=tuple(replace(run, levels=levels) for run in block.runs))
        for block in small_plan.blocks
    )
    search = SearchPlan(kind="crossover", width=1.1, rounds=1)
    plan = replace(small_plan, arms=arms, blocks=blocks, search=search)
    ratios = {3: {1.0: 1.3, 64.0: 0.8}, 7: {1.0: 1.5, 64.0: 1.4}}
    done = [cell for segment in pending(plan, []) for cell in outcomes(plan, segment)]
    results = with_figures(plan, done, ratios)
    asked = search_round(plan, (), results)
    assert asked is not None
    assert "ngram-k3: crossover on total throughput" in asked.reason
    (block,) = asked.blocks
    assert [run.role for run in block.runs] == [OPENING, TREATMENT, CLOSING]
    assert [run.arm for run in block.runs] == [plan.arms[place].digest for place in (0, 1, 0)]
    new = {level.concurrency for run in block.runs for level in run.levels}
    assert new, "each run has the same levels"
    assert all({level.concurrency for level in run.levels} == new for run in block.runs)
    assert all(isinstance(level, int) and 1 <= level <= 64 for level in new)
    assert block.devices == 4, "the slice of the planned blocks: C is over the whole slice"
    assert search_round(plan, (), results) == asked, "the same results ask for the same"
    rounds = Rounds(tmp_path, plan, set_aside=lambda *told: pytest.fail(str(told)))
    added = rounds.append(SEARCH, asked.reason, asked.blocks)
    assert [(block.index, block.round, block.kind) for block in added.blocks] == [(2, 1, SEARCH)]
    assert search_round(plan, rounds.rounds, results) is None, "load.search_rounds=1"
    assert any(
        "load.search_rounds=1 are used up" in line for line in search_words(plan, rounds.rounds, results)
    )
    (worst,) = worst_round(plan)
    assert sum(len(run.levels) for run in worst.runs) == 2 * 4
