"""The keys of the configuration, and what is said of one that does not exist: neighbours, what was meant."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from engines.nearest import nearest
from orchestrator.errors import ConfigError
from orchestrator.schema import SpecloadSchema

OPEN_MAPS = ("engine.flags.", "engine.env.", "drafter.options.")
"""Beginnings of the keys that are not told beforehand."""
_NAMED = 3
"""Keys elsewhere of the same name that are named."""


def check_known(config: Mapping[Any, Any], schema: type = SpecloadSchema, prefix: str = "") -> None:
    """Refuse keys that Hydra's `+` added where the schema has no open map: nothing would ever read them.

    Raises:
        ConfigError: names the first such key and its neighbours.
    """
    sections = _sections(schema)
    for key, value in config.items():
        if key not in sections:
            raise ConfigError(_unknown(str(key), schema, prefix))
        section = sections[key]
        if section is not None and isinstance(value, Mapping):
            check_known(value, section, f"{prefix}{key}.")


def unknown_key(key: str) -> str:
    """Return what is said of a dotted key that the schema does not have; empty for one that it has."""
    schema: type = SpecloadSchema
    prefix = ""
    for part in key.split("."):
        sections = _sections(schema)
        if part not in sections:
            return _unknown(part, schema, prefix)
        section = sections[part]
        if section is None:  # a value, or an open map
            return ""
        schema, prefix = section, f"{prefix}{part}."
    return ""


def _unknown(part: str, schema: type, prefix: str) -> str:
    names = list(_sections(schema))
    near = nearest(part, names)
    elsewhere = [key for key in _keys(SpecloadSchema) if key.rpartition(".")[2] == part]
    meant = f"{prefix}{near}" if near else " or ".join(elsewhere[:_NAMED])
    where = prefix.rstrip(".") or "the top level"
    guess = f" (did you mean {meant}?)" if meant else ""
    return f"there is no key {prefix}{part}{guess}; {where} has {', '.join(names)}"


def _sections(schema: type) -> dict[str, type | None]:
    """Return the keys of a section, each with its own section; None for a value or an open map."""
    found: dict[str, type | None] = {}
    for entry in dataclasses.fields(schema):
        kinds = (entry.type, *get_args(entry.type))  # the parts of an optional section, too
        own = [kind for kind in kinds if isinstance(kind, type) and dataclasses.is_dataclass(kind)]
        found[entry.name] = own[0] if own else None
    return found


def _keys(schema: type, prefix: str = "") -> Iterator[str]:
    """Yield the dotted keys below a section."""
    for name, section in _sections(schema).items():
        yield f"{prefix}{name}"
        if section is not None:
            yield from _keys(section, f"{prefix}{name}.")
