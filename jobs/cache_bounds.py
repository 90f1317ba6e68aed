"""What first turns can and must meet in a prefix cache that was cold at the start, by the order of sending.

Engines cache whole blocks, from when they are computed, and compute at least the last prompt token of every
request. So a first turn can meet no more than the longest prefix of whole blocks that another request of the
same cache (replica, and epoch where requests carry salts) sent before the first turn's answer began; and it
has to meet the longest such prefix of a request whose answer had begun when it was sent. Where both are equal
the order decides the amount exactly. The lower bound holds only while the cache forgets nothing.
"""

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jobs.replay.job import RequestRecord
from jobs.workload.prefix_keys import Words, leading, prefix_keys, repeated, turn_keys
from jobs.workload.tokens import TokenWorkload

ROOM = 0.95
"""Share of the KV capacity within which nothing is evicted: engines hold a few blocks back."""
_NOTHING = 0
"""Name of the empty path."""
_BEFORE = -1
"""Time of what the cache was primed with: before any request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheModel:
    """What is known of an engine's prefix cache."""

    block_size: int
    """Tokens of a KV block."""
    replicas: int
    capacity_tokens: int | None
    """KV capacity of all replicas; None where the engine does not say: then nothing is sure to be kept."""
    salted: bool
    """Whether each epoch has a salt of its own."""
    ranks: int = 1
    """Caches of a replica of equal size, where each request named its own."""
    dropped_blocks: int = 0
    """Blocks at the end of a hit that the drafter has computed again (hidden-state drafters: one)."""
    forgets: str = ""
    """Why a block may be missing though it was computed; empty where none of the reasons known applies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstTurns:
    """First turns against their bounds, in tokens from the prefix cache."""

    requests: int
    """First turns that were answered."""
    cached: int | None
    """What the engine reports of them; None where usage does not say."""
    least: int
    most: int
    above: int
    """Requests that met more than they could."""
    below: int
    """Requests that met less than they had to."""
    worst: str
    """The first of those, in words; empty where there is none."""
    loose: str
    """Why the lower bound is 0; empty where it is the order's."""
    what: str = "first turns"
    """Which requests were judged."""


def nothing_kept(requests: Sequence[RequestRecord]) -> FirstTurns:
    """Return all requests of a replay against an engine without a prefix cache: none can meet anything."""
    found = [(request, 0, 0) for request in requests if request.first is not None and request.error is None]
    return replace(_judged(found, ""), what="requests")


class _Paths:
    """The prefixes that more than one conversation holds: only they can be met in a cold cache.

    A path is the keys of a prompt's prefixes as far as they are shared, and is named by its last key: equal
    names are equal paths, so each is kept once.
    """

    def __init__(
        self, workload: TokenWorkload, played: Mapping[int, int], block_size: int, primed: Sequence[Words]
    ) -> None:
        self.of_name: dict[int, Sequence[int]] = {_NOTHING: ()}
        self.turns: dict[str, list[int]] = {}
        """Conversation -> name of the path of each turn."""
        parts = [np.unique(keys) for keys in primed]
        for index, times in played.items():
            fresh = [
                keys[kept:] for kept, keys in turn_keys(workload, workload.conversations[index], block_size)
            ]
            parts += [np.unique(np.concatenate(fresh))] * times
        self._shared = repeated(parts)
        for index in played:
            conversation = workload.conversations[index]
            names = self.turns[conversation.id] = []
            depth = 0
            for kept, keys in turn_keys(workload, conversation, block_size):
                # A block that was kept, and is shared with nobody, ends this path where it ended the last.
                if not names or depth >= kept:
                    start = min(depth, kept)
                    depth = start + leading(keys[start:], self._shared)
                names.append(self._name(keys[:depth]))

    def name(self, keys: Words) -> int:
        """Return the name of the path of other keys."""
        return self._name(keys[: leading(keys, self._shared)])

    def _name(self, keys: Words) -> int:
        name = int(keys[-1]) if len(keys) else _NOTHING
        if name not in self.of_name:
            self.of_name[name] = array("Q", keys.tolist())
        return name


class _Seen:
    """When the prefixes of one cache were first held: the two earliest, so that one's own can be left out."""

    def __init__(self, paths: _Paths) -> None:
        self._paths = paths.of_name
        self._times: dict[int, list[tuple[int, int]]] = {}

    def note(self, name: int, time: int, request: int) -> None:
        """Note that a request held the path `name`; calls have to come in order of time."""
        for key in reversed(self._paths[name]):
            times = self._times.setdefault(key, [])
            if len(times) == 2:
                return  # and so have all shorter prefixes
            times.append((time, request))

    def depth(self, name: int, most: int, until: int, request: int) -> int:
        """Return how many blocks of a path, `most` at most, another request held at `until` (included)."""
        path = self._paths[name][:most]
        for depth, key in enumerate(path):
            if not any(time <= until and who != request for time, who in self._times.get(key, ())):
                return depth
        return len(path)


