"""Continuous batching on one rank, a step at a time on a clock that the caller owns.

`begin(now)` composes a step and says how long it takes; `finish(step, now)` hands out its tokens. The server
waits the time in between; a test does not. Policy, as serving engines have it: running requests first, in
arrival order, then the queue, while the token budget, the batch limit and the KV blocks last; prompts longer
than the budget are computed in chunks beside the others' decoding; a request that finds no block throws out
the youngest one, which starts again from the head of the queue with what is left of its prefix in the cache.
"""

from collections import deque
from dataclasses import dataclass

from engines.emulator.blocks import BlockPool
from engines.emulator.costs import StepCost
from engines.emulator.draws import accepted
from engines.emulator.load import StepLoad
from engines.emulator.noise import Noise
from engines.emulator.request import Request
from engines.emulator.stats import Stats
from engines.schedule import listed_k


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes of one rank."""

    blocks: int
    """KV blocks."""
    block_size: int
    """Tokens of a block."""
    max_num_seqs: int
    max_num_batched_tokens: int
    k: int
    """Draft length, 0 without a drafter."""
    rates: tuple[float, ...]
    """Probability of each of the K drafts that it is accepted when all before it were."""
    caching: bool = True
    """Whether prefixes are cached."""
    lengths: tuple[tuple[int, int, int], ...] = ()
    """(first, last, K) by the size of the batch; empty: K always."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step in the making."""

    work: tuple[tuple[Request, int], ...]
    """(request, positions computed)."""
    seconds: float
    """Modelled time of the step, noise included."""
    tokens: int
    """Positions computed."""


@dataclass(slots=True, kw_only=True, eq=False)
class Emission:
    """What one request got out of one step."""

    # Not frozen: thousands a second are made, and a frozen one takes twice the time.

    request: Request
    tokens: list[int]
    finished: bool


