"""SGLang's own resolved configuration, made comparable between two starts and between the arms of a pair.

From the source of 0.5.23 (`/server_info` gives every field of its arguments as resolved, flat, and live state
beside them); not yet seen on two real engines, so a key that varies by itself may be missing here.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from engines.schedule import ADAPTIVE
from engines.sglang_speculation import speculative_flags
from engines.spec import EngineConfig

LIVE = (
    "internal_states",
    "launch_command",
    "startup_time",
    "kv_events",
    "kv_event_sources",
    "hicache_object_layout",
    "status",
)
"""Prefixes of what is no setting: live state, times, the command line itself."""
_PLACES = ("port", "_addr", "_url", "_dir", "_path_log")
"""Endings of keys that name a place or a moment: leased ports, addresses, folders of one start."""

BATCH_LIMIT = "effective_max_running_requests_per_dp"
"""What is left of the batch limit when the KV cache was sized: the smallest of all ranks."""

DRAFTER_KEYS = (
    "speculative_",
    "_speculative_",
    "enable_multi_layer_eagle",
    # The KV cache that a drafter leaves over, and what follows from it: effects to measure.
    "max_total_num_tokens",
    "max_req_input_len",
    # Batch sizes of captured graphs are chosen with the K + 1 positions that a step verifies in mind.
    "cuda_graph_bs_decode",
    "cuda_graph_config.decode.bs",
)
"""Prefixes of keys that follow from the drafter."""


def comparable(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a `/server_info`, flat, without live state, places and moments."""
    found = {
        key: value for key, value in _flat(info, "") if not key.startswith(LIVE) and not key.endswith(_PLACES)
    }
    states = info.get("internal_states")
    limits = [
        state[BATCH_LIMIT]
        for state in (states if isinstance(states, list) else [])
        if isinstance(state, Mapping) and isinstance(state.get(BATCH_LIMIT), int)
    ]
    if limits:
        found[BATCH_LIMIT] = min(limits)
    return found


def contradictions(config: EngineConfig, resolved: Mapping[str, Any]) -> list[str]:
    """Return where a `comparable` configuration is not that of `config`, one phrase each."""
    layout = config.layout
    ordered: dict[str, Any] = {
        "served_model_name": config.model.name,
        "context_length": config.model.max_context,
        "random_seed": config.seed,
        "tp_size": layout.tp,
        "dp_size": layout.dp,
        "pp_size": layout.pp,
    }
    return [*_differing(ordered, resolved), *drafting_contradictions(config, resolved)]


def drafting_contradictions(config: EngineConfig, resolved: Mapping[str, Any]) -> list[str]:
    """Return where a `comparable` configuration drafts otherwise than `config`: not at all, or not K."""
    if config.drafter.is_none:
        return _differing({"speculative_algorithm": None}, resolved)
    flags = speculative_flags(config.drafter)
    window = config.drafter.k + 1
    found = _differing({"speculative_num_draft_tokens": window}, resolved)
    if ADAPTIVE in config.drafter.options and resolved.get("speculative_adaptive") is not True:
        found.append("it drafts one length, not by batch size: it switched that off")
    if resolved.get("speculative_algorithm") is None:
        found.append(f"it drafts nothing, not {flags['speculative_algorithm']}")
    return found


def _differing(ordered: Mapping[str, Any], resolved: Mapping[str, Any]) -> list[str]:
    return [
        f"its {key} is {resolved.get(key)!r}, not {wanted!r}"
        for key, wanted in ordered.items()
        if resolved.get(key) != wanted
    ]


def _flat(value: Mapping[str, Any], prefix: str) -> Sequence[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, inner in value.items():
        path = f"{prefix}{key}"
        if isinstance(inner, Mapping) and inner:
            found += _flat(inner, f"{path}.")
        else:
            found.append((path, inner))
    return found
