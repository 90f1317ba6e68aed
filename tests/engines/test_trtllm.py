"""TensorRT-LLM's files, page and rules: each rule has an example it lets pass and one it refuses."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engines.acceptance import Acceptance
from engines.base import KVCapacity, Site
from engines.errors import EngineConfigError, EngineError
from engines.spec import Drafter, EngineConfig, Layout, Model
from engines.strategy import CacheStrategy, Connector, Decode
from engines.trtllm import TrtllmEngine
from engines.trtllm_command import CONFIG_NAME
from engines.trtllm_http import parse_capacity, parse_counters
from engines.trtllm_rules import TRTLLM_RULES
from engines.trtllm_speculation import METHODS

ENGINE = TrtllmEngine()
PAGE = (Path(__file__).parent / "pages" / "trtllm.txt").read_text()
SITE = Site(port=4711, directory=Path("/site"))
FORCED = Acceptance(alpha=0.74)


def config(**changes: Any) -> EngineConfig:
    plain = EngineConfig(
        engine="trtllm",
        version="1.2.0",
        model=Model(name="m", path="some/model"),
        python="/env/bin/python",
    )
    return replace(plain, **changes)


def content(arm: EngineConfig, site: Site = SITE) -> dict[str, Any]:
    """Return the configuration file."""
    found: dict[str, Any] = json.loads(ENGINE.command(arm, site).files[CONFIG_NAME])
    return found


@pytest.mark.parametrize(
    ("method", "decoding"),
    [
        ("ngram", "NGram"),
        ("suffix", "SA"),
        ("draft_model", "DraftTarget"),
        ("pard", "PARD"),
        ("eagle3", "Eagle3"),
        ("mtp", "MTP"),
        ("dflash", "DFlash"),
        ("dspark", "DSpark"),
    ],
)
def test_k_is_the_longest_draft(method: str, decoding: str) -> None:
    model = "a/head" if METHODS[method].needs_model else None
    found = content(config(drafter=Drafter(method=method, k=5, model=model)))["speculative_config"]
    assert (found["decoding_type"], found["max_draft_len"]) == (decoding, 5)
    assert found.get("speculative_model") == model
    assert found.get("is_public_pool") is (False if method == "ngram" else None)


def test_the_command_line_and_what_every_engine_gets() -> None:
    command = ENGINE.command(config(layout=Layout(tp=2, expert_parallel=True)), SITE)
    words = " ".join(command.argv)
    assert words.endswith(f"--tp_size 2 --pp_size 1 --ep_size 2 --extra_llm_api_options /site/{CONFIG_NAME}")
    assert "serve some/model --backend pytorch --host 127.0.0.1 --port 4711 --max_seq_len 4096" in words
    found = content(config())
    assert found == {"return_perf_metrics": True, "enable_iter_perf_stats": True, "stream_interval": 1}


def test_groups_become_keys_beside_those_of_the_flags() -> None:
    arm = config(
        cache=CacheStrategy(prefix_caching=False, block_size=32, kv_dtype="fp8"),
        decode=Decode(
            max_num_seqs=96,
            max_num_batched_tokens=4096,
            chunked_prefill=True,
            attention_backend="TRTLLM",
            cuda_graphs="none",
            async_scheduling=False,
        ),
        flags={"kv_cache_config": {"free_gpu_memory_fraction": 0.8}, "trust_remote_code": True},
    )
    found = content(arm)
    assert found["kv_cache_config"] == {
        "free_gpu_memory_fraction": 0.8,
        "enable_block_reuse": False,
        "tokens_per_block": 32,
        "dtype": "fp8",
    }
    assert (found["max_batch_size"], found["max_num_tokens"]) == (96, 4096)
    assert (found["enable_chunked_prefill"], found["attn_backend"]) == (True, "TRTLLM")
    assert (found["disable_overlap_scheduler"], found["cuda_graph_config"]) == (True, None)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"flags": {"kv_cache_config": {"tokens_per_block": 64}}, "cache": CacheStrategy(block_size=32)},
            "cache.block_size and engine.flags.kv_cache_config.tokens_per_block",
        ),
        ({"flags": {"max_batch_size": 8}, "decode": Decode(max_num_seqs=8)}, "engine.flags.max_batch_size"),
        ({"flags": {"kv_cache_config": 3}, "cache": CacheStrategy(block_size=32)}, "is a map of settings"),
        ({"flags": {"stream_interval": 5}}, "cannot be changed"),
        ({"flags": {"tensor_parallel_size": 2}}, "layout.tp"),
        ({"decode": Decode(model_runner="v1")}, "decode.model_runner"),
        ({"decode": Decode(cuda_graphs="full")}, "none, full_decode_only"),
        ({"cache": CacheStrategy(kv_offload_gib=1.0)}, "host_cache_size"),
        ({"cache": CacheStrategy(connector=Connector(name="X"))}, "cache.connector"),
        ({"drafter": Drafter(method="medusa", k=3)}, "TensorRT-LLM runs"),
        ({"drafter": Drafter(method="mtp", k=3, options={"depth": 1})}, "options.depth"),
        ({"drafter": Drafter(method="mtp", k=3, model="a/b")}, "has no model"),
        ({"drafter": Drafter(method="mtp", k=3, draft_tp=1)}, "draft_tp"),
        ({"drafter": Drafter(method="mtp", k=3, acceptance=Acceptance(alpha=0.0))}, "cannot force"),
    ],
)
def test_what_it_cannot_do_is_refused_by_key(changes: dict[str, Any], words: str) -> None:
    arm = config(**changes)
    assert any(words in refusal.reason for refusal in ENGINE.refusals(arm)), ENGINE.refusals(arm)
    with pytest.raises(EngineConfigError):
        ENGINE.command(arm, SITE)


def test_forced_acceptance_leaves_the_verifiers_token_out() -> None:
    command = ENGINE.command(config(drafter=Drafter(method="mtp", k=3, acceptance=FORCED)), SITE)
    forced = float(command.env["TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS"])
    assert forced == pytest.approx(FORCED.mean_length(3) - 1, abs=1e-5)


def test_matched_kv_is_a_cache_of_so_many_tokens() -> None:
    arm = config(drafter=Drafter(method="mtp", k=3)).matched_baseline()
    site = replace(SITE, kv=KVCapacity(tokens=9_600, block_size=32))
    assert content(arm, site)["kv_cache_config"] == {"max_tokens": 9_600}
    with pytest.raises(EngineConfigError, match="nothing to match"):
        ENGINE.command(arm, replace(SITE, kv=KVCapacity(tokens=None, block_size=32)))


EXAMPLES: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "trtllm_device": ({}, {"device": "cpu"}),
    "trtllm_settings": ({"flags": {"max_batch_size": 8}}, {"flags": {"warp": 9}}),
    "trtllm_environment": ({"env": {"NCCL_DEBUG": "INFO"}}, {"env": {"RAY_ADDRESS": "x"}}),
    "trtllm_data_parallel": ({"layout": Layout(tp=2)}, {"layout": Layout(dp=2)}),
    "trtllm_routing": ({}, {"layout": Layout(routing="pinned")}),
    "trtllm_drafter_model": (
        {"drafter": Drafter(method="eagle3", k=3, model="a/h")},
        {"drafter": Drafter(method="eagle3", k=3)},
    ),
    "trtllm_scheduling": (
        {"drafter": Drafter(method="ngram", k=3), "decode": Decode(async_scheduling=False)},
        {"drafter": Drafter(method="ngram", k=3)},
    ),
    "trtllm_shared_pool": (
        {
            "drafter": Drafter(method="ngram", k=3, options={"is_public_pool": True}, stateful=True),
            "decode": Decode(async_scheduling=False),
        },
        {
            "drafter": Drafter(method="ngram", k=3, options={"is_public_pool": True}),
            "decode": Decode(async_scheduling=False),
        },
    ),
    "trtllm_relaxed_acceptance": (
        {"drafter": Drafter(method="mtp", k=3, options={"max_concurrency": 8})},
        {"drafter": Drafter(method="mtp", k=3, options={"use_relaxed_acceptance_for_thinking": True})},
    ),
}
"""Rule -> what it lets pass, and what it refuses. The two of model folders have tests of their own."""


@pytest.mark.parametrize(
    "rule", [rule.name for rule in TRTLLM_RULES if rule.name not in ("trtllm_model_name", "trtllm_experts")]
)
def test_each_rule_lets_pass_and_refuses(rule: str) -> None:
    accepted, refused = EXAMPLES[rule]
    assert list(ENGINE.refusals(config(**accepted))) == []
    assert [refusal.rule for refusal in ENGINE.refusals(config(**refused))] == [rule]


def test_a_folder_has_the_name_it_is_served_under(tmp_path: Path) -> None:
    folder = tmp_path / "llama"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    named = config(model=Model(name="llama", path=str(folder)))
    assert list(ENGINE.refusals(named)) == []
    other = replace(named, model=Model(name="m", path=str(folder)))
    assert [refusal.rule for refusal in ENGINE.refusals(other)] == ["trtllm_model_name"]
    experts = replace(named, layout=Layout(tp=2, expert_parallel=True))
    assert [refusal.rule for refusal in ENGINE.refusals(experts)] == ["trtllm_experts"]
    (folder / "config.json").write_text('{"num_experts": 8}')
    assert list(ENGINE.refusals(experts)) == []


def test_counters_of_an_arm_with_a_drafter() -> None:
    counters = parse_counters(PAGE, time=1.0, k=3)
    assert (counters.prompt_tokens, counters.cached_prompt_tokens) == (10_000, 2_500)
    assert (counters.generation_tokens, counters.first_tokens) == (2_100, 100)
    assert (counters.drafts, counters.draft_tokens, counters.accepted_tokens) == (800, 2_400, 1_200)
    assert counters.accepted_per_position == (550, 400, 250)
    # 2000 tokens after the first ones, 1200 of them drafts: 800 steps.
    assert (counters.step_intervals, counters.step_seconds) == (800, 24.0)
    assert (counters.running, counters.waiting, counters.kv_usage) == (4, 1, 0.25)
    assert counters.absent == {"preemptions"}
    capacity = parse_capacity(PAGE)
    assert (capacity.tokens, capacity.block_size, capacity.blocks) == (65_536, 32, 2_048)


def without(*names: str) -> str:
    return "\n".join(line for line in PAGE.split("\n") if not line.startswith(names))


def test_what_a_release_does_not_count_is_not_known() -> None:
    old = without("trtllm_spec_decode", "trtllm_request_decode", "trtllm_prompt_cached")
    counters = parse_counters(old, time=1.0, k=3)
    assert counters.absent == {
        "accepted_per_position",
        "accepted_tokens",
        "cached_prompt_tokens",
        "computed_prompt_tokens",
        "draft_tokens",
        "drafts",
        "preemptions",
        "prefix_hits",
        "prefix_queries",
        "step_intervals",
        "step_seconds",
    }
    baseline = parse_counters(old, time=1.0, k=0)
    assert baseline.knows("drafts", "step_intervals")
    assert baseline.step_intervals == 2_000
    with pytest.raises(EngineError, match="trtllm_generation_tokens_total"):
        parse_counters(without("trtllm_generation"), time=1.0, k=0)
    assert parse_capacity(without("trtllm_kv_cache_max")).tokens is None


def test_a_counter_that_was_reset_is_an_error_and_no_number() -> None:
    fresh = PAGE.replace('model_name="m"} 1200.0', 'model_name="m"} 12.0')
    with pytest.raises(EngineError, match="accepted_tokens fell from 1200 to 12"):
        parse_counters(fresh, time=2.0, k=3).since(parse_counters(PAGE, time=1.0, k=3))
