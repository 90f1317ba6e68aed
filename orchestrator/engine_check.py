"""Findings on one engine: start, resolved configuration, streams, counters, cache, stop, and memory after it.

Everything that a measurement relies on is asked of the real engine once, as a replay asks it.
"""

import time
from collections.abc import Collection, Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engines.base import Engine, Server
from engines.counters import Counters
from engines.errors import EngineError
from engines.series import Series
from engines.spec import EngineConfig
from jobs.bench import settled_counters
from jobs.errors import GpusHeldError
from jobs.fleet import Fleet
from jobs.gpus import GpuMemory
from jobs.nouns import are, counted
from orchestrator.doctor import MISSING, NOTE, OK, Finding
from orchestrator.probe import Answer, ask

PROMPT = tuple(range(20, 28)) * 32
"""Token ids that any vocabulary has, and a text that repeats itself, which a trained model goes on with."""
TOKENS = 32
"""Length of an answer."""
OTHER = tuple(range(30, 38)) * 32
"""A prompt that shares no prefix with `PROMPT`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long an engine may take, in seconds."""

    ready: float
    stop: float


def check_engine(
    fleet: Fleet, memory: GpuMemory, patience: Patience, *, known: Collection[str] = ()
) -> Generator[Finding, None, Mapping[str, Any] | None]:
    """Start the engine, look at all that is relied on, stop it, and yield what was found.

    Args:
        fleet: the engine, not started.
        memory: level of its GPUs before it.
        patience: how long it may take.
        known: names of series that were looked for before: they are only told of where they are missing now.

    Returns:
        Its resolved configuration; None where it did not start.
    """
    label = fleet.config.label
    try:
        seconds = fleet.start(ready_seconds=patience.ready)
    except EngineError as error:
        yield Finding(
            what=f"{label} start", state=MISSING, detail=error.cause, remedy=" ".join(str(error).split())
        )
        fleet.stop(grace=patience.stop)
        return None
    version = f"{fleet.config.engine} {fleet.config.version}"
    yield Finding(what=f"{label} start", state=OK, detail=f"{version}, ready in {seconds:.1f} s")
    resolved: Mapping[str, Any] | None = None
    try:
        resolved = fleet.resolved()
        yield _configuration(fleet, resolved)
        yield from _service(fleet, known)
    except EngineError as error:
        yield Finding(
            what=f"{label} in use", state=MISSING, detail=error.cause, remedy=" ".join(str(error).split())
        )
    yield from _stop(fleet, memory, patience)
    return resolved


def drafter_difference(
    engine: Engine, config: EngineConfig, plain: Mapping[str, Any], drafting: Mapping[str, Any]
) -> Finding:
    """Return whether a pair's configurations differ in what follows from the drafter, and in nothing else."""
    allowed = tuple(engine.drafter_keys(config))
    changed = sorted(key for key in {**plain, **drafting} if plain.get(key) != drafting.get(key))
    strange = [key for key in changed if not key.startswith(allowed)]
    if strange:
        detail = "; ".join(f"{key}: {plain.get(key)!r} and {drafting.get(key)!r}" for key in strange)
        remedy = "every pair would be invalid (gate `same_config`): set these in engine.flags for both"
        return Finding(what="pair", state=MISSING, detail=detail, remedy=remedy)
    differ = are(len(changed), one="differs", many="differ")
    follow = are(len(changed), one="it follows", many="all of them follow")
    detail = f"{counted(len(changed), 'key')} {differ} with the drafter, {follow} from it"
    return Finding(what="pair", state=OK, detail=detail)


