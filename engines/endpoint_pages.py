"""The pages of a server that somebody else runs: whose names they have decides how they are read."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engines import sglang_http, sglang_resolved, trtllm_http, vllm_http, vllm_resolved
from engines.base import KVCapacity, Server
from engines.counters import Counters
from engines.emulator import info as emulator_info
from engines.errors import EngineError
from engines.remote_http import get_json, get_text
from engines.spec import EngineConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one kind of engine writes its metrics page."""

    prefix: str
    """What the names of its series begin with."""
    path: str
    counters: Callable[[str, float, int], Counters]
    """From a page, the time it was read, and the arm's K."""
    capacity: Callable[[str], KVCapacity]


DIALECTS = (
    Dialect(
        prefix="vllm:",
        path="/metrics",
        counters=lambda text, time, _: vllm_http.parse_counters(text, time=time),
        capacity=vllm_http.parse_capacity,
    ),
    Dialect(
        prefix="sglang:",
        path="/metrics",
        counters=lambda text, time, k: sglang_http.parse_counters(text, time=time, k=k),
        capacity=sglang_http.parse_capacity,
    ),
    Dialect(
        prefix="trtllm_",
        path=trtllm_http.METRICS_PATH,
        counters=lambda text, time, k: trtllm_http.parse_counters(text, time=time, k=k),
        capacity=trtllm_http.parse_capacity,
    ),
)

DRAFTER_KEYS = (*vllm_resolved.DRAFTER_KEYS, *sglang_resolved.DRAFTER_KEYS, *emulator_info.DRAFTER_KEYS)
"""Prefixes of keys that follow from the drafter, whoever's they are: none is a setting of another engine."""


def read_page(server: Server) -> tuple[Dialect, str] | None:
    """Return the server's metrics page and whose it is; None where there is none that is known.

    Raises:
        EngineError: the server does not answer.
    """
    texts: dict[str, str | None] = {}
    for dialect in DIALECTS:
        if dialect.path not in texts:
            texts[dialect.path] = get_text(server, dialect.path)
        text = texts[dialect.path]
        if text is not None and any(line.startswith(dialect.prefix) for line in text.split("\n")):
            return dialect, text
    return None


def read_counters(server: Server, time: float) -> Counters:
    """Return the counters of the server's page; all of them unknown where it has none that can be read.

    Raises:
        EngineError: the server does not answer.
    """
    found = read_page(server)
    if found is None:
        return Counters.unknown(time)
    dialect, text = found
    try:
        return dialect.counters(text, time, server.config.drafter.k)
    except EngineError:  # another version's page: half of it understood would be worse than none
        return Counters.unknown(time)


def read_capacity(server: Server) -> KVCapacity:
    """Return the KV capacity by the server's page; unknown where it has none.

    Raises:
        EngineError: the server does not answer.
    """
    found = read_page(server)
    if found is None:
        return KVCapacity(tokens=None, block_size=None)
    dialect, text = found
    return dialect.capacity(text)


def read_resolved(server: Server) -> dict[str, Any]:
    """Return the server's resolved configuration as flat keys; empty where it tells none that is known.

    Raises:
        EngineError: the server does not answer.
    """
    info = get_json(server, "/server_info", config_format="json")
    if not isinstance(info, Mapping):
        return {}
    flat = dict(_flat(info))
    if any(key.startswith(vllm_resolved.CONFIG) for key in flat):
        return vllm_resolved.comparable(flat)
    if "config_digest" in flat and flat.get("emulated") is True:
        return flat
    return sglang_resolved.comparable(info) if "speculative_algorithm" in flat else {}


def contradictions(config: EngineConfig, resolved: Mapping[str, Any]) -> list[str]:
    """Return where what a server tells of itself is not the arm it stands for: its sizes and its K.

    Everything else is the business of who runs it.
    """
    if not resolved:
        return []
    layout = config.layout
    if "speculative_algorithm" in resolved:
        ordered: dict[str, Any] = {"tp_size": layout.tp, "dp_size": layout.dp, "pp_size": layout.pp}
        own = sglang_resolved.drafting_contradictions(config, resolved)
    else:
        ordered = {
            "parallel_config.tensor_parallel_size": layout.tp,
            "parallel_config.data_parallel_size": layout.dp,
            "parallel_config.pipeline_parallel_size": layout.pp,
        }
        k = resolved.get("speculative_config.num_speculative_tokens") or 0
        own = [] if k == config.drafter.k else [f"it drafts {k} tokens a step, not {config.drafter.k}"]
    return [
        *(
            f"its {key} is {resolved[key]!r}, not {wanted!r}"
            for key, wanted in ordered.items()
            if key in resolved and resolved[key] != wanted
        ),
        *own,
    ]


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        path = f"{prefix}{key}"
        if isinstance(inner, Mapping) and inner:
            yield from _flat(inner, f"{path}.")
        else:
            yield path, inner
