"""What to keep in mind with the figures of a cell that passed its gates."""

from collections.abc import Mapping, Sequence

from engines.acceptance_translation import Forced
from engines.base import Capabilities
from engines.counters import Counters
from engines.spec import Drafter
from jobs.gates.acceptance import draft_length, shorter_drafts
from jobs.nouns import are, counted
from jobs.replay.data import ReplayData
from jobs.result import Gate

DRAIN = 1 / 3
"""Share of the replay after the steady window from which the cell says so."""
QUEUE = 0.1
"""Queued requests as a share of C (open loop: of those in flight) from which the cell says so: single
arrivals always queue for a moment."""
SINGLE_CHUNK = 0.1
"""Share of single-chunk answers from which the cell says so."""
OVERLAP = 2 / 3
"""Least share of turns that a pair's windows have in common before the cell says so."""


def cell_caveats(data: ReplayData, metrics: Mapping[str, float | None]) -> tuple[str, ...]:
    """Return the caveats of one replay."""
    found: list[str] = []
    drain = metrics["window/drain_share"] or 0.0
    if metrics["window/seconds"] is None:
        found.append(
            "no steady window: work ran out before the level was reached; only the whole work was measured"
        )
    elif drain > DRAIN:
        found.append(f"the last {drain:.0%} of the replay ran with fewer users: replay more conversations")
    if preempted := round(metrics["engine/preemptions"] or 0.0):
        told = f"{counted(preempted, 'request')} {are(preempted, one='was', many='were')}"
        found.append(f"{told} preempted and recomputed")
    waiting = metrics["engine/waiting_peak"] or 0.0
    if waiting > QUEUE * (data.concurrency or metrics["window/in_flight"] or 1.0):
        found.append(f"up to {counted(round(waiting), 'request')} queued in the engine")
    done = len(data.succeeded)
    single = metrics["requests/single_chunk"] or 0.0
    if done and single / done > SINGLE_CHUNK:
        found.append(f"{single:.0f} of {done} answers came in one chunk and are left out of speeds")
    if done and metrics["cache/client_cached_tokens"] is None:
        found.append("usage has no cached tokens: computed throughput is unknown")
    return tuple(found)


def overlap_caveats(overlap: float | None) -> tuple[str, ...]:
    """Return what to say of the turns that the windows of a pair have in common."""
    if overlap is None or overlap >= OVERLAP:
        return ()
    caveat = (
        f"the steady windows of this cell and its opening baseline have {overlap:.0%} of their turns in "
        "common: read the whole fixed work beside the window's ratio, or replay more conversations"
    )
    return (caveat,)


def pairing_caveats(*, alone: bool) -> tuple[str, ...]:
    """Return what to say of a cell with a drafter whose segment has no opening baseline at its level."""
    if not alone:
        return ()
    caveat = (
        "its opening baseline gave no measurement, so nobody checked that configuration and work are those "
        "of a baseline: the gates configuration and equal_work are missing"
    )
    return (caveat,)


def engine_caveats(capabilities: Capabilities, gates: Sequence[Gate]) -> tuple[str, ...]:
    """Return what to say of the engine itself, and which gates could not be checked on it."""
    unchecked = [gate.name for gate in gates if gate.passed is None]
    told = f"not checked, as the engine does not tell what it takes: {', '.join(unchecked)}"
    return (*capabilities.caveats, *((told,) if unchecked else ()))


def acceptance_caveats(drafter: Drafter, forced: Forced | None, counters: Counters) -> tuple[str, ...]:
    """Return what to say of forced acceptance: what the engine did not express, and where it is from."""
    if forced is None:
        return ()
    found = [forced.stated] if forced.stated else []
    source = drafter.acceptance.source if drafter.acceptance else None
    if source is not None:
        said = f"; {source.note}" if source.note else ""
        found.append(f"acceptance is that of {source.kind} {source.name}{said}")
    if shorter_drafts(counters, len(forced.rates)):
        found.append(
            f"drafts had {draft_length(counters):.2f} tokens in the mean, fewer than k={len(forced.rates)}: "
            "the acceptance that was asked for could not come out in full"
        )
    return tuple(found)
