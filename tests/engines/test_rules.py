"""Rules of every engine: examples each lets pass, and refuses; a rule that lacks either fails here."""

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
Facts = dict[str, Any]
Example = tuple[EngineConfig, Facts, Facts]
"""A configuration, and config.json of its target and of its draft model (empty: neither is a folder)."""


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


def of(facts: Facts, *, draft: Facts | None = None, **changes: Any) -> Example:
    return config(**changes), facts, draft or {}


def drafting(method: str = "ngram", k: int = 3, **changes: Any) -> Example:
    return config(drafter=Drafter(method=method, k=k, **changes)), {}, {}


def forced(k: int, **form: Any) -> Example:
    return drafting("free", k, acceptance=Acceptance(**form))


HEADS = {"num_attention_heads": 48, "num_key_value_heads": 8}
MODEL = Drafter(method="draft_model", k=3, model="draft")
MAPPED = replace(MODEL, options={"use_heterogeneous_vocab": True})

EXAMPLES: dict[str, tuple[list[Example], list[Example]]] = {
    "heads_divisible_by_tp": (
        [of({"num_attention_heads": 9}, layout=Layout(tp=tp)) for tp in (1, 3)],
        [of({"num_attention_heads": 9}, layout=Layout(tp=tp)) for tp in (2, 6)],
    ),
    "kv_heads_divisible_by_tp": (
        [of(HEADS, layout=Layout(tp=tp)) for tp in (2, 4, 8, 16)],
        [of(HEADS, layout=Layout(tp=3))],
    ),
    "layers_for_pp": (
        [of({"num_hidden_layers": 4}, layout=Layout(pp=4))],
        [of({"num_hidden_layers": 4}, layout=Layout(pp=5))],
    ),
    "context_of_model": (
        [of({"max_position_embeddings": 2048})],
        [of({"max_position_embeddings": 2047})],
    ),
    "draft_length": (
        [drafting(k=64)],
        [drafting(k=65), (config(max_context=8, drafter=Drafter(method="ngram", k=8)), {}, {})],
    ),
    "acceptance_in_reach": (
        [forced(3, length=3.5, shape=GEOMETRIC), forced(3, positions=(0.9, 0.5, 0.1)), forced(7, alpha=0.74)],
        [forced(2, length=3.5, shape=GEOMETRIC), forced(3, positions=(0.9, 0.5))],
    ),
    "baseline_has_no_drafter_settings": (
        [of({}), of({}, drafter=Drafter(method="ngram", k=3, options={"prompt_lookup_max": 3}))],
        [
            of({}, drafter=Drafter(model="x")),
            of({}, drafter=Drafter(acceptance=Acceptance(alpha=0.5))),
            of({}, drafter=Drafter(options={"prompt_lookup_max": 3})),
            of({}, drafter=Drafter(draft_tp=1)),
        ],
    ),
    "draft_tp": (
        [of({}, layout=Layout(tp=4), drafter=replace(MODEL, draft_tp=size)) for size in (None, 1, 4)],
        [of({}, layout=Layout(tp=4), drafter=replace(MODEL, draft_tp=2))],
    ),
    "same_vocabulary": (
        [
            of({"vocab_size": 512}, draft={"vocab_size": 512}, drafter=MODEL),
            of({"vocab_size": 512}, draft={"vocab_size": 513}, drafter=MAPPED),
            of({"vocab_size": 512}, draft={"vocab_size": 513}, drafter=replace(MODEL, method="eagle3")),
        ],
        [
            of({"vocab_size": 512}, draft={"vocab_size": 513}, drafter=MODEL),
            of({"vocab_size": 512}, draft={"vocab_size": 513}, drafter=replace(MODEL, method="pard")),
        ],
    ),
    "suffix_is_stateful": ([drafting("suffix", stateful=True)], [drafting("suffix")]),
}
"""Rule -> what it accepts, and what it refuses."""


@pytest.mark.parametrize("rule", COMMON_RULES, ids=lambda rule: rule.name)
def test_a_rule_accepts_and_refuses(rule: Rule, folder: Make) -> None:
    accepted, refused = EXAMPLES[rule.name]
    assert accepted, "no example that it accepts"
    assert refused, "no example that it refuses"
    for number, (arm, target, draft) in enumerate((*accepted, *refused)):
        if target:
            arm = replace(arm, model=replace(arm.model, path=folder(f"target{number}", **target)))  # noqa: PLW2901 - the same arm, with its folders
        if draft:
            arm = replace(arm, drafter=replace(arm.drafter, model=folder(f"draft{number}", **draft)))  # noqa: PLW2901 - as above
        assert rules_against(arm) == ([] if number < len(accepted) else [rule.name])
        reason = rule.check(arm)
        assert reason is None or len(reason.split()) > 5, "a reason says what is wrong and what to do"


def test_every_example_belongs_to_a_rule_and_every_rule_says_what_it_asks_for() -> None:
    assert set(EXAMPLES) == {rule.name for rule in COMMON_RULES}
    assert [rule.name for rule in COMMON_RULES if not rule.meaning.endswith(".")] == []


def test_the_reason_names_the_key_of_a_baseline(folder: Make) -> None:
    for drafter, key in (
        (Drafter(model="x"), "model"),
        (Drafter(acceptance=Acceptance(alpha=0.5)), "acceptance"),
        (Drafter(options={"prompt_lookup_max": 3}), "options"),
    ):
        (refusal,) = refusals_by(COMMON_RULES, config(drafter=drafter))
        assert f"drafter.{key}" in refusal.reason


def test_nothing_is_held_against_an_emulated_model() -> None:
    assert rules_against(config(layout=Layout(tp=7))) == []


def test_the_text_part_of_a_multimodal_model_counts(folder: Make) -> None:
    path = folder(vision_config={}, text_config={"num_attention_heads": 5})
    assert rules_against(config(path, layout=Layout(tp=2))) == ["heads_divisible_by_tp"]


@pytest.mark.parametrize("text", ["", "[1]", "{"])
def test_an_unreadable_config_has_no_facts(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    assert model_facts(str(tmp_path)) is None


def test_a_config_that_changed_is_read_again(folder: Make) -> None:
    path = folder(num_attention_heads=4)
    assert model_facts(path) == {"num_attention_heads": 4}
    (Path(path) / "config.json").write_text('{"num_attention_heads": 16}')
    assert model_facts(path) == {"num_attention_heads": 16}


def test_refusals_come_in_the_order_of_the_table_and_names_are_unique() -> None:
    table = tuple(Rule(name=name, meaning="", check=lambda _, name=name: f"because {name}") for name in "ba")
    assert [refusal.rule for refusal in refusals_by(table, config())] == ["b", "a"]
    names = [rule.name for rule in COMMON_RULES]
    assert len(names) == len(set(names))
