"""From the keys of `drafter.acceptance` to the value that an engine is asked for."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from engines.acceptance import GEOMETRIC, Acceptance
from engines.spec import EngineConfig
from orchestrator.acceptance_cell import cell_acceptance
from orchestrator.acceptance_keys import PREFIX
from orchestrator.acceptance_lengths import file_acceptance
from orchestrator.errors import ConfigError


def acceptance_of(settings: Mapping[str, Any] | None, *, k: int, results: str) -> Acceptance | None:
    """Return the acceptance that settled `settings` ask for, None for real acceptance.

    Measured rates are read here, once, and cut to the draft length, so that the plan holds them.

    Args:
        settings: values of `ACCEPTANCE_KEYS`.
        k: draft length.
        results: folder in which `from` looks for a cell or a sweep.

    Raises:
        ConfigError: a value of the wrong kind or out of its range, or a cell or file that cannot be read.
    """
    given = settings or {}
    alpha, length, positions = given.get("alpha"), given.get("length"), given.get("positions")
    try:
        if alpha is not None:
            return Acceptance(alpha=_number("alpha", alpha))
        if length is not None:
            shape = given.get("shape") or GEOMETRIC
            return Acceptance(length=_number("length", length), shape=str(shape))
        if positions is not None:
            return _cut(Acceptance(positions=_numbers(positions)), k)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    if given.get("from") is not None:
        return _cut(cell_acceptance(str(given["from"]), results=results), k)
    if given.get("file") is not None:
        return _cut(file_acceptance(str(given["file"]), row=_text(given.get("row"))), k)
    return None


def acceptance_notes(configs: Iterable[EngineConfig]) -> list[str]:
    """Return what a plan says of measured acceptance: where it is from, and what was done to it."""
    found: dict[str, None] = {}
    for config in configs:
        acceptance = config.drafter.acceptance
        if acceptance is None or acceptance.source is None:
            continue
        source = acceptance.source
        said = f"; {source.note}" if source.note else ""
        found[f"acceptance of {source.kind} {source.name} (SHA-256 {source.digest[:12]}){said}"] = None
    return list(found)


def _cut(acceptance: Acceptance, k: int) -> Acceptance:
    """Return the first K positions; fewer than K are left as they are, for the rules to refuse that arm."""
    return acceptance if acceptance.refusal(k) else acceptance.at(k)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _number(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = f"{PREFIX}.{key} is {value!r}; it takes a number"
        raise ConfigError(message)
    return float(value)


def _numbers(values: Any) -> tuple[float, ...]:
    if isinstance(values, str) or not isinstance(values, Sequence):
        message = f"{PREFIX}.positions is {values!r}; it takes a list of numbers, as in '[0.8,0.6,0.5]'"
        raise ConfigError(message)
    return tuple(_number("positions", value) for value in values)