def _configuration(fleet: Fleet, resolved: Mapping[str, Any]) -> Finding:
    what = f"{fleet.config.label} configuration"
    again = fleet.engine.resolved(fleet.servers[0])
    unsteady = sorted(key for key in {**resolved, **again} if resolved.get(key) != again.get(key))
    if not resolved:
        remedy = "nobody can tell whether the two arms of a pair differ in the drafter only"
        return Finding(what=what, state=MISSING, detail="the engine tells nothing", remedy=remedy)
    if unsteady:
        detail = f"{', '.join(unsteady)} changed between two readings"
        remedy = "every pair would be invalid: the adapter has to leave these keys out"
        return Finding(what=what, state=MISSING, detail=detail, remedy=remedy)
    return Finding(what=what, state=OK, detail=f"{counted(len(resolved), 'key')}, alike in two readings")


def _service(fleet: Fleet, known: Collection[str]) -> Iterator[Finding]:
    engine, server, label = fleet.engine, fleet.servers[0], fleet.config.label
    before = settled_counters(fleet)
    answer = ask(engine, server, PROMPT, tokens=TOKENS, salt="doctor")
    if answer.error is not None:
        remedy = "requests of this form are what a replay sends: nothing can be measured"
        yield Finding(what=f"{label} stream", state=MISSING, detail=answer.error, remedy=remedy)
        return
    yield from _stream(label, answer, drafts=not fleet.config.drafter.is_none)
    yield from _series(fleet, known)
    yield _counted(label, answer, settled_counters(fleet).since(before), fleet.config.drafter.k)
    yield from _cache(fleet)
    yield _capacity(engine, server, label)


def _stream(label: str, answer: Answer, *, drafts: bool) -> Iterator[Finding]:
    detail = f"{answer.prompt_tokens} prompt and {answer.completion_tokens} output tokens, as pinned"
    yield Finding(what=f"{label} stream", state=OK, detail=f"{detail}, in {answer.chunks} chunks")
    yield _told(
        f"{label} usage on every chunk",
        told=answer.counted,
        remedy="tokens are spread evenly over the chunks of an answer: inter-token latencies are coarse",
    )
    yield _told(
        f"{label} cached tokens in usage",
        told=answer.cached_tokens is not None,
        remedy="no request can be checked for a cold cache: `cache_state` is judged by counters alone",
    )
    if drafts:
        yield _told(
            f"{label} drafts in each answer",
            told=answer.speculation is not None,
            remedy="acceptance is known for the engine as a whole, not by request and context length",
        )


def _told(what: str, *, told: bool, remedy: str) -> Finding:
    if told:
        return Finding(what=what, state=OK, detail="there")
    return Finding(what=what, state=MISSING, detail="not there", remedy=remedy)


def _series(fleet: Fleet, known: Collection[str]) -> Iterator[Finding]:
    """Yield a finding for each series that the adapter reads."""
    exposed = frozenset(fleet.engine.exposed(fleet.servers[0]))
    for series in fleet.engine.series:
        if series.name in exposed:
            if series.name not in known:
                yield Finding(what=series.name, state=OK, detail="found")
        elif not (series.drafter and fleet.config.drafter.is_none):
            yield _missing(series, exposed)


def _missing(series: Series, exposed: Collection[str]) -> Finding:
    if series.instead in exposed:
        return Finding(what=series.name, state=NOTE, detail=f"{series.instead} takes its place")
    state = MISSING if series.required or series.drafter else NOTE
    cost = "nothing can be measured without it" if series.required else "without it is not known"
    return Finding(what=series.name, state=state, detail="missing", remedy=f"{cost}: {series.use}")


