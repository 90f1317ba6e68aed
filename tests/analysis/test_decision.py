import dataclasses
from pathlib import Path
from typing import Any

import pytest

from analysis.decision import Decision, decision
from analysis.decision_words import change, words_again
from analysis.frame import Sweep, cells_frame
from analysis.objectives import OBJECTIVES
from analysis.rows import Ratio
from analysis.summary import summary_of
from jobs.result import CONFIRMATION, FAILED, INVALID, TREATMENT

PLAN = {"overrides": ["drafter=free", "drafter.k=3,7", "experiment=crossover", "load.concurrency=[1,4]"]}


def decide(results: list[Any], plan: dict[str, Any] | None = None, objective: str = "total") -> Decision:
    sweep = Sweep(
        directory=Path("results/made"), plan=plan or PLAN, cells=cells_frame(results), results=results
    )
    return decision(sweep, summary_of(sweep, threshold=0.02, objective=objective))


def test_a_drafter_up_to_an_edge_and_none_above(make_sweep) -> None:
    found = decide(make_sweep(noise=0.002))
    assert found.sentence.startswith("Up to about C=")
    assert "serve ngram-k3 on tp1 (at least +20 % [+" in found.sentence
    assert "total throughput, provisional)" in found.sentence
    assert found.sentence.endswith("; above, serve without a drafter on tp1.")
    speculate, plain = found.cards
    assert speculate.drafter
    assert speculate.status == "provisional"
    assert "at C=4, where it is smallest" in speculate.advantage
    assert "over tp1/none" in speculate.margin
    assert "between the levels C=4 and C=16" in speculate.ends[0]
    assert "95 % interval" in speculate.ends[0]
    assert speculate.ends[-1] == "tried at C=1 to C=4"
    assert (plain.drafter, plain.advantage, plain.label) == (False, "", "tp1/none")
    assert found.command == "specload sweep --from results/made/plan.json --confirm 4"


def test_a_confirmed_winner_needs_no_further_command(make_sweep) -> None:
    planned = make_sweep(noise=0.002)
    fresh = [
        dataclasses.replace(cell, block=cell.block + 3, round=1, kind=CONFIRMATION, cell=f"fresh-{cell.cell}")
        for cell in make_sweep(noise=0.002, levels=[1], seed=2)
    ]
    found = decide([*planned, *fresh])
    assert "total throughput, confirmed at C=1)" in found.sentence
    assert found.command == ""


def test_one_choice_at_all_levels(make_sweep, true_arm) -> None:
    wins = decide(make_sweep([true_arm(ratios={1: 1.5, 4: 1.4, 16: 1.3})], noise=0.002))
    assert wins.sentence.startswith("At C=1 to C=16 serve ngram-k3 on tp1 (at least +30 %")
    loses = decide(make_sweep([true_arm(ratios={1: 0.9, 4: 0.8, 16: 0.7})], noise=0.002))
    assert loses.sentence == ("No drafter is shown to pay at C=1 to C=16: serve without a drafter on tp1.")
    assert loses.cards[0].reason == "no arm with a drafter wins (loses)"
    assert loses.command == ""


def test_what_is_undecided_asks_for_blocks(make_sweep, true_arm) -> None:
    found = decide(make_sweep([true_arm(ratios={1: 1.0, 4: 1.05, 16: 1.0})], noise=0.03))
    assert found.sentence.startswith("No drafter is shown to pay")
    assert "until more is known (tp1/ngram-k3 is undecided at C=" in found.sentence
    assert found.cards[0].status == "by default"
    assert "design.blocks=" in found.command
    assert found.deciding == found.command
    assert "block would decide" in found.undecided[0] or "blocks would decide" in found.undecided[0]
    assert found.retry == ""
    assert "undecided" in found.cards[0].reason


def test_an_arm_without_a_valid_pair_is_not_said_to_lose(make_sweep, true_arm) -> None:
    cells = [
        dataclasses.replace(cell, outcome=INVALID) if cell.k and cell.level == 16 else cell
        for cell in make_sweep([true_arm(ratios={1: 1.5, 4: 1.4, 16: 1.3})], noise=0.002)
    ]
    found = decide(cells)
    assert found.sentence.endswith(
        "; above, serve without a drafter on tp1 until more is known (tp1/ngram-k3 is invalid at C=16)."
    )
    assert [card.status for card in found.cards] == ["provisional", "by default"]
    assert found.undecided == ("tp1/ngram-k3 C=16: no valid pair, 3 x invalid",)
    assert found.retry == "specload sweep --from results/made/plan.json --retry invalid"
    assert found.deciding == ""


def test_forced_acceptance_is_a_ceiling_and_no_choice(make_sweep) -> None:
    cells = [dataclasses.replace(cell, synthetic=cell.k > 0) for cell in make_sweep(noise=0.002)]
    found = decide(cells)
    assert found.sentence.startswith(
        "Nothing can be recommended: no drafter was measured that could be served. Accept"
    )
    assert found.cards == ()
    assert found.instead[0].startswith(
        "forced acceptance, tp1/ngram-k3: total throughput falls through 1 between C=4 and C=16"
    )
    assert found.command == (
        "specload sweep -m +experiment=crossover 'load.concurrency=[1,4]' drafter=ngram drafter.k=3,7"
    )


