"""vLLM's flags out of the cache strategy and the decode settings; two keys for one flag are an error."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from engines.base import Site
from engines.errors import EngineConfigError
from engines.spec import EngineConfig, Layout, Model
from engines.strategy import CacheStrategy, Connector, Decode
from engines.vllm_command import vllm_command
from engines.vllm_flags import SWITCHES, VALUES
from engines.vllm_strategy import FLAG_OF, engine_flags, graphs, runs_v2

SITE = Site(port=1, directory=Path("/site"))


def config(**changes: Any) -> EngineConfig:
    fields = {"model": Model(name="m", path="a/model"), "python": "/env/bin/python", **changes}
    return EngineConfig(engine="vllm", version="0.32.0", **fields)


EVERYTHING = config(
    cache=CacheStrategy(
        prefix_caching=False,
        block_size=64,
        kv_dtype="fp8",
        kv_offload_gib=2.5,
        connector=Connector(name="LMCacheConnectorV1", chunk_tokens=256, options={"lmcache.local_cpu": True}),
    ),
    decode=Decode(
        max_num_seqs=8,
        max_num_batched_tokens=512,
        chunked_prefill=True,
        attention_backend="FLASH_ATTN",
        cuda_graphs="full_and_piecewise",
        async_scheduling=True,
        model_runner="v2",
    ),
    layout=Layout(tp=2, dp=2, expert_parallel=True),
)


def test_every_setting_reaches_the_command_line() -> None:
    command = vllm_command(EVERYTHING, SITE)
    words = command.argv
    assert {
        "--no-enable-prefix-caching",
        "--enable-chunked-prefill",
        "--async-scheduling",
        "--enable-expert-parallel",
    } <= set(words)
    values = {
        "--block-size": "64",
        "--kv-cache-dtype": "fp8",
        "--kv-offloading-size": "2.5",
        "--max-num-seqs": "8",
        "--max-num-batched-tokens": "512",
        "--attention-backend": "FLASH_ATTN",
    }
    assert {flag: words[words.index(flag) + 1] for flag in values} == values
    assert json.loads(words[words.index("--compilation-config") + 1]) == {
        "cudagraph_mode": "FULL_AND_PIECEWISE"
    }
    assert json.loads(words[words.index("--kv-transfer-config") + 1]) == {
        "kv_connector": "LMCacheConnectorV1",
        "kv_role": "kv_both",
        "kv_connector_extra_config": {"lmcache.local_cpu": True, "lmcache.chunk_size": 256},
    }
    assert command.env["VLLM_USE_V2_MODEL_RUNNER"] == "1"
    assert runs_v2(EVERYTHING)


def test_what_is_left_open_is_left_out() -> None:
    assert engine_flags(config()) == {}
    assert vllm_command(config(), SITE).env["VLLM_USE_V2_MODEL_RUNNER"] == "0"
    assert "--enable-expert-parallel" not in vllm_command(config(), SITE).argv


def test_every_flag_is_one_that_the_adapter_knows() -> None:
    assert set(FLAG_OF.values()) <= SWITCHES | VALUES
    ours = {f"cache.{name}" for name in asdict(CacheStrategy())} | {
        f"decode.{name}" for name in asdict(Decode())
    }
    assert ours - set(FLAG_OF) == {"decode.cuda_graphs", "decode.model_runner"}


@pytest.mark.parametrize("key", sorted(FLAG_OF))
def test_a_flag_that_two_keys_set_is_an_error_that_names_both(key: str) -> None:
    group, _, name = key.partition(".")
    value = getattr(getattr(EVERYTHING, group), name)
    kind = CacheStrategy if group == "cache" else Decode
    twice = config(flags={FLAG_OF[key]: "x"}, **{group: kind(**{name: value})})
    with pytest.raises(EngineConfigError, match=rf"engine\.flags\.{FLAG_OF[key]} and {key} both"):
        engine_flags(twice)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"env": {"VLLM_USE_V2_MODEL_RUNNER": "0"}, "decode": Decode(model_runner="v1")}, "both choose"),
        ({"flags": {"enforce_eager": True}, "decode": Decode(cuda_graphs="full")}, "captures nothing"),
        (
            {
                "flags": {"compilation_config": {"cudagraph_mode": "FULL"}},
                "decode": Decode(cuda_graphs="full"),
            },
            "both set what is captured",
        ),
        (
            {"cache": CacheStrategy(connector=Connector(name="NixlConnector"))},
            "a single vLLM engine can use ExampleConnector",
        ),
        (
            {
                "cache": CacheStrategy(
                    connector=Connector(
                        name="OffloadingConnector", chunk_tokens=64, options={"block_size": 64}
                    )
                )
            },
            "both set the chunk",
        ),
    ],
)
def test_a_contradiction_is_told(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(EngineConfigError, match=words):
        vllm_command(config(**changes), SITE)


def test_what_is_captured_joins_the_other_compilation_settings() -> None:
    both = config(flags={"compilation_config": {"mode": 0}}, decode=Decode(cuda_graphs="piecewise"))
    assert engine_flags(both)["compilation_config"] == {"mode": 0, "cudagraph_mode": "PIECEWISE"}
    as_text = config(flags={"compilation_config": '{"mode": 0}'}, decode=Decode(cuda_graphs="none"))
    assert engine_flags(as_text)["compilation_config"] == {"mode": 0, "cudagraph_mode": "NONE"}
    assert graphs(both) == "piecewise"
    assert graphs(config(flags={"enforce_eager": True})) == "none"
    assert graphs(config()) is None


def test_strategy_and_decode_are_part_of_the_identity_and_come_back_from_json() -> None:
    plain = config()
    assert EngineConfig.from_dict(json.loads(json.dumps(asdict(EVERYTHING)))) == EVERYTHING
    digests = {
        arm.digest
        for arm in (
            plain,
            config(cache=CacheStrategy(prefix_caching=False)),
            config(decode=Decode(cuda_graphs="none")),
            config(layout=Layout(dp=2)),
            config(layout=Layout(dp=2, routing="pinned")),
        )
    }
    assert len(digests) == 5
    assert EVERYTHING.baseline().cache == EVERYTHING.cache
    assert Layout(tp=2, dp=2, expert_parallel=True).label == "tp2-dp2-ep"
    assert Layout(dp=2, routing="pinned").label == "dp2-pinned"
