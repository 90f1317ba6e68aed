"""SGLang's command line, environment and rules: each rule has an example it lets pass and one it refuses."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engines.acceptance import Acceptance
from engines.base import KVCapacity, Site
from engines.errors import EngineConfigError
from engines.sglang import SglangEngine
from engines.sglang_flags import GROUPS, OWNED, PINNED, SWITCHES, VALUES
from engines.sglang_resolved import comparable, contradictions
from engines.sglang_rules import SGLANG_RULES
from engines.sglang_speculation import METHODS
from engines.spec import Drafter, EngineConfig, Layout, Model
from engines.strategy import CacheStrategy, Connector, Decode

ENGINE = SglangEngine()
FLAGS = {"mem_fraction_static": 0.85, "max_running_requests": 64}
FORCED = Acceptance(alpha=0.74)


def config(**changes: Any) -> EngineConfig:
    plain = EngineConfig(
        engine="sglang",
        version="0.5.23",
        model=Model(name="m", path="some/model"),
        python="/env/bin/python",
        flags=FLAGS,
    )
    return replace(plain, **changes)


def drafting(method: str, k: int = 3, **changes: Any) -> EngineConfig:
    model = "a/head" if METHODS[method].needs_model else None
    return config(drafter=Drafter(method=method, k=k, **{"model": model, **changes}))


def options(arm: EngineConfig, site: Site | None = None) -> dict[str, str]:
    """Return the command line as option -> value (empty for a switch)."""
    words = ENGINE.command(arm, site or Site(port=4711, directory=Path("/site"))).argv[3:]
    found: dict[str, str] = {}
    for word in words:
        if word.startswith("--"):
            option = word
            found[option] = ""
        else:
            found[option] = word
    return found


def speculative(arm: EngineConfig) -> dict[str, str]:
    prefix = "--speculative-"
    return {
        name.removeprefix(prefix): value for name, value in options(arm).items() if name.startswith(prefix)
    }


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (
            "draft_model",
            {"algorithm": "STANDALONE", "num-steps": "5", "num-draft-tokens": "6", "eagle-topk": "1"},
        ),
        ("eagle", {"algorithm": "EAGLE", "num-steps": "5", "num-draft-tokens": "6", "eagle-topk": "1"}),
        ("eagle3", {"algorithm": "EAGLE3", "num-steps": "5", "num-draft-tokens": "6", "eagle-topk": "1"}),
        ("mtp", {"algorithm": "NEXTN", "num-steps": "5", "num-draft-tokens": "6", "eagle-topk": "1"}),
        (
            "ngram",
            {
                "algorithm": "NGRAM",
                "num-steps": "5",
                "num-draft-tokens": "6",
                "ngram-min-bfs-breadth": "1",
                "ngram-max-bfs-breadth": "1",
            },
        ),
        ("dflash", {"algorithm": "DFLASH", "dflash-block-size": "6"}),
        ("dspark", {"algorithm": "DSPARK", "dspark-block-size": "5"}),
    ],
)
def test_k_becomes_a_chain_of_k(method: str, expected: Mapping[str, str]) -> None:
    found = speculative(drafting(method, 5))
    assert found.pop("draft-model-path", None) == ("a/head" if METHODS[method].needs_model else None)
    assert found == expected


def test_a_baseline_has_no_word_of_speculation() -> None:
    assert speculative(config()) == {}


def test_the_rest_of_a_command_line() -> None:
    found = options(config(layout=Layout(tp=2, dp=2), seed=7))
    expected = {
        "--model-path": "some/model",
        "--served-model-name": "m",
        "--host": "127.0.0.1",
        "--port": "4711",
        "--context-length": "4096",
        "--random-seed": "7",
        "--tp-size": "2",
        "--dp-size": "2",
        "--enable-metrics": "",
        "--enable-cache-report": "",
        "--decode-log-interval": "1",
        "--max-running-requests": "64",
    }
    assert expected.items() <= found.items()
    assert options(config(layout=Layout(tp=4, expert_parallel=True)))["--ep-size"] == "4"


def test_groups_become_flags() -> None:
    cache = CacheStrategy(prefix_caching=False, block_size=32, kv_dtype="fp8_e4m3")
    decode = Decode(
        max_num_seqs=96,
        max_num_batched_tokens=4096,
        attention_backend="fa3",
        cuda_graphs="full_decode_only",
        async_scheduling=False,
    )
    found = options(config(cache=cache, decode=decode, flags={"mem_fraction_static": 0.8}))
    assert {
        "--disable-radix-cache": "",
        "--page-size": "32",
        "--kv-cache-dtype": "fp8_e4m3",
        "--max-running-requests": "96",
        "--chunked-prefill-size": "4096",
        "--attention-backend": "fa3",
        "--cuda-graph-backend-decode": "full",
        "--cuda-graph-backend-prefill": "disabled",
        "--disable-overlap-schedule": "",
    }.items() <= found.items()
    whole = options(config(decode=Decode(chunked_prefill=False, max_num_batched_tokens=8192)))
    assert (whole["--chunked-prefill-size"], whole["--max-prefill-tokens"]) == ("-1", "8192")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"decode": Decode(max_num_seqs=8)}, "decode.max_num_seqs and engine.flags.max_running_requests"),
        ({"decode": Decode(model_runner="v2")}, "decode.model_runner"),
        ({"decode": Decode(cuda_graphs="piecewise")}, "none, full, full_decode_only"),
        ({"cache": CacheStrategy(kv_offload_gib=4.0)}, "hicache_size"),
        ({"cache": CacheStrategy(connector=Connector(name="X"))}, "cache.connector"),
        ({"flags": {**FLAGS, "enable_metrics": True}}, "cannot be changed"),
        ({"flags": {**FLAGS, "tp_size": 2}}, "layout.tp"),
        ({"flags": {**FLAGS, "disable_radix_cache": 1}}, "true or false"),
        ({"flags": {**FLAGS, "page_size": True}}, "takes a value"),
        ({"drafter": Drafter(method="eagle3", k=3, model="a/h", draft_tp=1)}, "draft_tp"),
        ({"drafter": Drafter(method="ngram", k=3, model="a/h", stateful=True)}, "has no model"),
        ({"drafter": Drafter(method="eagle3", k=3, model="a/h", options={"depth": 2})}, "options.depth"),
        ({"drafter": Drafter(method="ngram", k=3, acceptance=FORCED, stateful=True)}, "cannot force"),
    ],
)
def test_what_it_cannot_do_is_refused_by_key(changes: dict[str, Any], words: str) -> None:
    arm = config(**changes)
    assert any(words in refusal.reason for refusal in ENGINE.refusals(arm)), ENGINE.refusals(arm)
    with pytest.raises(EngineConfigError):
        ENGINE.command(arm, Site(port=1, directory=Path("/site")))


def test_forced_acceptance_is_in_the_environment() -> None:
    command = ENGINE.command(drafting("eagle3", acceptance=FORCED), Site(port=1, directory=Path("/site")))
    assert float(command.env["SGLANG_SIMULATE_ACC_LEN"]) == pytest.approx(FORCED.mean_length(3), abs=1e-5)
    assert command.env["SGLANG_SIMULATE_ACC_TOKEN_MODE"] == "real-draft-token"
    assert not any(
        "SIMULATE" in name for name in ENGINE.command(config(), Site(port=1, directory=Path())).env
    )


def test_matched_kv_is_a_pool_of_so_many_tokens() -> None:
    site = Site(port=1, directory=Path("/site"), kv=KVCapacity(tokens=10_000, block_size=16, ranks=2))
    arm = drafting("eagle3").matched_baseline()
    assert options(arm, site)["--max-total-tokens"] == "5000"
    unknown = replace(site, kv=KVCapacity(tokens=None, block_size=16))
    with pytest.raises(EngineConfigError, match="nothing to match"):
        ENGINE.command(arm, unknown)


def folder(path: Path, **facts: Any) -> Model:
    path.mkdir()
    (path / "config.json").write_text(json.dumps(facts))
    return Model(name="m", path=str(path))


EXAMPLES: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "sglang_device": ({"device": "gpu"}, {"device": "emulated"}),
    "sglang_settings": ({"flags": FLAGS}, {"flags": {**FLAGS, "warp": 9}}),
    "sglang_environment": ({"env": {"NCCL_DEBUG": "INFO"}}, {"env": {"SGLANG_SIMULATE_ACC_LEN": "3"}}),
    "sglang_drafter_model": (
        {"drafter": Drafter(method="eagle3", k=3, model="a/h")},
        {"drafter": Drafter(method="eagle3", k=3)},
    ),
    "sglang_method_on_device": (
        {"drafter": Drafter(method="dflash", k=3, model="a/h")},
        {
            "drafter": Drafter(method="dflash", k=3, model="a/h"),
            "device": "cpu",
            "decode": Decode(async_scheduling=False),
        },
    ),
    "sglang_batch_limit": (
        {"flags": {"mem_fraction_static": 0.8}, "decode": Decode(max_num_seqs=64)},
        {"flags": {"mem_fraction_static": 0.8}},
    ),
    "sglang_memory": (
        {"flags": {"max_running_requests": 64, "max_total_tokens": 100_000}},
        {"flags": {"max_running_requests": 64}},
    ),
    "sglang_mixed_chunk": (
        {"flags": {**FLAGS, "enable_mixed_chunk": False}},
        {"flags": {**FLAGS, "enable_mixed_chunk": True}},
    ),
    "sglang_overlap_on_cpu": (
        {"device": "cpu", "decode": Decode(async_scheduling=False)},
        {"device": "cpu"},
    ),
    "sglang_ngram_remembers": (
        {"drafter": Drafter(method="ngram", k=3, stateful=True)},
        {"drafter": Drafter(method="ngram", k=3)},
    ),
    "sglang_pipeline": (
        {"drafter": Drafter(method="eagle3", k=3, model="a/h"), "layout": Layout(pp=2)},
        {"drafter": Drafter(method="dflash", k=3, model="a/h"), "layout": Layout(pp=2)},
    ),
    "sglang_attention_dp": (
        {"flags": {**FLAGS, "attn_dp_size": 2}, "layout": Layout(tp=4)},
        {"flags": {**FLAGS, "attn_dp_size": 3}, "layout": Layout(tp=4)},
    ),
    "sglang_experts": (
        {"layout": Layout(tp=2, expert_parallel=True)},
        {"layout": Layout(tp=2, dp=2, expert_parallel=True)},
    ),
    "sglang_routing": ({"layout": Layout(dp=2)}, {"layout": Layout(dp=2, routing="pinned")}),
    "sglang_forced_acceptance": (
        {"drafter": Drafter(method="eagle3", k=3, model="a/h", acceptance=FORCED)},
        {
            "drafter": Drafter(
                method="eagle3",
                k=3,
                model="a/h",
                acceptance=FORCED,
                options={"use_rejection_sampling": True},
            )
        },
    ),
}
"""Rule -> what it lets pass, and what it refuses."""


@pytest.mark.parametrize("rule", [rule.name for rule in SGLANG_RULES if rule.name != "sglang_mtp_layers"])
def test_each_rule_lets_pass_and_refuses(rule: str) -> None:
    accepted, refused = EXAMPLES[rule]
    assert list(ENGINE.refusals(config(**accepted))) == []
    assert [refusal.rule for refusal in ENGINE.refusals(config(**refused))] == [rule]


def test_mtp_needs_layers_for_it(tmp_path: Path) -> None:
    arm = drafting("mtp")
    with_layers = folder(tmp_path / "with", num_nextn_predict_layers=1)
    assert list(ENGINE.refusals(replace(arm, model=with_layers))) == []
    without = folder(tmp_path / "without", num_hidden_layers=4)
    assert [refusal.rule for refusal in ENGINE.refusals(replace(arm, model=without))] == ["sglang_mtp_layers"]


def test_attention_dp_and_drafters() -> None:
    flags = {**FLAGS, "attn_dp_size": 2}
    layout = Layout(tp=2)
    for method in ("draft_model", "dflash"):
        arm = replace(drafting(method), flags=flags, layout=layout)
        assert [refusal.rule for refusal in ENGINE.refusals(arm)] == ["sglang_attention_dp"]
    head = replace(drafting("dflash"), flags={**flags, "enable_dp_lm_head": True}, layout=layout)
    assert list(ENGINE.refusals(head)) == []


def test_no_flag_is_in_two_tables() -> None:
    tables = (SWITCHES, VALUES, frozenset(OWNED), frozenset(PINNED))
    assert sum(map(len, tables)) == len(frozenset().union(*tables))
    assert {flag for flags in GROUPS.values() for flag in flags} <= SWITCHES | VALUES


INFO = {
    "model_path": "some/model",
    "served_model_name": "m",
    "context_length": 4096,
    "random_seed": 0,
    "tp_size": 1,
    "dp_size": 1,
    "pp_size": 1,
    "port": 31_000,
    "nccl_port": 31_007,
    "dist_init_addr": "127.0.0.1:5",
    "launch_command": "python -m sglang.launch_server --port 31000",
    "startup_time": {"load_weight": 3.1},
    "speculative_algorithm": None,
    "speculative_num_draft_tokens": None,
    "max_total_num_tokens": 70_000,
    "cuda_graph_config": {"decode": {"backend": "full", "bs": [1, 2, 4]}},
    "internal_states": [
        {"effective_max_running_requests_per_dp": 64, "last_gen_throughput": 9.0},
        {"effective_max_running_requests_per_dp": 60},
    ],
    "version": "0.5.23",
}


def test_what_names_a_start_is_left_out() -> None:
    other = {
        **INFO,
        "port": 32_000,
        "nccl_port": 1,
        "launch_command": "x",
        "startup_time": {"load_weight": 9.0},
    }
    assert comparable(INFO) == comparable(other)
    assert comparable(INFO)["effective_max_running_requests_per_dp"] == 60
    assert comparable(INFO)["cuda_graph_config.decode.bs"] == [1, 2, 4]


def test_a_pair_differs_in_the_drafter_only() -> None:
    drafts = {
        **INFO,
        "speculative_algorithm": "EAGLE3",
        "speculative_num_draft_tokens": 4,
        "max_total_num_tokens": 60_000,
        "cuda_graph_config": {"decode": {"backend": "full", "bs": [1, 2, 3]}},
    }
    first, second = comparable(INFO), comparable(drafts)
    changed = {key for key in {**first, **second} if first.get(key) != second.get(key)}
    assert len(changed) == 4
    assert {key for key in changed if not key.startswith(tuple(ENGINE.drafter_keys(config())))} == set()
    assert contradictions(config(), first) == []
    assert contradictions(drafting("eagle3"), second) == []
    assert contradictions(config(), second) == ["its speculative_algorithm is 'EAGLE3', not None"]
    assert contradictions(drafting("eagle3", 5), second) == ["its speculative_num_draft_tokens is 4, not 6"]
    assert len(contradictions(drafting("eagle3"), first)) == 2
    assert contradictions(config(seed=1), first) == ["its random_seed is 0, not 1"]