def test_one_block_decides_nothing_and_shows_the_best(make_sweep, true_arm) -> None:
    better = true_arm(label="tp1/ngram-k7", k=7, ratios={1: 1.6, 4: 1.1, 16: 0.9})
    found = decide(make_sweep([true_arm(), better], blocks=1))
    assert found.sentence == (
        "Nothing can be recommended: with one block the noise between blocks is unknown."
    )
    assert found.instead[0] == (
        "C=1: the best drafter is tp1/ngram-k7 with +60 % total throughput (one block, so no interval)"
    )
    assert "tp1/ngram-k3 with +20 %" in found.instead[1]
    assert found.command.endswith("'load.concurrency=[1,4]' design.blocks=3")


def test_shared_cores_get_no_recommendation(make_sweep) -> None:
    found = decide(make_sweep(noise=0.002, oversubscribed=True))
    assert "client and engine shared a core at every level" in found.sentence
    assert "(an indication, no verdict)" in found.instead[0]
    assert found.cards == ()


def test_nothing_measured_says_what_to_run(make_sweep) -> None:
    assert decide([]).command == "specload sweep --from results/made/plan.json"
    dead = [
        dataclasses.replace(cell, outcome=FAILED, cause="died", metrics={}) for cell in make_sweep(blocks=1)
    ]
    found = decide(dead)
    assert found.sentence.startswith("Nothing can be recommended: no baseline was measured")
    assert found.command == "specload status results/made"


def test_levels_where_cores_were_shared_are_told_apart(make_sweep) -> None:
    cells = [
        dataclasses.replace(cell, oversubscribed=cell.concurrency == 16) for cell in make_sweep(noise=0.002)
    ]
    found = decide(cells)
    assert "; above, nothing can be said (client and engine shared a core" in found.sentence
    assert found.cards[-1].serve == "nothing can be said"


def test_slices_that_never_met_are_told_apart(make_sweep, true_arm) -> None:
    larger = [
        dataclasses.replace(cell, block=cell.block + 3, devices=2, cell=f"two-{cell.cell}")
        for cell in make_sweep([true_arm(label="tp2/ngram-k3", layout="tp2")], noise=0.002)
    ]
    found = decide([*make_sweep(noise=0.002), *larger])
    assert "On 1 device (tp1): Up to about" in found.sentence
    assert "On 2 devices (tp2): Up to about" in found.sentence
    assert [card.devices for card in found.cards] == [1, 1, 2, 2]


def test_a_sweep_without_a_drafter_and_one_whose_pairs_are_all_invalid(make_sweep) -> None:
    alone = decide(make_sweep([], noise=0.002))
    assert alone.sentence == "Nothing can be recommended: no drafter was measured that could be served."
    assert "drafter=ngram" in alone.command
    dead = [
        dataclasses.replace(cell, outcome=FAILED, cause="died", metrics={}) if cell.k else cell
        for cell in make_sweep(noise=0.002)
    ]
    found = decide(dead)
    assert found.sentence == "Nothing can be recommended: no arm with a drafter has a valid pair."
    assert "died" in found.instead[0]


def test_emulated_is_said_in_the_sentence(make_sweep) -> None:
    assert "Emulated: a model's figures" in decide(make_sweep(noise=0.002, emulated=True)).sentence


def test_an_advantage_in_latency_is_a_decrease() -> None:
    ratio = Ratio(value=1.25, lo=1.2, hi=1.31, pairs=3)
    assert change(ratio, OBJECTIVES["ttft_p95"]) == "-20 % [-24, -17] TTFT p95"
    assert change(ratio, OBJECTIVES["total"]) == "+25 % [+20, +31] total throughput"
    assert change(Ratio(value=1.031), OBJECTIVES["total"]) == "+3.1 % total throughput"


def test_a_latency_objective_is_told_in_its_own_direction(make_sweep, true_arm) -> None:
    found = decide(
        make_sweep([true_arm(ratios={1: 1.5, 4: 1.4, 16: 1.3})], noise=0.002), objective="e2el_p95"
    )
    assert "serve ngram-k3 on tp1 (at least -23 % [" in found.sentence


@pytest.mark.parametrize(
    ("changes", "without", "expected"),
    [
        ((), "\0", "drafter=free drafter.k=3,7 +experiment=crossover 'load.concurrency=[1,4]'"),
        (("drafter.k=5",), "\0", "drafter=free +experiment=crossover 'load.concurrency=[1,4]' drafter.k=5"),
        ((), "drafter", "+experiment=crossover 'load.concurrency=[1,4]'"),
    ],
)
def test_a_sweeps_words_again(changes: tuple[str, ...], without: str, expected: str) -> None:
    assert words_again(PLAN, *changes, without=without) == f"specload sweep -m {expected}"


def test_treatments_without_baselines_are_no_choice(make_sweep) -> None:
    cells = [
        cell if cell.role == TREATMENT else dataclasses.replace(cell, outcome=FAILED, metrics={})
        for cell in make_sweep()
    ]
    assert "no baseline was measured" in decide(cells).sentence
