"""Whether plain JSON is a cell's result: a file that somebody damaged or changed fails where it is read."""

from collections.abc import Iterable, Mapping
from typing import Any

_NUMBER, _NONE = (int, float), type(None)
_FORMS: tuple[tuple[tuple[type, ...], tuple[str, ...]], ...] = (
    ((str,), ("cell", "arm", "arm_label", "layout", "drafter", "role", "outcome", "kind")),
    ((str,), ("counterfactual", "log_tail", "started")),
    ((str, _NONE), ("cause", "reason")),
    ((int,), ("k", "block", "segment", "round", "devices", "replicas", "sequence")),
    ((int, _NONE), ("concurrency",)),
    ((*_NUMBER, _NONE), ("rate", "rate_scale", "start_seconds")),
    (_NUMBER, ("seconds",)),
    ((bool,), ("emulated", "synthetic", "oversubscribed")),
    ((dict, Mapping), ("factors", "metrics", "identity")),
    ((list, tuple), ("gates", "caveats")),
)
_KINDS = {name: kinds for kinds, names in _FORMS for name in names}
"""Field -> what its value is."""


def check_form(data: Any, words: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse what is no cell's result.

    Args:
        data: as JSON has it.
        words: field -> the words that it may be.

    Raises:
        ValueError: names the field.
    """
    if not isinstance(data, Mapping):
        message = "it is no JSON object"
        raise ValueError(message)
    wrong = next((name for name, value in data.items() if not _fits(name, value, words)), None)
    if wrong is not None:
        message = f"its {wrong} is {str(data[wrong])[:60]!r}"
        raise ValueError(message)


def whole(value: Any) -> Any:
    """Return plain JSON without halves of surrogate pairs, which JSON may hold and no table or file can."""
    kind = type(value)
    if kind is str:
        return value if value.isascii() else value.encode(errors="replace").decode()
    if kind is dict:
        return {whole(key): whole(entry) for key, entry in value.items()}
    return [whole(entry) for entry in value] if kind in (list, tuple) else value


def _fits(name: str, value: Any, words: Mapping[str, tuple[str, ...]]) -> bool:
    if not isinstance(value, _KINDS.get(name, (object,))) or value not in words.get(name, (value,)):
        return False
    inside: Any = value  # of the kind that its field has
    if name == "metrics":
        return _all(inside.values(), (*_NUMBER, _NONE))
    if name in ("factors", "caveats"):
        return _all(inside.values() if name == "factors" else inside, (str,))
    return name != "gates" or all(_is_gate(gate) for gate in inside)


def _is_gate(gate: Any) -> bool:
    return isinstance(gate, Mapping) and _all((gate.get("name"), gate.get("message")), (str,))


def _all(values: Iterable[Any], kinds: tuple[type, ...]) -> bool:
    return all(issubclass(kind, kinds) for kind in set(map(type, values)))
