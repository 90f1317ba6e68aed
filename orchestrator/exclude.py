"""Corners cut from a grid: the key `exclude`, a list of what points to leave out.

A point is left out where every key of an entry has the given value, or one of a list of values, or with
`{not: ...}` any other. A key is a dotted one of the configuration, or a group, which stands for the name of
its chosen option: `{layout: [tp2, dp2], drafter: {not: eagle3}}`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jobs.nouns import counted
from orchestrator.errors import ConfigError
from orchestrator.known_keys import unknown_key
from orchestrator.sweep import Point

NOT = "not"


def left_out(points: Sequence[Point], exclude: Sequence[Mapping[str, Any]]) -> tuple[list[Point], list[str]]:
    """Return the points that no entry of `exclude` matches, and what to say about the others.

    An entry that matches nothing is told where it stands in the user's own words: they meant something by it.
    One of an experiment's file is written for every grid of that experiment, and often has nothing to do.

    Raises:
        ConfigError: an entry names a key that does not exist, or nothing is left.
    """
    kept = [point for point in points if not any(_matches(point, entry) for entry in exclude)]
    own = any(key.partition(".")[0] == "exclude" for point in points for key in point.choices)
    counts = [(entry, sum(_matches(point, entry) for point in points)) for entry in exclude]
    notes = [_note(entry, count) for entry, count in counts if count or own]
    if not kept:
        message = "exclude leaves out every point of the grid; remove an entry, or widen the grid"
        raise ConfigError(message)
    return kept, notes


def _matches(point: Point, entry: Mapping[str, Any]) -> bool:
    return bool(entry) and all(_agrees(_value(point, key), wanted) for key, wanted in entry.items())


def _value(point: Point, key: str) -> Any:
    """Return what an entry's key is compared with: an option's name for a group, else the key's value."""
    if key in point.groups:
        return point.groups[key]
    try:
        return point.at(key)
    except KeyError:
        wrong = unknown_key(key) or "that is not in this configuration"
        message = f"exclude names the key {key!r}: {wrong}; `specload sweep --cfg job` shows them"
        raise ConfigError(message) from None


def _agrees(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping) and set(wanted) == {NOT}:
        return not _agrees(value, wanted[NOT])
    return value in (wanted if isinstance(wanted, list) else [wanted])


def _note(entry: Mapping[str, Any], count: int) -> str:
    words = ", ".join(f"{key}={_words(wanted)}" for key, wanted in entry.items())
    if count == 0:
        return f"exclude {words} matches no point of the grid and changes nothing"
    return f"exclude {words} leaves out {counted(count, 'point')}"


def _words(wanted: Any) -> str:
    if isinstance(wanted, Mapping) and set(wanted) == {NOT}:
        return f"anything but {_words(wanted[NOT])}"
    return str(wanted)
