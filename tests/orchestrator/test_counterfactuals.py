"""Counterfactual arms in a plan: who asks for them, what they share, and what takes them out again."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from engines.base import Capabilities, Refusal
from engines.spec import Drafter, EngineConfig, Model
from jobs.result import OPENING, TREATMENT
from jobs.workload.tokens import TokenWorkload
from orchestrator.arms import Arms, build_arms, swept_keys
from orchestrator.blocks import schedule
from orchestrator.counterfactuals import counterfactual_refusals
from orchestrator.errors import ConfigError
from orchestrator.estimate import estimate
from orchestrator.pace import Pace
from orchestrator.pending import block_task, pending
from orchestrator.plan import Plan
from orchestrator.sweep import Point

Refusals = Callable[[EngineConfig], tuple[Refusal, ...]]
ABLE = Capabilities(emulated=False, cache_salt=True, cache_reset=True, kv_clamp=True, loaded_only=True)
UNABLE = Capabilities(emulated=False, cache_salt=True, cache_reset=True)


def point(method: str = "eagle3", k: int = 3, kv: str = "natural", *, loaded: bool = False) -> Point:
    drafter = {"method": method, "k": k, "kv": kv, "loaded_only": loaded}
    config = {"drafter": drafter, "load": {"concurrency": [1, 4]}}
    words = {"drafter": method, "drafter.k": str(k), "drafter.kv": kv, "drafter.loaded_only": str(loaded)}
    return Point(config=config, choices=words)


def engine(point: Point) -> EngineConfig:
    method, k, loaded = (point.at(f"drafter.{key}") for key in ("method", "k", "loaded_only"))
    drafter = Drafter(method=method, k=k, loaded_only=loaded)
    return EngineConfig(engine="e", version="1", model=Model(name="m"), device="emulated", drafter=drafter)


def build(*points: Point, refusals: Refusals = lambda config: ()) -> Arms:
    entries = [(point, engine(point)) for point in points]
    return build_arms(entries, factors=swept_keys(points), refusals=refusals, devices=None)


def labels(arms: Arms) -> list[str]:
    return [arm.label for arm in arms.allowed]


def test_matched_adds_a_second_baseline_of_the_same_pair() -> None:
    arms = build(point(kv="matched"))
    assert labels(arms) == ["tp1/none", "tp1/eagle3-k3", "tp1/none-kv-matched-eagle3-k3"]
    baseline, treatment, matched = arms.allowed
    assert baseline.pair_key == treatment.pair_key == matched.pair_key
    assert [arm.is_baseline for arm in arms.allowed] == [True, False, False]
    assert matched.config.kv_match is not None
    assert matched.config.kv_match.arm == treatment.digest
    assert matched.levels == treatment.levels


def test_it_is_the_same_arm_whether_or_not_its_baseline_is_matched() -> None:
    arms = build(point(), point(kv="matched"), point("none", 0, kv="matched"))
    assert labels(arms) == ["tp1/none", "tp1/eagle3-k3", "tp1/none-kv-matched-eagle3-k3"]
    assert [arm.factors["drafter.kv"] for arm in arms.allowed] == ["natural", "natural", "matched"]
    assert arms.allowed[2].factors["drafter"] == "none"


def test_each_draft_length_has_a_matched_baseline_of_its_own() -> None:
    arms = build(point(k=1, kv="matched"), point(k=7, kv="matched"))
    assert len({arm.digest for arm in arms.allowed}) == 5


def test_a_loaded_drafter_is_another_arm_than_the_drafter() -> None:
    arms = build(point(), point(loaded=True))
    assert labels(arms) == ["tp1/none", "tp1/eagle3-k3", "tp1/eagle3-k3-loaded"]
    assert arms.allowed[2].config.counterfactual == "loaded_only"


def test_a_matched_baseline_never_opens_or_closes_a_block() -> None:
    arms = build(point(kv="matched"))
    for block in schedule(arms.allowed, blocks=3, seed=1):
        roles = {run.role for run in block.runs if run.arm == arms.allowed[2].digest}
        assert roles == {TREATMENT}
        assert [run.role for run in block.runs].count(OPENING) == 1


def test_an_arm_that_comes_after_its_matched_baseline_is_started_once_more_to_be_asked(
    small_plan: Plan,
) -> None:
    """Two blocks have their treatments in opposite orders, so one of them has to ask."""
    arms = build(point(kv="matched")).allowed
    plan = replace(small_plan, arms=arms, blocks=schedule(arms, blocks=2, seed=1))
    assert sorted(block.engine_starts for block in estimate(plan, Pace()).blocks) == [4, 5]


def test_a_run_carries_the_engine_whose_cache_it_gets(small_plan: Plan) -> None:
    arms = build(point(kv="matched")).allowed
    plan = replace(small_plan, arms=arms, blocks=schedule(arms, blocks=1, seed=1))
    (segment,) = pending(plan, [])
    workload = TokenWorkload(name="w", conversations=(), validity="recorded", tokenizer="t")
    runs = block_task(plan, segment, workload, engine_cores=1, load_cores=1).runs
    assert {run.config.label: run.kv_of for run in runs if run.kv_of} == {
        "tp1/none-kv-matched-eagle3-k3": arms[1].config
    }
    assert Plan.from_dict(json.loads(json.dumps(plan.to_dict()))).arms == plan.arms


def test_without_its_arm_a_matched_baseline_means_nothing() -> None:
    def refusals(config: EngineConfig) -> tuple[Refusal, ...]:
        return (Refusal(rule="r", reason="no such head"),) if config.drafter.k == 3 else ()

    arms = build(point(kv="matched"), point(k=1), refusals=refusals)
    assert labels(arms) == ["tp1/none", "tp1/eagle3-k1"]
    found = {entry.arm.label: (entry.rule, entry.reason) for entry in arms.refused}
    assert found["tp1/eagle3-k3"] == ("r", "no such head")
    rule, reason = found["tp1/none-kv-matched-eagle3-k3"]
    assert (rule, "no such head" in reason) == ("kv_matched", True)


def test_an_engine_that_cannot_be_one_refuses_it() -> None:
    *ordinary, matched, loaded = build(point(kv="matched"), point(loaded=True)).allowed
    for rule, arm in (("kv_matched", matched), ("loaded_only", loaded)):
        assert [refusal.rule for refusal in counterfactual_refusals(arm.config, UNABLE)] == [rule]
        assert counterfactual_refusals(arm.config, ABLE) == ()
    assert [counterfactual_refusals(arm.config, UNABLE) for arm in ordinary] == [(), ()]


def test_a_slip_of_the_keyboard_is_named() -> None:
    with pytest.raises(ConfigError, match=r"drafter\.kv is 'match'; choose natural or matched"):
        build(point(kv="match"))
