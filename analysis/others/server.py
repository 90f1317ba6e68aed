"""What a result tells of its server: drafter, K, layout, other settings.

`vllm bench sweep serve` writes the server's overrides into each result, and `vllm bench serve --metadata
KEY=VALUE` whatever its user adds. Known keys are read wherever they come from.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SPECULATION = "speculative_config"
LAYOUT_KEYS = {
    "tp": ("tensor_parallel_size", "tp"),
    "dp": ("data_parallel_size", "dp"),
    "pp": ("pipeline_parallel_size", "pp"),
}
"""Part of a layout's name -> keys that may tell it."""
METHOD_KEYS = (f"{SPECULATION}.method", "drafter", "spec_method", "method")
K_KEYS = (f"{SPECULATION}.num_speculative_tokens", "num_speculative_tokens", "k")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What is told of a server."""

    drafter: str | None
    """Method, `none` without one; None where nothing is told."""
    k: int
    layout: str
    flags: str


def server_facts(document: Mapping[str, Any], server: str) -> ServerFacts:
    """Return what a result tells of its server.

    Args:
        document: result of a run.
        server: the name that `vllm bench sweep serve` gave the server's overrides: `key=value`s with dashes
            between; empty where the run is of no such sweep. A server of a sweep whose overrides name no
            speculation has none, as far as the sweep is concerned.
    """
    told = {_plain(key): value for key, value in document.items()}
    config = _speculation(told.get(SPECULATION))
    method = _first(told, METHOD_KEYS, config.get("method"))
    k = _first(told, K_KEYS, config.get("num_speculative_tokens"))
    if method is None and config:
        method = "draft_model" if config.get("model") else "speculation"
    if method is None and server:
        method = "none"
    sizes = {part: _first(told, keys) for part, keys in LAYOUT_KEYS.items()}
    layout = "-".join(f"{part}{int(size)}" for part, size in sizes.items() if _counts(size))
    return ServerFacts(
        drafter=None if method is None else str(method),
        k=int(k) if _counts(k) else 0,
        layout=str(told["layout"]) if told.get("layout") else layout,
        flags=", ".join(_flags(document, server)),
    )


def _flags(document: Mapping[str, Any], server: str) -> list[str]:
    """Return the server's other settings: those keys of the result that the server's name spells out."""
    speculation = {*METHOD_KEYS, *K_KEYS}
    layout = {key for keys in LAYOUT_KEYS.values() for key in keys}
    found = []
    for key in sorted(document):
        plain = _plain(key)
        if plain in speculation | layout or plain.startswith(SPECULATION):
            continue
        if re.search(rf"(?:^|-){re.escape(key)}=", server):
            found.append(f"{plain}={document[key]}")
    return found


def _plain(key: str) -> str:
    """Return a key with underscores before its first dot: options are spelt both ways."""
    head, dot, rest = key.partition(".")
    return head.replace("-", "_") + dot + rest


def _speculation(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, Mapping) else {}


def _first(told: Mapping[str, Any], keys: tuple[str, ...], other: Any = None) -> Any:
    return next((told[key] for key in keys if told.get(key) is not None), other)


def _counts(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (
        isinstance(value, str) and value.isdigit()
    )