def first_turns(
    requests: Sequence[RequestRecord],
    workload: TokenWorkload,
    order: Sequence[tuple[int, int]],
    model: CacheModel,
    primed: Mapping[int, Sequence[Sequence[int]]] | None = None,
) -> FirstTurns:
    """Return the first turns of a replay against what they could and had to meet.

    Time is linear in the tokens that are new in each turn; memory is eight bytes for each distinct block of a
    conversation.

    Args:
        requests: All requests of the replay.
        workload: What was replayed.
        order: (conversation index, epoch) of what was played.
        model: The engine's cache.
        primed: Epoch -> prompts that every replica had computed before; None for a cold cache.
    """
    primed_keys = {
        epoch: [prefix_keys(prompt, model.block_size) for prompt in prompts]
        for epoch, prompts in (primed or {}).items()
    }
    played: Mapping[int, int] = Counter(index for index, _ in order)
    if model.salted:  # each time in a cache of its own
        played = dict.fromkeys(played, 1)
    paths = _Paths(
        workload, played, model.block_size, [keys for each in primed_keys.values() for keys in each]
    )
    loose = model.forgets or _pressure(requests, model, primed or {})
    caches: dict[tuple[int, int, int], list[int]] = {}
    for number, request in enumerate(requests):
        caches.setdefault(_cache(request, model), []).append(number)
    found: list[tuple[RequestRecord, int, int]] = []
    for (_, _, epoch), members in caches.items():
        before = [paths.name(keys) for keys in primed_keys.get(epoch, ())]
        found += _bounds(requests, members, paths, before, model, exact=not loose)
    return _judged(found, loose)


def _bounds(
    requests: Sequence[RequestRecord],
    members: Sequence[int],
    paths: _Paths,
    before: Sequence[int],
    model: CacheModel,
    *,
    exact: bool,
) -> Iterator[tuple[RequestRecord, int, int]]:
    """Yield (first turn, least, most) of the requests that shared one cache."""
    sent, computed = _Seen(paths), _Seen(paths)
    for name in before:
        sent.note(name, _BEFORE, _BEFORE)
        computed.note(name, _BEFORE, _BEFORE)
    names = {number: paths.turns[requests[number].conversation][requests[number].turn] for number in members}
    for number in sorted(members, key=lambda number: requests[number].dispatched):
        sent.note(names[number], requests[number].dispatched, number)
    begun = sorted((time, number) for number in members if (time := requests[number].first) is not None)
    for time, number in begun:
        computed.note(names[number], time, number)
    for time, number in begun:
        request = requests[number]
        if request.turn > 0 or request.error is not None:
            continue
        servable = (request.expected_prompt_tokens - 1) // model.block_size
        most = sent.depth(names[number], servable, time, number)
        least = computed.depth(names[number], servable, request.dispatched, number) - model.dropped_blocks
        yield request, max(0, least) * model.block_size if exact else 0, most * model.block_size


def _cache(request: RequestRecord, model: CacheModel) -> tuple[int, int, int]:
    return request.replica, request.rank or 0, request.epoch if model.salted else 0


def _pressure(
    requests: Sequence[RequestRecord], model: CacheModel, primed: Mapping[int, Sequence[Sequence[int]]]
) -> str:
    """Say why something may have been evicted; empty where all that was ever computed fits at once."""
    if model.capacity_tokens is None:
        return "the engine does not say its KV capacity"
    capacity = ROOM * model.capacity_tokens / model.replicas / model.ranks
    held = sum(len(prompt) for prompts in primed.values() for prompt in prompts)
    needed = dict.fromkeys(((request.replica, request.rank) for request in requests), held)
    for request in requests:
        needed[request.replica, request.rank] += (
            request.expected_prompt_tokens + request.expected_tokens + 2 * model.block_size
        )
    most = max(needed.values(), default=0)
    if most <= capacity:
        return ""
    return f"the replay's {most} tokens are more than the KV cache keeps for certain ({capacity:.0f})"


def _judged(found: Sequence[tuple[RequestRecord, int, int]], loose: str) -> FirstTurns:
    above = [entry for entry in found if (entry[0].cached_tokens or 0) > entry[2]]
    below = [
        entry for entry in found if entry[0].cached_tokens is not None and entry[0].cached_tokens < entry[1]
    ]
    worst = ""
    for request, least, most in (*above, *below)[:1]:
        worst = (
            f"{request.conversation} (epoch {request.epoch}) had {request.cached_tokens} tokens, "
            f"expected {least if least == most else f'{least} to {most}'}"
        )
    unknown = not found or any(request.cached_tokens is None for request, _, _ in found)
    return FirstTurns(
        requests=len(found),
        cached=None if unknown else sum(request.cached_tokens or 0 for request, _, _ in found),
        least=sum(least for _, least, _ in found),
        most=sum(most for _, _, most in found),
        above=len(above),
        below=len(below),
        worst=worst,
        loose=loose,
    )
