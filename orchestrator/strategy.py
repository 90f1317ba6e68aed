"""Cache strategy and decode settings of a point: its groups, over what its engine's environment takes."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from engines.strategy import CacheStrategy, Connector, Decode


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
