"""Gates: what a cell and a pair have to pass before their figures mean anything.

A gate that fails makes the cell `invalid`, with the gate's message as the reason. One that could not be
checked, as an engine does not tell what it needs, has neither passed nor failed, and the cell says so. Every
message carries the numbers, passed or not.
"""

from collections.abc import Mapping

from engines.acceptance_translation import Forced
from engines.counters import Counters
from jobs.cache_bounds import FirstTurns
from jobs.cache_state import CacheState
from jobs.gates.acceptance import acceptance_gates
from jobs.gates.cache import cache_gate
from jobs.gates.client import client_gates
from jobs.gates.identities import identity_gates
from jobs.gates.load import emulator_pace_gate, load_gates
from jobs.gates.pair import Delivered, pair_gates
from jobs.replay.data import ReplayData
from jobs.result import Gate

__all__ = ["Delivered", "cell_gates", "pair_gates"]


def cell_gates(
    data: ReplayData,
    *,
    counters: Counters,
    metrics: Mapping[str, float | None],
    forced: Forced | None,
    cache: CacheState,
    first_turns: FirstTurns | None,
    oversubscribed: bool,
    emulated: bool,
) -> tuple[Gate, ...]:
    """Return every gate of one cell, passed or not.

    Args:
        data: The replay.
        counters: Engine counters, delta over the replay.
        metrics: Figures by `jobs/measurement.py`.
        forced: Synthetic acceptance as the engine was told it; None for real acceptance.
        cache: The cache state that was reached before the replay.
        first_turns: First turns against what they could and had to meet; None where the KV block size is
            unknown.
        oversubscribed: Whether client and engine share a core: then the client's lateness is no news, and the
            cell gets no verdict anyway.
        emulated: Whether the engine models hardware, and so can fall behind it.
    """
    gates = [
        *load_gates(data, metrics, oversubscribed=oversubscribed),
        *client_gates(data, metrics, oversubscribed=oversubscribed),
        *identity_gates(data, metrics, counters),
        cache_gate(cache, first_turns),
    ]
    if emulated:
        gates.append(emulator_pace_gate(data, counters))
    if forced is not None:
        gates += acceptance_gates(counters, metrics, forced)
    return tuple(gates)
