"""What first turns can and must meet in a prefix cache that was cold at the start, by the order of sending.

Engines cache whole blocks, from when they are computed, and compute at least the last prompt token of every
request. So a first turn can meet no more than the longest prefix of whole blocks that another request of the
same cache (replica, and epoch where requests carry salts) sent before the first turn's answer began; and it
has to meet the longest such prefix of a request whose answer had begun when it was sent. Where both are equal
the order decides the amount exactly. The lower bound holds only while the cache forgets nothing.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from jobs.replay.job import RequestRecord
from jobs.workload.tokens import TokenWorkload

ROOM = 0.95
"""Share of the KV capacity within which nothing is evicted: engines hold a few blocks back."""
_ROOT = 0
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


class PrefixTree:
    """Prompts as paths of whole blocks from a common root; equal prefixes are equal nodes."""

    def __init__(self, block_size: int) -> None:
        self.parents = array("q", [-1])
        """Node above each node; node 0 is the root."""
        self.block_size = block_size
        self._children: dict[tuple[int, bytes], int] = {}

    def add(self, prompt: Sequence[int]) -> "array[int]":
        """Add the whole blocks of `prompt` and return their nodes, from the root's child on."""
        path = array("q")
        node = _ROOT
        for block in self._blocks(prompt):
            key = (node, block)
            found = self._children.get(key)
            if found is None:
                found = len(self.parents)
                self._children[key] = found
                self.parents.append(node)
            node = found
            path.append(node)
        return path

    def deepest(self, prompt: Sequence[int]) -> tuple[int, int]:
        """Return (node, blocks above and in it) of the longest prefix of `prompt` that is in the tree."""
        node, depth = _ROOT, 0
        for block in self._blocks(prompt):
            found = self._children.get((node, block))
            if found is None:
                break
            node, depth = found, depth + 1
        return node, depth

    def _blocks(self, prompt: Sequence[int]) -> Iterable[bytes]:
        tokens = array("I", prompt)
        for start in range(0, len(tokens) - self.block_size + 1, self.block_size):
            yield tokens[start : start + self.block_size].tobytes()


class _Seen:
    """When the blocks of one cache were first held: the two earliest, so that one's own can be left out."""

    def __init__(self, parents: Sequence[int]) -> None:
        self._parents = parents
        self._times: dict[int, list[tuple[int, int]]] = {}

    def note(self, node: int, time: int, request: int) -> None:
        """Note that a request held `node`, and so all above it; calls have to come in order of time."""
        while node != _ROOT:
            times = self._times.setdefault(node, [])
            if len(times) == 2:
                return
            times.append((time, request))
            node = self._parents[node]

    def depth(self, path: Sequence[int], until: int, request: int) -> int:
        """Return how many blocks of `path` another request held at `until` (included)."""
        for depth, node in enumerate(path):
            held = self._times.get(node, ())
            if not any(time <= until and who != request for time, who in held):
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

    Args:
        requests: All requests of the replay.
        workload: What was replayed.
        order: (conversation index, epoch) of what was played.
        model: The engine's cache.
        primed: Epoch -> prompts that every replica had computed before; None for a cold cache.
    """
    tree = PrefixTree(model.block_size)
    played = sorted({index for index, _ in order})
    ids = [workload.conversations[index].id for index in played]
    paths = {
        name: tree.add(next(iter(workload.prompts(workload.conversations[index]))))
        for name, index in zip(ids, played, strict=True)
    }
    nodes = {name: _nodes(tree, workload, index) for name, index in zip(ids, played, strict=True)}
    loose = model.forgets or _pressure(requests, model, primed or {})
    caches: dict[tuple[int, int], list[int]] = {}
    for number, request in enumerate(requests):
        caches.setdefault(_cache(request, model), []).append(number)
    found: list[tuple[RequestRecord, int, int]] = []
    for (_, epoch), members in caches.items():
        before = [tree.deepest(prompt)[0] for prompt in (primed or {}).get(epoch, ())]
        sent, computed = _seen(tree, before), _seen(tree, before)
        for number in sorted(members, key=lambda number: requests[number].dispatched):
            request = requests[number]
            sent.note(nodes[request.conversation][request.turn], request.dispatched, number)
        begun = [(time, number) for number in members if (time := requests[number].first) is not None]
        for time, number in sorted(begun):
            computed.note(nodes[requests[number].conversation][requests[number].turn], time, number)
        for time, number in begun:
            request = requests[number]
            if request.turn > 0 or request.error is not None:
                continue
            servable = (request.expected_prompt_tokens - 1) // model.block_size
            path = paths[request.conversation][:servable]
            most = sent.depth(path, time, number)
            least = 0 if loose else computed.depth(path, request.dispatched, number) - model.dropped_blocks
            found.append((request, max(0, least) * model.block_size, most * model.block_size))
    return _judged(found, loose)


def _seen(tree: PrefixTree, before: Sequence[int]) -> _Seen:
    seen = _Seen(tree.parents)
    for node in before:
        seen.note(node, _BEFORE, _BEFORE)
    return seen


def _nodes(tree: PrefixTree, workload: TokenWorkload, index: int) -> "array[int]":
    """Return the deepest node of each turn of a conversation."""
    conversation = workload.conversations[index]
    nodes = array("q")
    node, settled = _ROOT, 0
    for turn, prompt in zip(conversation.turns, workload.prompts(conversation), strict=True):
        if not nodes or turn.keep < settled:
            node, depth = tree.deepest(prompt)
            # Up to here the prompt decides its node. Where it ends sooner, a longer one may go deeper.
            settled = (depth + 1) * tree.block_size
            if len(prompt) < settled:
                settled = len(prompt) + 1
        nodes.append(node)
    return nodes


def _cache(request: RequestRecord, model: CacheModel) -> tuple[int, int]:
    return request.replica, request.epoch if model.salted else 0


def _pressure(
    requests: Sequence[RequestRecord], model: CacheModel, primed: Mapping[int, Sequence[Sequence[int]]]
) -> str:
    """Say why something may have been evicted; empty where all that was ever computed fits at once."""
    if model.capacity_tokens is None:
        return "the engine does not say its KV capacity"
    capacity = ROOM * model.capacity_tokens / model.replicas
    held = sum(len(prompt) for prompts in primed.values() for prompt in prompts)
    needed = dict.fromkeys((request.replica for request in requests), held)
    for request in requests:
        needed[request.replica] += (
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