class Scheduler:
    """One rank: its queue, its batch, its KV blocks and its counters."""

    def __init__(self, limits: Limits, cost: StepCost, noise: Noise, *, started: float = 0.0) -> None:
        self.limits = limits
        self.pool = BlockPool(limits.blocks, caching=limits.caching)
        self.stats = Stats(k=limits.k)
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self._cost = cost
        self._noise = noise
        self._started = started
        self._steps = 0
        self._k = limits.k

    @property
    def busy(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.running or self.waiting)

    def submit(self, request: Request) -> None:
        """Queue a request. It must fit the KV cache alone, which the server checks on arrival."""
        self.waiting.append(request)

    def abort(self, request: Request) -> None:
        """Drop a request whose client left; its blocks are free at once."""
        if request.finished:
            return
        request.finished = True
        self.stats.aborted += 1
        if request in self.running:
            self.running.remove(request)
        else:
            self.waiting.remove(request)
        self._release(request)

    def begin(self, now: float) -> Step | None:
        """Compose the next step; None when there is nothing to do."""
        budget = self.limits.max_num_batched_tokens
        if self.limits.lengths:
            self._k = listed_k(self.limits.lengths, len(self.running))
        work: list[tuple[Request, int]] = []
        preemptions = self.stats.preemptions
        index = 0
        while index < len(self.running) and budget > 0:
            request = self.running[index]
            count = self._positions(request, budget)
            if count and self._grow(request, count):
                work.append((request, count))
                budget -= count
            if index < len(self.running) and self.running[index] is request:
                index += 1
        if self.stats.preemptions == preemptions:
            self._admit(work, budget)
        if not work:
            return None
        load = self._load(work)
        self._steps += 1
        factor = self._noise.factor(self._steps, now - self._started)
        return Step(work=tuple(work), seconds=self._cost.seconds(load) * factor, tokens=load.tokens)

    def finish(self, step: Step, now: float) -> list[Emission]:
        """End `step` at time `now` and return what each of its requests got."""
        self.stats.step_seconds += step.seconds
        self.stats.step_tokens.observe(step.tokens)
        emissions: list[Emission] = []
        for request, count in step.work:
            if request.finished:
                continue
            if request.prefilling:
                request.computed += count
                self._keep(request)
                if request.computed < request.length:
                    continue
                new = 1
            else:
                passed = accepted(request.key, request.generated, self.limits.rates[: count - 1])
                if count > 1:
                    self.stats.draft(passed, count - 1)
                    request.accepted.append(passed)
                    request.drafted += count - 1
                # As vLLM does, acceptance is counted before the answer's length cuts it off.
                new = min(passed + 1, request.max_tokens - request.generated)
                request.computed += new
            emissions.append(self._emit(request, new, now))
        return emissions

    def reset_cache(self) -> bool:
        """Empty the prefix cache; False while requests hold blocks."""
        return self.pool.reset()

    def _positions(self, request: Request, budget: int) -> int:
        if request.prefilling:
            return min(request.length - request.computed, budget)
        return 1 + self._k if 1 + self._k <= budget else 0

    def _grow(self, request: Request, count: int) -> bool:
        """Give `request` the blocks for `count` more positions, at the expense of younger ones if need be."""
        needed = self._blocks_for(request.computed + count) - len(request.blocks)
        while needed > self.pool.free:
            youngest = self.running[-1]
            self._preempt(youngest)
            if youngest is request:
                return False
        if needed > 0:
            request.blocks += self.pool.allocate(needed)
        return True

    def _preempt(self, request: Request) -> None:
        self.running.remove(request)
        self._release(request)
        request.computed = 0
        self.stats.preemptions += 1
        self.waiting.appendleft(request)

    def _admit(self, work: list[tuple[Request, int]], budget: int) -> None:
        while self.waiting and budget > 0 and len(self.running) < self.limits.max_num_seqs:
            request = self.waiting[0]
            # The last token is always computed: its output is what the answer starts from.
            whole = (request.length - 1) // self.limits.block_size
            hits = (
                self.pool.match(request.hashes(whole, self.limits.block_size)) if self.limits.caching else []
            )
            cached = len(hits) * self.limits.block_size
            count = min(request.length - cached, budget)
            needed = self._blocks_for(cached + count) - len(hits)
            if needed + self.pool.idle_among(hits) > self.pool.free:
                return
            self.waiting.popleft()
            self.pool.take(hits)
            request.blocks = hits + self.pool.allocate(needed)
            request.computed = cached
            if request.cached is None:
                request.cached = cached
                self.stats.prefix_queries += request.length
                self.stats.prefix_hits += cached
                self.stats.admitted_cached += cached
            self.running.append(request)
            work.append((request, count))
            budget -= count

    def _load(self, work: list[tuple[Request, int]]) -> StepLoad:
        requests = drafted = decode_tokens = decode_context = 0
        prefill_tokens = prefill_context = pairs = 0
        for request, count in work:
            if request.prefilling:
                prefill_tokens += count
                prefill_context += request.computed
                pairs += count * request.computed + count * (count + 1) // 2
            else:
                requests += 1
                drafted += count > 1
                decode_tokens += count
                decode_context += request.length
        return StepLoad(
            requests=requests,
            drafted=drafted,
            k=self._k,
            decode_tokens=decode_tokens,
            decode_context=decode_context,
            prefill_tokens=prefill_tokens,
            prefill_context=prefill_context,
            prefill_pairs=pairs,
        )

    def _emit(self, request: Request, count: int, now: float) -> Emission:
        stats = self.stats
        if request.last_output is None:
            stats.ttft.observe(now - request.arrived)
            stats.prompt += len(request.prompt)
            stats.prompt_cached += request.cached or 0
        else:
            stats.itl.observe(now - request.last_output)
        stats.generation += count
        tokens = request.emit(count, now)
        self._keep(request)
        if request.generated >= request.max_tokens:
            request.finished = True
            stats.succeeded += 1
            stats.e2e.observe(now - request.arrived)
            self.running.remove(request)
            self._release(request)
        return Emission(request=request, tokens=tokens, finished=request.finished)

    def _keep(self, request: Request) -> None:
        """Put the blocks that have become full into the prefix cache."""
        size = self.limits.block_size
        full = min(request.computed, request.length) // size
        if full == request.kept:
            return
        for index, block_hash in enumerate(request.hashes(full, size)[request.kept :], start=request.kept):
            self.pool.keep(request.blocks[index], block_hash)
        request.kept = full

    def _release(self, request: Request) -> None:
        self.pool.release(request.blocks)
        request.blocks = []
        request.kept = 0

    def _blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.limits.block_size)
