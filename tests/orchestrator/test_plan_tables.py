"""What `specload plan` shows: which arm runs where in which order, and what it takes."""

import json
from dataclasses import replace

import pytest
from rich.console import Console

from engines.spec import Drafter, Layout
from orchestrator.blocks import schedule
from orchestrator.estimate import device_time, estimate, read_pace
from orchestrator.pace import Pace
from orchestrator.pending import pending
from orchestrator.plan import Plan, Refused
from orchestrator.plan_tables import plan_tables
from tests.orchestrator.conftest import arm, outcomes


def shown(plan: Plan) -> str:
    console = Console(width=190)
    with console.capture() as capture:
        console.print(plan_tables(plan, estimate(plan, Pace(stateful=plan.stateful))))
    return capture.get()


def test_a_plan_with_a_refused_arm(small_plan: Plan) -> None:
    refused = Refused(arm=small_plan.arms[1], rule="k_limit", reason="K is at most 2")
    out = shown(replace(small_plan, refused=(refused,), notes=("four points are one",)))
    assert "K is at most 2" in out
    assert "note: four points are one" in out
    assert "(tp1/none) > tp1/ngram-k3 > tp1/ngram-k7 > (tp1/none)" in out
    # both blocks of this plan have one order
    assert "differ by up to 1.00; 1 of 2 ordered pairs" in out
    assert "design.confirm" not in out
    assert "design.budget" not in out


def test_replicas_and_missing_levels_are_said(small_plan: Plan) -> None:
    base, ngram, _ = small_plan.arms
    wide = replace(ngram, config=replace(ngram.config, layout=Layout(tp=2)), levels=ngram.levels[:1])
    wide_base = replace(wide, config=wide.config.baseline())
    arms = (base, ngram, wide_base, wide)
    plan = replace(small_plan, arms=arms, blocks=schedule(arms, blocks=2, seed=0), confirm=2, budget=1.5)
    out = shown(plan)
    assert "tp1/ngram-k3 x2 >" in out or "> tp1/ngram-k3 x2" in out
    assert "tp2/ngram-k3 at c1" in out
    assert "mean places of treatments that share blocks are equal; 2 of 2" in out
    assert "then 2 fresh blocks of the winner" in out
    assert "1.5 device-hours (design.budget)" in out


def test_size_and_time_of_a_plan(small_plan: Plan) -> None:
    """2 blocks x 4 runs x 2 levels on one device."""
    size = estimate(small_plan, Pace())
    assert (size.engine_starts, size.cells, size.device_seconds, size.guessed_cells) == (8, 16, None, 16)
    segment = pending(small_plan, [])[0]
    opening, first = (outcomes(small_plan, segment)[index] for index in (0, 2))
    pace = Pace(
        [replace(opening, seconds=10.0, start_seconds=2.0), replace(first, seconds=6.0, start_seconds=4.0)]
    )
    # a block: starts 2 + 4 + 3 + 2; baselines 2 x 2 x 10; one treatment 2 x 6, the other 2 x 8, the mean
    size = estimate(small_plan, pace)
    assert [block.device_seconds for block in size.blocks] == [11.0 + 40.0 + 12.0 + 16.0] * 2
    assert size.device_seconds == 158.0
    assert size.guessed_cells == 16 - 4 - 2


def test_a_stateful_drafter_starts_an_engine_for_each_cell(small_plan: Plan) -> None:
    base = small_plan.arms[0]
    stateful = arm(Drafter(method="suffix", k=3, stateful=True))
    arms = (base, stateful)
    plan = replace(small_plan, arms=arms, blocks=schedule(arms, blocks=1, seed=0))
    assert estimate(plan, Pace(stateful=plan.stateful)).engine_starts == 2 + len(stateful.levels)


def test_a_pace_is_read_from_the_results_of_these_arms(small_plan: Plan, tmp_path) -> None:
    segment = pending(small_plan, [])[0]
    result = replace(outcomes(small_plan, segment)[0], seconds=10.0, start_seconds=2.0)
    for name, content in (
        ("good", json.dumps(result.to_dict())),
        ("foreign", json.dumps(replace(result, arm="x", seconds=1e6).to_dict())),
        ("damaged", "{"),
    ):
        folder = tmp_path / "s" / "cells" / name
        folder.mkdir(parents=True)
        (folder / "result.json").write_text(content)
    pace = read_pace(tmp_path, small_plan)
    assert pace.cell_seconds("any", "c1") == 10.0
    assert read_pace(tmp_path / "absent", small_plan).cell_seconds("any", "c1") is None


@pytest.mark.parametrize(
    ("seconds", "unit", "words"),
    [
        (None, "GPU", "unknown"),
        (7200.0, "GPU", "about 2.0 GPU-hours"),
        (90.0, "device", "about 2 device-minutes"),
        (1.0, "device", "about 1 device-minute"),
    ],
)
def test_device_time_in_words(seconds: float | None, unit: str, words: str) -> None:
    assert device_time(seconds, unit) == words
