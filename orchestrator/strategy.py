"""Cache strategy, cache state and decode settings of a point, and which of them do not go together."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from engines.base import Refusal
from engines.registry import engine_named
from engines.spec import PINNED_ROUTING, EngineConfig
from engines.strategy import CacheStrategy, Connector, Decode
from jobs.cache_state import PRIMED, CachePlan
from orchestrator.errors import ConfigError


def cache_strategy(config: Mapping[str, Any]) -> CacheStrategy:
    """Return what the point's engine keeps of keys and values.

    Raises:
        ValueError: a value out of its range; the message names the key.
    """
    chosen, standard = config["cache"], config["engine"]["standard"]["cache"]
    values = {entry.name: chosen[entry.name] for entry in fields(CacheStrategy)}
    values = {name: standard[name] if value is None else value for name, value in values.items()}
    connector = chosen["connector"] if chosen["connector"]["name"] is not None else standard["connector"]
    if connector["name"] is not None:
        values["connector"] = Connector(**connector)
        return CacheStrategy(**values)
    without = [name for name in ("chunk_tokens", "options") if chosen["connector"][name]]
    if without:
        message = (
            f"cache.connector.{without[0]} is set without a connector: set cache.connector.name, or remove it"
        )
        raise ValueError(message)
    return CacheStrategy(**{**values, "connector": None})


def decode_settings(config: Mapping[str, Any]) -> Decode:
    """Return how the point's engine makes up and executes its steps.

    Raises:
        ValueError: a value out of its range; the message names the key.
    """
    chosen, standard = config["decode"], config["engine"]["standard"]["decode"]
    values = {name: standard[name] if value is None else value for name, value in chosen.items()}
    return Decode(**values)


def cache_plan(settings: Mapping[str, Any]) -> CachePlan:
    """Return the state of the prefix cache that a sweep asks for.

    Raises:
        ConfigError: a value that is none; the message names the key.
    """
    try:
        return CachePlan(**{entry.name: settings[entry.name] for entry in fields(CachePlan)})
    except ValueError as error:
        raise ConfigError(str(error)) from error


def strategy_refusals(config: EngineConfig, cache: CachePlan) -> tuple[Refusal, ...]:
    """Return why an engine cannot be brought into the cache state, or its requests to their ranks."""
    found = {
        "primed_prefix_caching": _primed_without_cache(config, cache),
        "primed_dp": _primed_ranks(config, cache),
        "pinned_routing": _pinned(config),
    }
    return tuple(Refusal(rule=rule, reason=reason) for rule, reason in found.items() if reason)


def _primed_without_cache(config: EngineConfig, cache: CachePlan) -> str | None:
    if cache.state != PRIMED or config.cache.prefix_caching is not False:
        return None
    return "cache.state=primed warms what cache.prefix_caching=false leaves out; use cache.state=cold"


def _primed_ranks(config: EngineConfig, cache: CachePlan) -> str | None:
    if cache.state != PRIMED or config.layout.dp == 1:
        return None
    return (
        "cache=primed cannot be proven on a data-parallel engine, as each rank has a prefix cache of its own "
        "and a request meets one; use cache=cold, or replicas instead of layout.dp"
    )


def _pinned(config: EngineConfig) -> str | None:
    if config.layout.routing != PINNED_ROUTING:
        return None
    if config.layout.dp == 1:
        return "layout.routing=pinned chooses between data-parallel ranks, of which there is one; use engine"
    if engine_named(config.engine).capabilities.rank_header is not None:
        return None
    return (
        f"layout.routing=pinned: a request cannot name its data-parallel rank to {config.engine!r}; use "
        "layout.routing=engine"
    )
