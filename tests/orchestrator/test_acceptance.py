"""`specload acceptance`: what a checkpoint was built to have, and the table."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from analysis.acceptance import acceptance_rows
from engines.acceptance import Acceptance
from engines.spec import Drafter, EngineConfig, Model
from jobs.load import LoadLevel
from jobs.result import MEASURED, TREATMENT, CellResult
from orchestrator.acceptance_table import acceptance_table
from orchestrator.built_acceptance import FILE, built_lengths
from orchestrator.models import folder_digest
from orchestrator.plan import Arm, Plan

RATES = {"1": [0.6], "3": [0.6, 0.4, 0.2]}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / FILE).write_text(json.dumps({"rates": RATES}))
    return tmp_path


def built(plan: Plan, *configs: EngineConfig) -> list[float | None]:
    arms = [Arm(config=config, levels=(LoadLevel(concurrency=1),)) for config in configs]
    lengths = built_lengths(replace(plan, arms=tuple(arms)))
    return [lengths.get(arm.digest) for arm in arms]


def test_a_checkpoint_tells_what_it_was_built_to_have(checkpoint: Path, small_plan: Plan) -> None:
    model = Model(name="m", path=str(checkpoint), digest=folder_digest(checkpoint))
    plain = EngineConfig(engine="vllm", version="0.32.0", model=Model(name="m"))
    drafter = Drafter(method="eagle3", k=3, model=str(checkpoint), model_digest=folder_digest(checkpoint))
    forced = replace(drafter, acceptance=Acceptance(alpha=0.5))
    schedule = {"num_speculative_tokens_per_batch_size": [[1, 8, 3], [9, 64, 1]]}
    assert built(
        small_plan,
        replace(plain, drafter=drafter),
        replace(plain, drafter=replace(drafter, k=1)),
        replace(plain, model=model, drafter=Drafter(method="mtp", k=3)),
        replace(plain, drafter=replace(drafter, k=2)),  # no table for this K
        replace(plain, drafter=forced),
        replace(plain, drafter=replace(drafter, options=schedule)),
        replace(plain, drafter=replace(drafter, model_digest="0" * 64)),  # not the one of the plan
        replace(plain, model=model, drafter=Drafter(method="ngram", k=3)),
        replace(plain, drafter=replace(drafter, model=str(checkpoint / "gone"), model_digest="1" * 64)),
        replace(plain, model=model),
    ) == pytest.approx([2.2, 1.6, 2.2, *[None] * 7])


def test_the_table_says_what_was_known_and_what_came_of_it() -> None:
    metrics = {
        "spec/mal": 2.2,
        "spec/drafts": 1234,
        "spec/requested_mal": None,
        "spec/acceptance_pos_1": 0.7,
        "spec/acceptance_pos_2": 0.5,
    }
    cell = CellResult(
        cell="c",
        arm="a" * 64,
        arm_label="tp1/eagle3-k2",
        layout="tp1",
        drafter="eagle3",
        k=2,
        concurrency=1,
        block=0,
        segment=0,
        role=TREATMENT,
        outcome=MEASURED,
        emulated=False,
        metrics=metrics,
    )
    console = Console(width=150)
    with console.capture() as captured:
        console.print(acceptance_table(acceptance_rows([cell], {"a" * 64: 2.0})))
        console.print(acceptance_table([]))
    said = " ".join(captured.get().split())
    assert "tp1/eagle3-k2 │ 2 │ built in │ 2.0000 │ 2.2000 │ 1,234 │ +10.00% │" in said
    assert "differs" in said
    assert "No arm with a drafter has a result yet." in said
