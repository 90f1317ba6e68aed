"""What a recording is to hold: from the user's words, before anything starts."""

import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import WorkloadError
from jobs.workload.conversation import SYNTHETIC
from orchestrator import cli
from orchestrator.errors import ConfigError
from orchestrator.record_plan import MAX_OUTPUT_TOKENS, RecordPlan, plan_recording
from orchestrator.sweep import Point, collect
from tests.orchestrator.points import with_values


@pytest.fixture
def questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "question.jsonl"
    rows = [{"question_id": number, "category": "c", "turns": ["Ask.", "Again."]} for number in range(9)]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    monkeypatch.chdir(tmp_path)
    return path


WORDS = ("workload=spec_bench", "workload.paths=[question.jsonl]")


Plan = Callable[..., RecordPlan]


@pytest.fixture(scope="module")
def composed() -> Point:
    (point,) = collect(WORDS)
    return point


@pytest.fixture
def plan(composed: Point, questions: Path) -> Plan:
    """Plan the recording of the composed point with other values at dotted keys."""

    def plan_values(values: Mapping[str, Any] | None = None, *, temperature: float = 0.0) -> RecordPlan:
        return plan_recording([with_values(composed, values or {})], temperature=temperature)

    return plan_values


def test_the_baseline_writes_the_replies(questions: Path) -> None:
    words = ("drafter=eagle3", "drafter.k=3", "load.concurrency=[1,6,2]", "seed=5")
    made = plan_recording(collect([*WORDS, *words]), temperature=0.0)
    assert made.config.drafter.is_none
    identity = made.header.identity
    assert identity.arm == made.config.digest
    assert (identity.source_name, identity.source_format) == ("spec_bench", "spec_bench")
    assert (identity.max_output_tokens, identity.temperature, identity.seed) == (MAX_OUTPUT_TOKENS, 0.0, 5)
    assert made.header.concurrency == 6
    assert made.header.wanted == 9
    assert made.header.validity == SYNTHETIC, "the emulator writes filler"
    assert made.notes == ()


def test_what_decides_the_replies_is_its_identity(plan: Plan, questions: Path) -> None:
    first = plan().header.identity
    assert plan({"load.concurrency": 3, "timeouts.ready": 9}).header.identity == first
    others = [
        plan({"workload.max_output_tokens": 7}).header.identity,
        plan({"seed": 1}).header.identity,
        plan(temperature=0.5).header.identity,
        plan({"workload.limit": 3}).header.identity,
        plan({"engine.flags.gpu": "a10"}).header.identity,
    ]
    questions.write_text(questions.read_text().replace("Again.", "Once more."))
    others.append(plan().header.identity)
    assert len({*others, first}) == 7


def test_a_limit_keeps_the_order(plan: Plan) -> None:
    ids = [int(conversation.id) for conversation in plan({"workload.limit": 4}).conversations]
    assert len(ids) == 4
    assert ids == sorted(ids)
    assert ids != [0, 1, 2, 3], "a hash chooses, not the file"


def test_settings_of_a_replay_are_named(plan: Plan) -> None:
    assert plan({"workload.gaps": "recorded"}).notes == (
        "workload.gaps: for a replay of the recording; nothing here depends on it",
    )


def test_what_cannot_be_recorded_is_refused(plan: Plan, composed: Point) -> None:
    for values, found in (
        ({"workload.format": "builtin", "workload.paths": []}, "has a reply in every turn already"),
        ({"load.concurrency": 0}, r"load\.concurrency is 0"),
        ({"workload.limit": 0}, r"workload\.limit is 0"),
        ({"model.name": "smollm2"}, "model"),
        ({"workload.paths": ["none.jsonl"]}, "this file does not exist"),
    ):
        with pytest.raises((ConfigError, WorkloadError), match=found):
            plan(values)
    with pytest.raises(ConfigError, match="--temperature is 3"):
        plan(temperature=3.0)
    with pytest.raises(ConfigError, match="these words make 2 points"):
        plan_recording([composed, with_values(composed, {"layout.tp": 2})])


def test_a_sweep_of_it_names_the_command_that_records(
    questions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        *WORDS,
        "+engine.flags.time_scale=0.1",
        "drafter=eagle3",
        "workload.limit=5",
        "workload.fit=drop",
    ]
    assert cli.main(["plan", *words]) == 2
    said = capsys.readouterr().err
    assert "'spec_bench' has no reply for 18 of its 18 turns" in said
    assert "sweep with workload=recorded 'workload.paths=[spec_bench-llama-3.1-8b.jsonl]'" in said
    command = shlex.split(said.partition("The command is: ")[2])
    assert command[:3] == ["specload", "workload", "record"]
    assert command[-2:] == ["--output", "spec_bench-llama-3.1-8b.jsonl"]
    recorded = command[3:-2]
    assert not any("drafter" in word for word in recorded)
    made = plan_recording(collect(recorded))
    assert made.config.flags["time_scale"] == 0.1
    assert len(made.conversations) == 5
