"""vLLM's own rules: examples each lets pass, and refuses; a rule that lacks either fails here."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engines import vllm_rules_drafter, vllm_rules_engine
from engines.acceptance import Acceptance
from engines.base import Rule
from engines.rules import refusals_by
from engines.spec import Drafter, EngineConfig, Layout, Model
from engines.strategy import CacheStrategy, Connector, Decode
from engines.vllm import VllmEngine
from engines.vllm_rules import VLLM_RULES
from engines.vllm_rules_drafter import DRAFTER_RULES
from engines.vllm_rules_engine import ENGINE_RULES
from engines.vllm_rules_options import DYNAMIC, OPTION_RULES

RULES = (*ENGINE_RULES, *DRAFTER_RULES, *OPTION_RULES)
"""The rules on counterfactual engines have their examples in `test_vllm_counterfactual.py`."""
V1, V2 = Decode(model_runner="v1"), Decode(model_runner="v2")
ASYNC = Decode(async_scheduling=True)
HALF = Acceptance(alpha=0.5)
LENGTHS = [[1, 4, 3], [5, 64, 0]]

Facts = dict[str, Any]
Packages = dict[str, str]
Make = Callable[..., str]


def config(**changes: Any) -> EngineConfig:
    plain = EngineConfig(
        engine="vllm",
        version="0.32.0",
        model=Model(name="m", path="some/model"),
        python="/env/bin/python",
    )
    return replace(plain, **changes)


def draft(method: str, k: int = 3, **changes: Any) -> Drafter:
    return Drafter(method=method, k=k, **changes)


def head(method: str, k: int = 3, **changes: Any) -> Drafter:
    """A drafter with a checkpoint that is not on this machine."""
    return Drafter(method=method, k=k, model="a/head", **changes)


def with_options(method: str, model: str | None = "a/head", **options: Any) -> EngineConfig:
    return config(drafter=Drafter(method=method, k=3, model=model, options=options))


def lengths(method: str, ranges: Any, **changes: Any) -> EngineConfig:
    model = None if method == "ngram" else "a/head"
    return config(drafter=Drafter(method=method, k=3, model=model, options={DYNAMIC: ranges}), **changes)


def cached(**changes: Any) -> EngineConfig:
    return config(cache=CacheStrategy(**changes))


def on_cpu(**changes: Any) -> EngineConfig:
    return config(device="cpu", **changes)


LMCACHE = Connector(name="LMCacheConnectorV1", chunk_tokens=256)
OFFLOAD = Connector(name="OffloadingConnector", chunk_tokens=64)

EXAMPLES: dict[str, tuple[list[EngineConfig], list[EngineConfig]]] = {
    "vllm_device": ([config(), on_cpu()], [config(device="emulated")]),
    "vllm_settings": (
        [config(flags={"block_size": 16}), cached(block_size=16), config(decode=V2)],
        [
            config(flags={"blocksize": 16}),
            config(drafter=draft("telepathy")),
            with_options("eagle3", prompt_lookup_max=3),
            config(drafter=head("eagle3", draft_tp=2), layout=Layout(tp=2)),
            config(flags={"block_size": 16}, cache=CacheStrategy(block_size=16)),
            config(env={"VLLM_USE_V2_MODEL_RUNNER": "1"}, decode=V2),
            config(flags={"enforce_eager": True}, decode=Decode(cuda_graphs="full")),
            cached(connector=Connector(name="NixlConnector")),
            config(drafter=head("eagle3", acceptance=HALF, options={"rejection_sample_method": "block"})),
        ],
    ),
    "vllm_runner_on_device": ([config(decode=V2), on_cpu(decode=V1)], [on_cpu(decode=V2)]),
    "vllm_scheduling": (
        [
            config(drafter=head("eagle3"), decode=ASYNC),
            config(drafter=draft("ngram")),
            config(layout=Layout(pp=2), decode=replace(ASYNC, model_runner="v2")),
        ],
        [
            config(drafter=draft("ngram"), decode=ASYNC),
            config(drafter=draft("ngram"), flags={"async_scheduling": True}),
            config(layout=Layout(pp=2), decode=ASYNC),
            on_cpu(decode=ASYNC),
        ],
    ),
    "vllm_pipeline_states": (
        [
            config(layout=Layout(pp=2), drafter=head("eagle")),
            config(layout=Layout(pp=2), drafter=head("eagle3"), decode=V2),
            config(layout=Layout(tp=2), drafter=head("eagle3")),
        ],
        [config(layout=Layout(pp=2), drafter=head("eagle3"))],
    ),
    "vllm_expert_parallel": (
        [config(layout=Layout(tp=2, expert_parallel=True)), config()],
        [config(layout=Layout(expert_parallel=True))],
    ),
    "vllm_batch_limits": (
        [config(decode=Decode(max_num_seqs=8, max_num_batched_tokens=8)), config()],
        [
            config(decode=Decode(max_num_seqs=9, max_num_batched_tokens=8)),
            config(decode=Decode(max_num_batched_tokens=3), drafter=draft("ngram")),
        ],
    ),
    "vllm_whole_prompts": (
        [config(decode=Decode(chunked_prefill=False, max_num_batched_tokens=4096))],
        [config(decode=Decode(chunked_prefill=False, max_num_batched_tokens=4095))],
    ),
    "vllm_graphs_on_device": (
        [on_cpu(decode=Decode(cuda_graphs="none")), config(decode=Decode(cuda_graphs="full"))],
        [on_cpu(decode=Decode(cuda_graphs="full"))],
    ),
    "vllm_attention_on_device": (
        [on_cpu(decode=Decode(attention_backend="CPU_ATTN")), config(flags={"attention_backend": "X"})],
        [
            on_cpu(decode=Decode(attention_backend="FLASH_ATTN")),
            config(decode=Decode(attention_backend="CPU_ATTN")),
        ],
    ),
    "vllm_kv_type_on_device": (
        [on_cpu(cache=CacheStrategy(kv_dtype="fp8")), cached(kv_dtype="nvfp4")],
        [on_cpu(cache=CacheStrategy(kv_dtype="nvfp4"))],
    ),
    "vllm_block_size": (
        [cached(block_size=16), on_cpu(), on_cpu(cache=CacheStrategy(block_size=64))],
        [cached(block_size=24), on_cpu(cache=CacheStrategy(block_size=16))],
    ),
    "vllm_external_cache": (
        [cached(kv_offload_gib=4.0), cached(connector=OFFLOAD), on_cpu()],
        [
            cached(kv_offload_gib=4.0, connector=OFFLOAD),
            cached(kv_offload_gib=4.0, prefix_caching=False),
            on_cpu(cache=CacheStrategy(connector=OFFLOAD)),
            on_cpu(cache=CacheStrategy(kv_offload_gib=4.0)),
        ],
    ),
    "vllm_chunk_alignment": (
        [cached(connector=LMCACHE), cached(connector=LMCACHE, block_size=64)],
        [cached(connector=LMCACHE, block_size=96), on_cpu(cache=CacheStrategy(connector=OFFLOAD))],
    ),
    "vllm_connector_package": ([cached(connector=OFFLOAD)], [cached(connector=LMCACHE)]),
    "vllm_method_on_device": (
        [config(drafter=draft("ngram_gpu"))],
        [on_cpu(drafter=draft("ngram_gpu")), on_cpu(drafter=draft("dspark"))],
    ),
    "vllm_method_on_runner": (
        [
            config(drafter=draft("dspark"), decode=V2),
            config(drafter=head("eagle3"), decode=V2),
            config(drafter=head("pard")),
        ],
        [
            config(drafter=draft("dspark")),
            config(drafter=head("medusa"), env={"VLLM_USE_V2_MODEL_RUNNER": "1"}),
            config(drafter=head("peagle"), decode=V2),
        ],
    ),
    "vllm_lookup_on_v2": ([config(drafter=draft("ngram"))], [config(drafter=draft("ngram"), decode=V2)]),
    "vllm_no_proposer": (
        [config(drafter=head("medusa"))],
        [config(drafter=head("mlp_speculator"))],
    ),
    "vllm_drafter_model": (
        [config(drafter=head("eagle3")), config(drafter=draft("mtp"))],
        [config(drafter=draft(method)) for method in ("draft_model", "pard", "eagle3", "dflash", "medusa")],
    ),
    "vllm_custom_class": (
        [config(drafter=draft("custom_class", model="package.module.Class"))],
        [config(drafter=draft("custom_class", model="package/module.py"))],
    ),
    "vllm_drafter_folder": (
        [config(drafter=head("eagle3"))],
        [config(drafter=draft("eagle3", model="./no"))],
    ),
    "vllm_method_by_name": (
        [config(drafter=draft("eagle3", model="a/eagle3-head")), config(drafter=head("draft_model"))],
        [
            config(drafter=draft("draft_model", model="a/dflash-like")),
            config(drafter=draft("mtp"), model=Model(name="m", path="x/EAGLE-7b")),
        ],
    ),
    "vllm_draft_tp_v1": (
        [
            config(layout=Layout(tp=2), drafter=head("draft_model", draft_tp=2)),
            config(layout=Layout(tp=2), drafter=head("draft_model", draft_tp=1), decode=V2),
        ],
        [config(layout=Layout(tp=2), drafter=head("draft_model", draft_tp=1))],
    ),
    "vllm_draft_heads": ([config(drafter=head("draft_model"))], []),
    "vllm_draft_context": ([config(drafter=head("draft_model"))], []),
    "vllm_mtp_depth": ([config(drafter=draft("mtp"))], []),
    "vllm_medusa_heads": ([config(drafter=head("medusa"))], []),
    "vllm_mask_token": ([config(drafter=head("pard"))], []),
    "vllm_block_length": ([config(drafter=head("dflash"))], []),
    "vllm_block_runner": ([config(drafter=head("dflash"))], []),
    "vllm_needs_our_wheel": (
        [on_cpu(drafter=draft("ngram")), config(drafter=head("eagle3", acceptance=HALF))],
        [on_cpu(drafter=head("eagle3", acceptance=HALF)), config(drafter=draft("free"))],
    ),
    "vllm_needs_suffix_trees": ([config(drafter=draft("ngram"))], [config(drafter=draft("suffix"))]),
    "vllm_lookup_window": (
        [with_options("ngram", None, prompt_lookup_min=2, prompt_lookup_max=4)],
        [with_options("ngram", None, prompt_lookup_min=5, prompt_lookup_max=4)],
    ),
    "vllm_heterogeneous_vocab": (
        [with_options("draft_model", use_heterogeneous_vocab=True)],
        [
            replace(with_options("draft_model", use_heterogeneous_vocab=True), decode=V2),
            with_options("draft_model", use_heterogeneous_vocab=True, draft_sample_method="probabilistic"),
        ],
    ),
    "vllm_block_verification": (
        [replace(with_options("eagle3", rejection_sample_method="block"), decode=V2)],
        [with_options("eagle3", rejection_sample_method="block")],
    ),
    "vllm_forced_by_option": (
        [with_options("eagle3", rejection_sample_method="standard")],
        [with_options("eagle3", rejection_sample_method="synthetic")],
    ),
    "vllm_local_argmax": (
        [with_options("eagle3", use_local_argmax_reduction=True)],
        [with_options("eagle3", use_local_argmax_reduction=True, draft_sample_method="probabilistic")],
    ),
    "vllm_padded_drafts": (
        [with_options("eagle3", disable_padded_drafter_batch=True)],
        [replace(with_options("eagle3", disable_padded_drafter_batch=True), decode=ASYNC)],
    ),
    "vllm_block_drop": (
        [with_options("eagle3", disable_eagle_block_drop=True)],
        [
            replace(
                with_options("eagle3", disable_eagle_block_drop=True),
                cache=CacheStrategy(prefix_caching=False),
            )
        ],
    ),
    "vllm_adaptive_verification": (
        [with_options("dspark", enable_adaptive_verification=True)],
        [
            replace(with_options("dspark", enable_adaptive_verification=True), flags={"enforce_eager": True}),
            replace(with_options("dspark", enable_adaptive_verification=True), layout=Layout(pp=2)),
        ],
    ),
    "vllm_draft_top_k": (
        [with_options("dspark", dspark_draft_topk=8)],
        [replace(with_options("dspark", dspark_draft_topk=8), layout=Layout(tp=2))],
    ),
    "vllm_forced_lookup": (
        [config(drafter=draft("free", acceptance=HALF))],
        [config(drafter=draft(method, acceptance=HALF)) for method in ("ngram", "ngram_gpu", "suffix")],
    ),
    "vllm_dynamic_length": (
        [lengths("eagle3", LENGTHS), lengths("ngram", LENGTHS, layout=Layout(tp=2))],
        [
            lengths("ngram", LENGTHS, layout=Layout(dp=2)),
            lengths("custom_class", LENGTHS),
            config(drafter=head("eagle3", acceptance=HALF, options={DYNAMIC: LENGTHS})),
        ],
    ),
    "vllm_dynamic_ranges": (
        [lengths("eagle3", LENGTHS)],
        [
            lengths("eagle3", ranges)
            for ranges in ([], "3", [[1, 4]], [[2, 4, 3]], [[1, 4, 3], [4, 8, 1]], [[1, 4, 5]], [[1, 4.5, 2]])
        ],
    ),
    "vllm_dynamic_graphs": (
        [
            lengths("eagle3", LENGTHS, decode=Decode(cuda_graphs="piecewise")),
            lengths("eagle3", LENGTHS, decode=V2),
            lengths("eagle3", LENGTHS, device="cpu"),
            lengths("eagle3", LENGTHS, flags={"compilation_config": {"cudagraph_mode": "PIECEWISE"}}),
        ],
        [lengths("eagle3", LENGTHS), config(drafter=head("eagle3", loaded_only=True))],
    ),
}
"""Rule -> configurations that it accepts, and configurations that it refuses."""

FOLDERS: dict[str, list[tuple[EngineConfig, Facts, Facts]]] = {
    "vllm_draft_heads": [
        (
            config(drafter=draft("draft_model"), layout=Layout(tp=2)),
            {"num_attention_heads": 4},
            {"num_attention_heads": 9},
        )
    ],
    "vllm_draft_context": [
        (
            config(drafter=draft("draft_model")),
            {"max_position_embeddings": 4096},
            {"max_position_embeddings": 4095},
        )
    ],
    "vllm_mtp_depth": [
        (config(drafter=draft("mtp")), {"num_nextn_predict_layers": 1}, {"num_nextn_predict_layers": 2}),
        (config(drafter=draft("mtp", k=4)), {"num_nextn_predict_layers": 2}, {"hidden_size": 8}),
        (config(drafter=draft("mtp")), {"model_type": "gemma4_assistant"}, {"model_type": "llama"}),
    ],
    "vllm_medusa_heads": [
        (config(drafter=draft("medusa", k=4)), {"medusa_num_heads": 4}, {"num_heads": 3}),
    ],
    "vllm_mask_token": [
        (config(drafter=draft("pard")), {"pard_token": 7}, {"hidden_size": 8}),
        (config(drafter=draft("dflash")), {"dflash_config": {"mask_token_id": 7}}, {"dflash_config": {}}),
    ],
    "vllm_block_length": [(config(drafter=draft("dflash", k=7)), {"block_size": 8}, {"block_size": 7})],
    "vllm_block_runner": [
        (
            config(drafter=draft("dflash")),
            {"layer_types": ["full_attention"]},
            {"layer_types": ["full_attention", "sliding_attention"]},
        ),
        (
            config(drafter=draft("dflash")),
            {"architectures": ["DFlashDraftModel"]},
            {"architectures": ["DFlash2DraftModel"]},
        ),
    ],
}
"""Rule -> a configuration, with the drafter's config.json where it is accepted and where it is refused."""


