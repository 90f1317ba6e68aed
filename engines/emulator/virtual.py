"""A closed loop of users on emulated ranks in virtual time: minutes in a second, exactly repeatable.

It tells what the emulator will show before anything is started, and lets a test look at the scheduler alone.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from engines.emulator.draws import combine
from engines.emulator.request import Request
from engines.emulator.router import Router
from engines.emulator.scheduler import Scheduler, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualTurn:
    """One request of a conversation."""

    prompt: tuple[int, ...]
    output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One request as its user saw it; seconds on the virtual clock."""

    conversation: int
    turn: int
    rank: int
    sent: float
    first: float
    last: float
    prompt_tokens: int
    cached_tokens: int
    first_tokens: int
    """Tokens of the first step that gave any."""
    output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """All requests of a finished closed loop."""

    seconds: float
    """From the first request to the last token."""
    served: tuple[Served, ...]

    @property
    def output_tokens(self) -> int:
        """Generated tokens."""
        return sum(one.output_tokens for one in self.served)

    @property
    def output_speed(self) -> float:
        """Output tokens/s of the whole fixed work."""
        return self.output_tokens / self.seconds

    @property
    def total_speed(self) -> float:
        """Prompt and output tokens/s of the whole fixed work."""
        return (self.output_tokens + sum(one.prompt_tokens for one in self.served)) / self.seconds

    @property
    def user_speed(self) -> float:
        """Tokens/s that a user sees after the first ones, pooled."""
        spoken = [one for one in self.served if one.last > one.first]
        tokens = sum(one.output_tokens - one.first_tokens for one in spoken)
        return tokens / sum(one.last - one.first for one in spoken)

    @property
    def hit_rate(self) -> float:
        """Share of the prompt tokens that came from the prefix cache."""
        return sum(one.cached_tokens for one in self.served) / sum(one.prompt_tokens for one in self.served)


def play(
    ranks: Sequence[Scheduler], conversations: Sequence[Sequence[VirtualTurn]], *, users: int, seed: int = 0
) -> Replay:
    """Let `users` users play `conversations` in order; each turn goes to the least loaded of `ranks`."""
    return _Loop(ranks, conversations, seed).run(users)


class _Loop:
    def __init__(
        self, ranks: Sequence[Scheduler], conversations: Sequence[Sequence[VirtualTurn]], seed: int
    ) -> None:
        self._ranks = ranks
        self._conversations = conversations
        self._seed = seed
        self._next = 0
        self._router = Router(ranks)
        self._events: list[tuple[float, int, Step]] = []
        self._stepping = [False] * len(ranks)
        self._open: dict[Request, tuple[int, int, int]] = {}
        self._first: dict[Request, tuple[float, int]] = {}
        self._served: list[Served] = []

    def run(self, users: int) -> Replay:
        for _ in range(users):
            self._take(0.0)
        self._start_idle(0.0)
        now = 0.0
        while self._events:
            now, rank, step = heapq.heappop(self._events)
            self._stepping[rank] = False
            for emission in self._ranks[rank].finish(step, now):
                self._first.setdefault(emission.request, (now, len(emission.tokens)))
                if emission.finished:
                    self._end(emission.request, now)
            self._start_idle(now)
        return Replay(seconds=now, served=tuple(self._served))

    def _start_idle(self, now: float) -> None:
        for index, rank in enumerate(self._ranks):
            if not self._stepping[index] and (step := rank.begin(now)) is not None:
                self._stepping[index] = True
                heapq.heappush(self._events, (now + step.seconds, index, step))

    def _take(self, now: float) -> None:
        if self._next < len(self._conversations):
            self._next += 1
            self._send(self._next - 1, 0, now)

    def _send(self, conversation: int, turn: int, now: float) -> None:
        what = self._conversations[conversation][turn]
        request = Request(
            id=f"{conversation}-{turn}",
            prompt=list(what.prompt),
            max_tokens=what.output_tokens,
            key=combine(self._seed, conversation, turn),
            arrived=now,
        )
        rank = self._router.pick(now)
        self._open[request] = (conversation, turn, rank)
        self._ranks[rank].submit(request)

    def _end(self, request: Request, now: float) -> None:
        conversation, turn, rank = self._open.pop(request)
        first, first_tokens = self._first.pop(request)
        self._served.append(
            Served(
                conversation=conversation,
                turn=turn,
                rank=rank,
                sent=request.arrived,
                first=first,
                last=now,
                prompt_tokens=len(request.prompt),
                cached_tokens=request.cached or 0,
                first_tokens=first_tokens,
                output_tokens=request.generated,
            )
        )
        if turn + 1 < len(self._conversations[conversation]):
            self._send(conversation, turn + 1, now)
        else:
            self._take(now)
