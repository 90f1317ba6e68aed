"""Counterfactual arms in a plan: who asks for them, what they share, and what takes them out again."""

from collections.abc import Callable
from typing import Any

import pytest

from engines.base import Capabilities, Refusal
from engines.spec import EngineConfig, Model
from jobs.result import OPENING, TREATMENT
from orchestrator.arms import Arms, build_arms, engine_config, swept_keys
from orchestrator.blocks import schedule
from orchestrator.counterfactuals import counterfactual_refusals
from orchestrator.errors import ConfigError
from orchestrator.sweep import Point

Refusals = Callable[[EngineConfig], tuple[Refusal, ...]]
ABLE = Capabilities(emulated=False, cache_salt=True, cache_reset=True, kv_clamp=True, loaded_only=True)
UNABLE = Capabilities(emulated=False, cache_salt=True, cache_reset=True)


def point(method: str = "eagle3", k: int = 3, kv: str = "natural", *, loaded: bool = False) -> Point:
    config: dict[str, Any] = {
        "engine": {"name": "e", "python": None, "device": "emulated", "flags": {}, "env": {}},
        "drafter": {
            "method": method,
            "k": k,
            "model": None,
            "draft_tp": None,
            "acceptance": None,
            "stateful": False,
            "kv": kv,
            "loaded_only": loaded,
            "options": {},
        },
        "layout": {"tp": 1, "dp": 1, "pp": 1},
        "load": {"concurrency": [1, 4]},
        "seed": 0,
    }
    words = {"drafter": method, "drafter.k": str(k), "drafter.kv": kv, "drafter.loaded_only": str(loaded)}
    return Point(config=config, choices=words)


def build(*points: Point, refusals: Refusals = lambda config: ()) -> Arms:
    entries = [(p, engine_config(p.config, python=None, version="1", model=Model(name="m"))) for p in points]
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