def _counted(label: str, answer: Answer, counted: Counters, k: int) -> Finding:
    """Return whether the counters moved by what the client saw."""
    what = f"{label} counters"
    expected = {
        "prompt tokens": (counted.prompt_tokens, answer.prompt_tokens),
        "output tokens": (counted.generation_tokens, answer.completion_tokens),
        "first tokens": (counted.first_tokens, 1),
    }
    wrong = [f"{name} {found} instead of {seen}" for name, (found, seen) in expected.items() if found != seen]
    if wrong:
        remedy = "counters and client disagree: every cell would fail its gates. Does another client use it?"
        return Finding(what=what, state=MISSING, detail=", ".join(wrong), remedy=remedy)
    if not k:
        return Finding(what=what, state=OK, detail="moved by what the client saw")
    if not counted.drafts:
        remedy = (
            "n-grams and suffixes need a model whose text repeats; any other drafter should have made one"
        )
        return Finding(what=what, state=NOTE, detail="no draft was counted", remedy=remedy)
    mal = 1 + counted.accepted_tokens / counted.drafts
    detail = f"moved by what the client saw; {counted.drafts} drafts, mean acceptance length {mal:.2f}"
    return Finding(what=what, state=OK, detail=detail)


def _cache(fleet: Fleet) -> Iterator[Finding]:
    """Yield whether the prefix cache is filled, emptied and salted as the measurement assumes."""
    engine, server, label = fleet.engine, fleet.servers[0], fleet.config.label

    def cached(salt: str) -> int | None:
        return ask(engine, server, OTHER, tokens=2, salt=salt).cached_tokens

    cached("one")
    warm = cached("one")
    if not warm:
        detail = "a prompt that was asked twice was not cached"
        remedy = "is it switched off, or its block larger than 256 tokens? Reset and salts cannot be checked"
        yield Finding(what=f"{label} prefix cache", state=NOTE, detail=detail, remedy=remedy)
        return
    yield Finding(what=f"{label} prefix cache", state=OK, detail=f"{warm} of {len(OTHER)} tokens of a prompt")
    if engine.capabilities.cache_salt:
        apart = cached("two")
        yield Finding(
            what=f"{label} cache salts",
            state=MISSING if apart else OK,
            detail=f"{apart} tokens shared over salts" if apart else "accepted; two salts share nothing",
            remedy="repeated conversations would meet a warm cache" if apart else "",
        )
    if engine.capabilities.cache_reset:
        confirmed = fleet.reset_cache()
        left = cached("one")
        good = confirmed and not left
        detail = f"{'confirmed' if confirmed else 'not confirmed'}, {left} tokens cached after it"
        remedy = "" if good else "cells would be cold by a salt or a fresh engine each: slower, with a caveat"
        yield Finding(
            what=f"{label} cache reset", state=OK if good else MISSING, detail=detail, remedy=remedy
        )


def _capacity(engine: Engine, server: Server, label: str) -> Finding:
    capacity = engine.capacity(server)
    what = f"{label} KV capacity"
    if capacity.tokens is None or capacity.block_size is None:
        remedy = "how many conversations fit, and what the cache could reach, is not known"
        detail = f"{capacity.tokens} tokens, blocks of {capacity.block_size}"
        return Finding(what=what, state=NOTE, detail=detail, remedy=remedy)
    return Finding(
        what=what, state=OK, detail=f"{capacity.tokens:,} tokens in blocks of {capacity.block_size}"
    )


def _stop(fleet: Fleet, memory: GpuMemory, patience: Patience) -> Iterator[Finding]:
    label = fleet.config.label
    begun = time.monotonic()
    fleet.stop(grace=patience.stop)
    seconds = time.monotonic() - begun
    if fleet.survivors:
        remedy = "its devices are not free; they are stuck in the driver: only a reboot helps"
        detail = f"{fleet.survivors} processes outlived SIGKILL"
        yield Finding(what=f"{label} stop", state=MISSING, detail=detail, remedy=remedy)
    else:
        yield Finding(what=f"{label} stop", state=OK, detail=f"nothing left after {seconds:.1f} s")
    if memory.level_mib is None:
        return
    begun = time.monotonic()
    try:
        memory.check()
    except GpusHeldError as error:
        yield Finding(what=f"{label} memory", state=MISSING, detail="not given back", remedy=str(error))
    else:
        seconds = time.monotonic() - begun
        yield Finding(what=f"{label} memory", state=OK, detail=f"given back after {seconds:.1f} s")