@pytest.fixture(autouse=True)
def packages(monkeypatch: pytest.MonkeyPatch) -> Packages:
    """Packages of the engine's environment, as the probe would find them."""
    found = {"vllm": "0.32.0"}
    for module in (vllm_rules_drafter, vllm_rules_engine):
        monkeypatch.setattr(module, "installed", lambda python: found)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Make:
    def make(name: str, facts: Facts) -> str:
        path = tmp_path / name
        path.mkdir()
        (path / "config.json").write_text(json.dumps(facts))
        return str(path)

    return make


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_accepts_and_refuses(rule: Rule, folder: Make) -> None:
    accepted, refused = (list(examples) for examples in EXAMPLES[rule.name])
    for number, (arm, good, bad) in enumerate(FOLDERS.get(rule.name, ())):
        for facts, examples in ((good, accepted), (bad, refused)):
            path = folder(f"{number}-{len(examples)}", facts)
            examples.append(replace(arm, drafter=replace(arm.drafter, model=path)))
    assert accepted, "no example that it accepts"
    assert refused, "no example that it refuses"
    assert [rule.check(arm) for arm in accepted] == [None] * len(accepted)
    for arm in refused:
        reason = rule.check(arm)
        assert reason, arm
        assert len(reason.split()) > 5, "a reason says what is wrong and what to do"
        assert rule.name in [refusal.rule for refusal in VllmEngine().refusals(arm)]


