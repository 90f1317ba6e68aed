"""Each rule has an example it lets pass and one it refuses."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engines.acceptance import GEOMETRIC, Acceptance
from engines.base import Rule
from engines.rules import COMMON_RULES, model_facts, refusals_by
from engines.spec import Drafter, EngineConfig, Layout, Model

Make = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path) -> Make:
    """Write a model folder with these entries of config.json; return its path."""

    def make(name: str = "target", **facts: Any) -> str:
        path = tmp_path / name
        path.mkdir()
        (path / "config.json").write_text(json.dumps(facts))
        return str(path)

    return make


def config(path: str | None = None, *, max_context: int = 2048, **changes: Any) -> EngineConfig:
    plain = EngineConfig(
        engine="vllm", version="0", model=Model(name="m", path=path, max_context=max_context)
    )
    return replace(plain, **changes)


def rules_against(arm: EngineConfig) -> list[str]:
    return [refusal.rule for refusal in refusals_by(COMMON_RULES, arm)]


@pytest.mark.parametrize(("tp", "refused"), [(1, False), (3, False), (2, True), (6, True)])
def test_heads_divisible_by_tp(folder: Make, tp: int, refused: bool) -> None:
    arm = config(folder(num_attention_heads=9, num_key_value_heads=3), layout=Layout(tp=tp))
    assert ("heads_divisible_by_tp" in rules_against(arm)) == refused


@pytest.mark.parametrize(("tp", "refused"), [(2, False), (4, False), (8, False), (16, False), (3, True)])
def test_kv_heads_divide_tp_or_are_replicated(folder: Make, tp: int, refused: bool) -> None:
    arm = config(folder(num_attention_heads=48, num_key_value_heads=8), layout=Layout(tp=tp))
    assert rules_against(arm) == (["kv_heads_divisible_by_tp"] if refused else [])


@pytest.mark.parametrize(("pp", "refused"), [(4, False), (5, True)])
def test_layers_for_pp(folder: Make, pp: int, refused: bool) -> None:
    arm = config(folder(num_hidden_layers=4), layout=Layout(pp=pp))
    assert rules_against(arm) == (["layers_for_pp"] if refused else [])


@pytest.mark.parametrize(("longest", "refused"), [(2048, False), (2047, True)])
def test_context_of_model(folder: Make, longest: int, refused: bool) -> None:
    arm = config(folder(max_position_embeddings=longest))
    assert rules_against(arm) == (["context_of_model"] if refused else [])


@pytest.mark.parametrize(("k", "context", "refused"), [(64, 2048, False), (65, 2048, True), (8, 8, True)])
def test_draft_length(k: int, context: int, refused: bool) -> None:
    arm = config(max_context=context, drafter=Drafter(method="ngram", k=k))
    assert rules_against(arm) == (["draft_length"] if refused else [])


@pytest.mark.parametrize(
    ("drafter", "key"),
    [
        (Drafter(), None),
        (Drafter(model="x"), "model"),
        (Drafter(acceptance=Acceptance(alpha=0.5)), "acceptance"),
        (Drafter(options={"prompt_lookup_max": 3}), "options"),
    ],
)
def test_a_baseline_has_no_drafter_settings(drafter: Drafter, key: str | None) -> None:
    found = {refusal.rule: refusal.reason for refusal in refusals_by(COMMON_RULES, config(drafter=drafter))}
    assert ("baseline_has_no_drafter_settings" in found) == (key is not None)
    assert key is None or f"drafter.{key}" in found["baseline_has_no_drafter_settings"]


@pytest.mark.parametrize(
    ("acceptance", "k", "refused"),
    [
        (Acceptance(alpha=0.5), 1, False),
        (Acceptance(length=3.5, shape=GEOMETRIC), 3, False),
        (Acceptance(length=3.5, shape=GEOMETRIC), 2, True),
        (Acceptance(positions=(0.9, 0.5)), 2, False),
        (Acceptance(positions=(0.9, 0.5)), 3, True),
    ],
)
def test_acceptance_in_reach(acceptance: Acceptance, k: int, refused: bool) -> None:
    arm = config(drafter=Drafter(method="free", k=k, acceptance=acceptance))
    assert rules_against(arm) == (["acceptance_in_reach"] if refused else [])


@pytest.mark.parametrize(("draft_tp", "refused"), [(None, False), (1, False), (4, False), (2, True)])
def test_draft_tp(draft_tp: int | None, refused: bool) -> None:
    arm = config(layout=Layout(tp=4), drafter=Drafter(method="eagle3", k=3, model="head", draft_tp=draft_tp))
    assert rules_against(arm) == (["draft_tp"] if refused else [])


@pytest.mark.parametrize(
    ("vocabulary", "options", "refused"),
    [(512, {}, False), (513, {}, True), (513, {"use_heterogeneous_vocab": True}, False)],
)
def test_same_vocabulary(folder: Make, vocabulary: int, options: dict[str, Any], refused: bool) -> None:
    target, draft = folder(vocab_size=512), folder("draft", vocab_size=vocabulary)
    arm = config(target, drafter=Drafter(method="draft_model", k=3, model=draft, options=options))
    assert rules_against(arm) == (["same_vocabulary"] if refused else [])


@pytest.mark.parametrize(("stateful", "refused"), [(True, False), (False, True)])
def test_suffix_is_stateful(stateful: bool, refused: bool) -> None:
    arm = config(drafter=Drafter(method="suffix", k=8, stateful=stateful))
    assert rules_against(arm) == (["suffix_is_stateful"] if refused else [])


def test_nothing_is_held_against_an_emulated_model() -> None:
    assert rules_against(config(layout=Layout(tp=7))) == []


def test_the_text_part_of_a_multimodal_model_counts(folder: Make) -> None:
    path = folder(vision_config={}, text_config={"num_attention_heads": 5})
    assert rules_against(config(path, layout=Layout(tp=2))) == ["heads_divisible_by_tp"]


@pytest.mark.parametrize("text", ["", "[1]", "{"])
def test_an_unreadable_config_has_no_facts(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    assert model_facts(str(tmp_path)) is None


def test_refusals_come_in_the_order_of_the_table_and_names_are_unique() -> None:
    table = tuple(Rule(name=name, meaning="", check=lambda _, name=name: f"because {name}") for name in "ba")
    assert [refusal.rule for refusal in refusals_by(table, config())] == ["b", "a"]
    names = [rule.name for rule in COMMON_RULES]
    assert len(names) == len(set(names))
