"""Bringing a fleet's prefix cache into the stated state, and what is known of it for the judgement."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engines.counters import Counters
from engines.spec import PINNED_ROUTING, Drafter
from jobs.bench import Bench
from jobs.cache_bounds import CacheModel, FirstTurns, first_turns, nothing_kept
from jobs.cache_state import AT_MOST, COLD, OFF, PRIMED, CacheState, make_cold
from jobs.priming import Prompts, check_primable, priming_workload, prompts_to_prime, proof_of
from jobs.replay.arrivals import Schedule
from jobs.replay.data import ReplayData

PRIMING_USERS = 8
"""Requests in flight while the cache is primed."""
KEEPS_WHOLE_PREFIX = frozenset(
    {"none", "ngram", "ngram_gpu", "suffix", "free", "custom_class", "medusa", "mlp_speculator"}
)
"""Drafters without keys and values of their own: with others an engine may compute the last block of a hit
again."""
KEEPS_LAST_BLOCK = "disable_eagle_block_drop"
"""Drafter option that keeps it from doing so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The state that was reached, and what it was primed with."""

    state: CacheState
    primed: Prompts


def prepare_cache(
    bench: Bench, cell: str, schedule: Schedule, folder: Path, *, seed: int, fresh: bool
) -> Prepared:
    """Make the cache cold, and prime it where that is asked for.

    Args:
        bench: Where the cell is measured.
        cell: Id of the cell: its requests' salt.
        schedule: What will be played.
        folder: For the priming replays.
        seed: Seed of the cell.
        fresh: Whether this engine has not seen the workload yet.

    Raises:
        FreshEngineNeededError: this engine's cache cannot be made cold.
        WorkloadError: there is nothing to prime.
        EngineError: the engine died or hangs.
    """
    plan, fleet = bench.task.cache, bench.fleet
    able = fleet.engine.capabilities
    if fleet.config.cache.prefix_caching is False:
        return Prepared(state=CacheState(state=COLD, how=OFF, salt=None), primed={})
    state = make_cold(
        plan,
        reset=fleet.reset_cache if able.cache_reset else None,
        salt=cell if able.cache_salt else None,
        fresh=fresh,
    )
    if plan.state != PRIMED:
        return Prepared(state=state, primed={})
    prompts = prompts_to_prime(plan, bench.task.workload, schedule.order, salted=state.salt is not None)
    block_size = fleet.block_size()
    model = None if block_size is None else _model(bench, block_size, state)
    if model is not None:
        check_primable(prompts, model.block_size, model.dropped_blocks)
    for proofs in (False, True):
        workload, order = priming_workload(bench.task.workload, prompts, proofs=proofs)
        answers = [
            bench.play_all(
                workload,
                PRIMING_USERS,
                folder / f"{'proof' if proofs else 'prime'}-{replica}",
                seed=seed,
                salt=state.salt,
                order=order,
                replica=replica,
            )
            for replica in range(fleet.replicas)
        ]
    asked = [request for data in answers for request in data.requests]
    primed = [prompt for listed in prompts.values() for prompt in listed]
    proof = None if model is None else proof_of(asked, model)
    state = replace(
        state,
        state=PRIMED,
        primed_prompts=len(primed),
        primed_tokens=sum(map(len, primed)),
        proof=proof,
    )
    return Prepared(state=state, primed=prompts)


def judge_first_turns(
    bench: Bench,
    data: ReplayData,
    schedule: Schedule,
    prepared: Prepared,
    *,
    counters: Counters,
    resolved: Mapping[str, Any],
) -> FirstTurns | None:
    """Return the first turns against what they could and had to meet; None without a known block size."""
    if _is_off(bench, resolved):
        return nothing_kept(data.requests)
    block_size = bench.fleet.block_size()
    if block_size is None:
        return None
    model = _model(bench, block_size, prepared.state)
    forgets = _forgets(bench, counters)
    return first_turns(
        data.requests,
        bench.task.workload,
        schedule.order,
        replace(model, forgets=forgets),
        prepared.primed,
    )


def _model(bench: Bench, block_size: int, state: CacheState) -> CacheModel:
    return CacheModel(
        block_size=block_size,
        replicas=bench.fleet.replicas,
        capacity_tokens=bench.fleet.capacity_tokens(),
        salted=state.salt is not None,
        ranks=bench.run.config.layout.dp,
        dropped_blocks=_dropped_blocks(bench.run.config.drafter),
    )


def _dropped_blocks(drafter: Drafter) -> int:
    """Return how many blocks at the end of a hit may be computed again because of the drafter."""
    return 0 if drafter.method in KEEPS_WHOLE_PREFIX or drafter.options.get(KEEPS_LAST_BLOCK) else 1


def _is_off(bench: Bench, resolved: Mapping[str, Any]) -> bool:
    """Whether the engine keeps no prefix, by what it was told or by what it says."""
    said = (value for key, value in resolved.items() if key.endswith("enable_prefix_caching"))
    return bench.run.config.cache.prefix_caching is False or any(value is False for value in said)


def _forgets(bench: Bench, counters: Counters) -> str:
    """Say why a block may be missing though it was computed; empty where no reason is known."""
    if bench.task.cache.expect == AT_MOST:
        return "cache.expect is at_most"
    layout = bench.run.config.layout
    if layout.dp > 1 and layout.routing != PINNED_ROUTING:
        return "each data-parallel rank has a cache of its own"
    if counters.preemptions:
        return "requests were preempted"
    return ""