@pytest.mark.parametrize("rule", VLLM_RULES, ids=lambda rule: rule.name)
def test_a_baseline_on_either_device_is_let_pass(rule: Rule) -> None:
    assert rule.check(config()) is None
    assert rule.check(on_cpu()) is None


def test_every_example_belongs_to_a_rule() -> None:
    assert set(EXAMPLES) == {rule.name for rule in RULES}
    assert set(FOLDERS) <= set(EXAMPLES)


def test_names_are_unique_and_meanings_are_sentences() -> None:
    names = [rule.name for rule in VllmEngine.rules]
    assert len(names) == len(set(names))
    assert [rule.name for rule in RULES if not rule.meaning.endswith(".")] == []


def test_a_package_that_is_there_is_enough(packages: Packages) -> None:
    arms = {
        "specload-vllm": config(drafter=draft("free")),
        "arctic-inference": config(drafter=draft("suffix", stateful=True)),
        "lmcache": cached(connector=LMCACHE),
    }
    for package, arm in arms.items():
        assert len(VllmEngine().refusals(arm)) == 1
        packages[package] = "1"
        assert VllmEngine().refusals(arm) == ()


def test_experts_are_looked_for_in_the_model(folder: Make) -> None:
    layout = Layout(tp=2, expert_parallel=True)
    for facts, rules in (({"num_experts": 8}, []), ({"x": 1}, ["vllm_expert_parallel"])):
        arm = config(model=Model(name="m", path=folder(str(len(rules)), facts)), layout=layout)
        assert [refusal.rule for refusal in VllmEngine().refusals(arm)] == rules


def test_a_rule_holds_for_its_versions_only() -> None:
    arm = config(drafter=head("mlp_speculator"))
    assert "vllm_no_proposer" in [refusal.rule for refusal in refusals_by(VLLM_RULES, arm)]
    later = replace(arm, version="0.33.0")
    assert "vllm_no_proposer" not in [refusal.rule for refusal in refusals_by(VLLM_RULES, later)]
    unknown = replace(arm, version="a commit")
    assert "vllm_no_proposer" in [refusal.rule for refusal in refusals_by(VLLM_RULES, unknown)]


def test_common_rules_are_asked_too(folder: Make) -> None:
    target = folder("target", {"num_attention_heads": 9})
    arm = config(model=Model(name="m", path=target), layout=Layout(tp=2))
    assert [refusal.rule for refusal in VllmEngine().refusals(arm)] == ["heads_divisible_by_tp"]
