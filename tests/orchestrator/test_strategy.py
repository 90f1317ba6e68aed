"""Cache strategy and decode settings of a point: its groups, over its engine's environment."""

from typing import Any

import pytest
from omegaconf import OmegaConf

from engines.spec import EngineConfig, Layout, Model
from engines.strategy import CacheStrategy, Connector
from jobs.cache_state import CachePlan
from orchestrator.schema import SpecloadSchema
from orchestrator.strategy import cache_strategy, decode_settings, strategy_refusals


def point(**settings: Any) -> Any:
    schema = OmegaConf.structured(SpecloadSchema)
    given = OmegaConf.from_dotlist([f"{key}={value}" for key, value in settings.items()])
    return OmegaConf.to_container(OmegaConf.merge(schema, given))


def test_what_nobody_sets_is_left_to_the_engine() -> None:
    assert cache_strategy(point()).given == {}
    assert decode_settings(point()).given == {}


def test_a_group_goes_before_the_environment_of_the_engine() -> None:
    standard = {"engine.standard.cache.block_size": 32, "engine.standard.decode.max_num_seqs": 64}
    assert cache_strategy(point(**standard)).block_size == 32
    assert decode_settings(point(**standard)).max_num_seqs == 64
    chosen = point(**standard, **{"cache.block_size": 16, "decode.max_num_seqs": 8, "cache.kv_dtype": "fp8"})
    assert cache_strategy(chosen).given == {"block_size": 16, "kv_dtype": "fp8"}
    assert decode_settings(chosen).given == {"max_num_seqs": 8}
    off = point(**{"engine.standard.cache.prefix_caching": True, "cache.prefix_caching": False})
    assert cache_strategy(off).prefix_caching is False


def test_a_connector_comes_as_a_whole() -> None:
    standard = {
        "engine.standard.cache.connector.name": "A",
        "engine.standard.cache.connector.chunk_tokens": 64,
    }
    assert cache_strategy(point(**standard)).connector == Connector(name="A", chunk_tokens=64)
    assert cache_strategy(point(**standard, **{"cache.connector.name": "B"})).connector == Connector(name="B")


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("cache.block_size", 0, "cache.block_size is 0"),
        ("cache.kv_offload_gib", -1.0, "choose more than 0"),
        ("decode.cuda_graphs", "some", "choose one of none, piecewise"),
        ("decode.model_runner", "v3", "choose one of v1, v2"),
        ("cache.connector.chunk_tokens", 64, "set cache.connector.name"),
    ],
)
def test_a_value_out_of_range_names_its_key(key: str, value: Any, words: str) -> None:
    read = cache_strategy if key.startswith("cache") else decode_settings
    with pytest.raises(ValueError, match=words):
        read(point(**{key: value}))


@pytest.mark.parametrize(
    ("state", "changes", "rules"),
    [
        ("cold", {"cache": CacheStrategy(prefix_caching=False)}, []),
        ("primed", {"cache": CacheStrategy(prefix_caching=True)}, []),
        ("primed", {"cache": CacheStrategy(prefix_caching=False)}, ["primed_prefix_caching"]),
        ("cold", {"layout": Layout(dp=2)}, []),
        ("primed", {"layout": Layout(dp=2)}, ["primed_dp"]),
        ("cold", {"layout": Layout(dp=2, routing="pinned")}, []),
        ("cold", {"layout": Layout(tp=2, routing="pinned")}, ["pinned_routing"]),
        ("cold", {"layout": Layout(dp=2, routing="pinned"), "engine": "trtllm"}, ["pinned_routing"]),
    ],
)
def test_what_does_not_go_together_is_refused(state: str, changes: dict[str, Any], rules: list[str]) -> None:
    config = EngineConfig(**{"engine": "vllm", "version": "0", "model": Model(name="m"), **changes})
    found = strategy_refusals(config, CachePlan(state=state))
    assert [refusal.rule for refusal in found] == rules
