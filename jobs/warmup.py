"""Warm-up before a level: rounds of load on text that is not in the workload, until the step time settles.

A round has so many requests a user. Its chunk gaps *at full batch* (while as many requests decode as ever do
in the round) are cut into two looks, the earlier and the later half, so that neighbouring looks are of equal
batches. The step time has settled when the medians of the last two looks differ by no more than the
tolerance. So one round is enough for an engine that is warm already; another round is played where the looks
differ or hold too few gaps to tell, up to the most rounds allowed. What came of it is recorded.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engines.digest import seed_of
from jobs.measures.timing import NS_PER_MS, starts
from jobs.measures.work import good_chunks
from jobs.nouns import counted
from jobs.replay.data import ReplayData
from jobs.workload.order import warmup_prompts
from jobs.workload.tokens import TokenWorkload

TOLERANCE = 0.05
"""Share by which the medians of two looks may differ and still be one step time."""
LEAST_GAPS = 8
"""Chunk gaps a look needs before its median means anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One half of a round."""

    batch: int
    """Requests that were decoding."""
    gaps: int
    """Chunk gaps seen."""
    median_ms: float
    """Their median."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    """What a warm-up came to."""

    rounds: int
    """Rounds played."""
    requests: int
    """Requests sent."""
    settled: bool | None
    """Whether the step time had settled; None where the rounds were too short to tell."""
    looks: tuple[Look, ...] = ()

    @property
    def caveats(self) -> tuple[str, ...]:
        """What to say with the cell's figures."""
        if self.settled is not False or len(self.looks) < 2:
            return ()
        before, after = self.looks[-2:]
        caveat = (
            f"the step time had not settled after {counted(self.rounds, 'warm-up round')}: the median "
            f"chunk gap went from {before.median_ms:.2f} to {after.median_ms:.2f} ms; raise "
            "design.warmup_rounds_max"
        )
        return (caveat,)


def warm_up(
    play: Callable[[TokenWorkload, int], ReplayData],
    workload: TokenWorkload,
    *,
    users: int,
    per_user: int,
    rounds_max: int,
    seed: int,
) -> WarmUp:
    """Play rounds until the step time settles.

    Args:
        play: Replays a workload with so many users, every conversation once.
        workload: What will be measured: the rounds are as long as its turns, and hold none of its text.
        users: Users, as many as the level has.
        per_user: Requests a user and round; 0 for no warm-up.
        rounds_max: Most rounds.
        seed: Seed of the texts.
    """
    looks: list[Look] = []
    requests = per_user * users
    if not requests or not rounds_max:
        return WarmUp(rounds=0, requests=0, settled=None)
    for number in range(1, rounds_max + 1):
        text = warmup_prompts(workload, requests=requests, seed=seed_of(seed, "round", number))
        looks += looks_of(play(text, users))
        settled = has_settled(looks)
        if settled:
            break
    return WarmUp(rounds=number, requests=number * requests, settled=settled, looks=tuple(looks))


def has_settled(looks: list[Look]) -> bool | None:
    """Return whether the last two looks show the same step time; None where they cannot be compared."""
    if len(looks) < 2 or looks[-1].batch != looks[-2].batch:
        return None
    before, after = looks[-2].median_ms, looks[-1].median_ms
    return abs(after - before) <= TOLERANCE * min(before, after)


def looks_of(data: ReplayData) -> list[Look]:
    """Return the two looks of a round, in order of time; none where its full batch was too short."""
    kept = good_chunks(data)
    chunks = data.chunks[kept]
    spans = [
        (r.first, r.last)
        for r in data.succeeded
        if r.first is not None and r.last is not None and r.last > r.first
    ]
    if not spans or not len(chunks):
        return []
    batch, full = _full_batch(spans)
    times = chunks["time"]
    before = np.concatenate((times[:1], times[:-1]))
    # A gap counts when it lies within one stretch of full batch.
    begins, ends = full[:, 0], full[:, 1]
    place = np.searchsorted(begins, before, side="right") - 1
    inside = (place >= 0) & ~starts(chunks)
    inside &= times <= ends[np.maximum(place, 0)]
    order = np.argsort(times[inside], kind="stable")
    gaps = (times - before)[inside][order] / NS_PER_MS
    half = len(gaps) // 2
    if half < LEAST_GAPS:
        return []
    return [
        Look(batch=batch, gaps=len(part), median_ms=float(np.median(part)))
        for part in (gaps[:half], gaps[half:])
    ]


def _full_batch(spans: list[tuple[int, int]]) -> tuple[int, npt.NDArray[np.int64]]:
    """Return the most requests that ever decoded at once, and the stretches [from, to] in which they did."""
    events = sorted([(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans])
    live = most = 0
    stretches: list[tuple[int, int]] = []
    for (time, change), (following, _) in zip(events, [*events[1:], events[-1]], strict=True):
        live += change
        if live > most:
            most, stretches = live, []
        if live == most and following > time:
            stretches.append((time, following))
    return most, np.asarray(stretches, dtype=np.int64).reshape(-1, 2)
