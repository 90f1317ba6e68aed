"""Which arms a profile looks at, at which contexts, and with which prompts."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from engines.registry import engine_named
from engines.spec import Drafter, EngineConfig, Layout, Model
from engines.trace_steps import StepTimes
from jobs.profile.task import EngineProfile
from jobs.profile.window import StepTime
from jobs.workload.conversation import RECORDED
from jobs.workload.tokens import TokenConversation, TokenTurn, TokenWorkload
from orchestrator.errors import ConfigError
from orchestrator.plan import Arm, Plan, Refused
from orchestrator.profile import ESTIMATE, TRACE, result_of
from orchestrator.profile_files import JSON, PICTURES, write_profile
from orchestrator.profile_plan import (
    ProfilePlan,
    ProfileWish,
    differ_in_k_only,
    mean_context,
    other_length,
    plan_profile,
)
from orchestrator.profile_table import profile_table
from orchestrator.tables import console

WISH = ProfileWish(concurrency=3, context=400, steps=20, repeats=2, estimate=False)
WORKLOAD = TokenWorkload(
    name="w",
    conversations=(
        TokenConversation(
            id="a",
            turns=(
                TokenTurn(keep=0, suffix=range(100), output_tokens=10),
                TokenTurn(keep=100, suffix=range(100, 300), output_tokens=30),
            ),
        ),
        TokenConversation(id="b", turns=(TokenTurn(keep=0, suffix=range(300, 350), output_tokens=40),)),
    ),
    validity=RECORDED,
    tokenizer="none",
)


def config(k: int = 0, **changes: object) -> EngineConfig:
    made = EngineConfig(
        engine="emulator",
        version=engine_named("emulator").version(None),
        model=Model(name="llama-3.1-8b", max_context=2048),
        device="emulated",
        flags={"gpu": "h100"},
        drafter=Drafter(method="eagle3", k=k) if k else Drafter(),
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # names of fields


def with_arms(plan: Plan, *configs: EngineConfig) -> Plan:
    return replace(plan, arms=tuple(Arm(config=entry, levels=()) for entry in configs), blocks=())


@pytest.fixture
def plan(small_plan: Plan) -> Plan:
    return with_arms(small_plan, config(), config(3), config(7))


def profile(plan: Plan, *words: str, wish: ProfileWish = WISH) -> ProfilePlan:
    return plan_profile(plan, WORKLOAD, words, wish)


def test_arms_are_named_by_label_or_digest(plan: Plan) -> None:
    k3 = plan.arms[1]
    for word in (k3.label, k3.digest, k3.digest[:8]):
        assert [arm.digest for arm in profile(plan, word).arms] == [k3.digest]
    assert [entry.label for entry in profile(plan, k3.label, k3.digest, plan.arms[2].label).configs] == [
        "tp1/none",
        "tp1/eagle3-k3",
        "tp1/eagle3-k7",
    ]
    assert len(profile(plan).arms) == 2  # none named: all


def test_words_that_name_no_arm_list_them(plan: Plan) -> None:
    with pytest.raises(
        ConfigError, match=r"'eagle3-k9' names none .*did you mean tp1/eagle3-k7.*: tp1/none \("
    ):
        profile(plan, "eagle3-k9")
    refused = replace(plan, refused=(Refused(arm=Arm(config=config(5), levels=()), rule="r", reason="so"),))
    with pytest.raises(ConfigError, match="tp1/eagle3-k5 may not run: so"):
        profile(refused, "tp1/eagle3-k5")


def test_what_cannot_be_profiled_is_refused_with_the_reason(plan: Plan, small_plan: Plan) -> None:
    two = with_arms(small_plan, config(3), config(3, layout=Layout(tp=2)))
    with pytest.raises(ConfigError, match="these arms have 2"):
        profile(two)
    with pytest.raises(ConfigError, match="--concurrency 3 cannot be spread evenly over the 2"):
        profile(with_arms(small_plan, config(3, layout=Layout(dp=2))))
    with pytest.raises(ConfigError, match="pipeline"):
        profile(with_arms(small_plan, config(3, layout=Layout(pp=2))))
    matched = config(3).matched_baseline()
    with pytest.raises(ConfigError, match="KV cache of another arm"):
        profile(with_arms(small_plan, config(), matched), matched.label)
    with pytest.raises(ConfigError, match=r"--context 2000: .* 16 to 1856 tokens"):
        profile(plan, wish=replace(WISH, context=2000))
    with pytest.raises(ConfigError, match="--steps"):
        profile(plan, wish=replace(WISH, steps=3))


def test_the_emulator_is_estimated_with_another_draft_length_and_context(plan: Plan) -> None:
    found = profile(plan, "tp1/eagle3-k7")
    assert not found.traced
    assert [entry.drafter.k for entry in found.configs] == [0, 7, 3]
    assert found.contexts == (400, 1600)
    both = profile(plan)
    assert [entry.drafter.k for entry in both.configs] == [0, 3, 7]  # each has the other
    assert differ_in_k_only(both.configs[1], both.configs[2])
    assert not differ_in_k_only(both.configs[0], both.configs[1])
    assert other_length(config(7, engine="endpoint")) is None  # a server of somebody else's has the K it has


def test_vllm_is_traced_unless_an_estimate_is_asked_for(small_plan: Plan) -> None:
    vllm = with_arms(small_plan, config(engine="vllm"), config(3, engine="vllm"))
    found = profile(vllm)
    assert found.traced
    assert found.contexts == (400,)
    assert len(found.configs) == 2


def test_prompts_are_the_workloads_text_from_different_places(plan: Plan) -> None:
    prompts = profile(plan).prompts
    assert [len(prompt) for prompt in prompts] == [1600] * 3
    assert list(prompts[0][:400]) == [*range(350), *range(50)]  # from its beginning again
    assert len({tuple(prompt[:16]) for prompt in prompts}) == 3


def test_the_context_is_the_workloads_own_where_none_is_given(plan: Plan) -> None:
    # decode steps meet the prompt and half of the answer: 10 at 105, 30 at 315, 40 at 70
    assert mean_context(WORKLOAD) == round((10 * 105 + 30 * 315 + 40 * 70) / 80)
    assert profile(plan, wish=replace(WISH, context=None)).contexts[0] == mean_context(WORKLOAD)


def test_a_profile_lies_in_its_sweeps_folder_where_there_is_one(plan: Plan, tmp_path: Path) -> None:
    found = profile(plan, "tp1/eagle3-k3")
    name = f"tp1-eagle3-k3-{plan.arms[1].digest[:10]}"
    assert found.folder(plan, tmp_path) == tmp_path / "profiles" / name / "c3-n400-estimate"
    (tmp_path / plan.sweep).mkdir()
    (tmp_path / plan.sweep / "plan.json").touch()
    assert found.folder(plan, tmp_path).parents[2] == tmp_path / plan.sweep


def engine(
    config: EngineConfig, step_ms: float, *, traced_ms: float | None, rest: float = 0.5
) -> EngineProfile:
    k = config.drafter.k
    trace = None
    if traced_ms is not None:
        trace = StepTimes(
            steps=16,
            step_ms=traced_ms,
            forward_ms=traced_ms - 3.0 - rest,
            attention_ms=1.0,
            draft_ms=1.0 if k else 0.0,
            sample_ms=1.0 if k else 2.0,
            overhead_ms=0.0,
            rest_ms=rest,
            requests=3.0,
            positions=k + 1.0,
            device="cpu",
        )
    windows = tuple(
        (StepTime(steps=20, step_ms=step_ms + extra, tokens_per_step=1.0, context=context, lead_tokens=1.0),)
        for context, extra in ((400.0, 0.0), (1600.0, 1.2))
    )
    traces = () if trace is None else (trace,)
    return EngineProfile(arm=config.digest, label=config.label, k=k, windows=windows, traces=traces)


def table(profile: ProfilePlan, found: Sequence[EngineProfile]) -> str:
    out = console()
    with out.capture() as captured:
        out.print(profile_table(profile, result_of(profile, found)))
    return captured.get()


def test_a_traced_profile_is_written_with_its_doubts(small_plan: Plan, tmp_path: Path) -> None:
    plan = with_arms(small_plan, config(engine="vllm"), config(3, engine="vllm"))
    chosen = profile(plan)
    engines = [
        engine(chosen.configs[0], 10.0, traced_ms=10.5),
        engine(chosen.configs[1], 12.0, traced_ms=15.0, rest=3.0),
    ]
    result = result_of(chosen, engines)
    assert result.source == TRACE
    assert not [note for note in result.notes if note.startswith("tp1/none")]
    assert any("20% of the step belong to no part" in note for note in result.notes)
    assert any("differs by +25%" in note for note in result.notes)
    ((quiet,), *others) = engines[0].windows
    restless = [replace(engines[0], windows=((quiet, replace(quiet, step_ms=13.0)), *others)), engines[1]]
    said = "its step took 10.00 to 13.00 ms without a profiler: the machine was not quiet"
    assert any(said in note for note in result_of(chosen, restless).notes)
    write_profile(tmp_path / "p", plan, chosen, result)
    assert all((tmp_path / "p" / name).stat().st_size for name in PICTURES)
    data = json.loads((tmp_path / "p" / JSON).read_text())
    assert [entry["label"] for entry in data["engines"]] == ["tp1/none", "tp1/eagle3-k3"]
    assert sum(part["share"] for part in data["engines"][1]["parts"]) == pytest.approx(1.0)
    said = table(chosen, engines)
    assert "verification overhead" in said
    assert "the same step without the profiler" in said


def test_an_estimate_says_that_it_is_one_everywhere(plan: Plan, tmp_path: Path) -> None:
    chosen = profile(plan, "tp1/eagle3-k7")
    steps = (10.0, 14.0, 12.0)  # the baseline, K=7, K=3
    engines = [engine(entry, ms, traced_ms=None) for entry, ms in zip(chosen.configs, steps, strict=True)]
    result = result_of(chosen, engines)
    assert result.source == ESTIMATE
    parts = {part.name: part.ms for part in result.engines[1].breakdown.parts}
    assert parts["drafting and verification"] == pytest.approx(3.5)
    assert parts["fixed cost of speculation"] == pytest.approx(0.5)
    assert parts["attention"] == pytest.approx(0.4)
    said = table(chosen, engines)
    assert "EMULATED, ESTIMATE, decode step" in said
    assert "ESTIMATE from mean step times" in said
    write_profile(tmp_path, plan, chosen, result)
    svg = (tmp_path / PICTURES[0]).read_text()
    assert "ESTIMATE from mean step times" in svg
    assert json.loads((tmp_path / JSON).read_text())["source"] == ESTIMATE
