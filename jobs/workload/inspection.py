"""Statistics of a workload: lengths, turns, gaps, and what a prefix cache could serve of it.

The cache is ideal: endless, empty at the start, and it keeps whole blocks. Conversations are played one after
another in the order of their file, so what a turn finds in the cache is all that came before it.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from jobs.workload.prefix_tree import PrefixTree


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnShape:
    """What statistics need of one request."""

    input_tokens: int
    """Length of the whole prompt."""
    output_tokens: int | None
    """Length of the reply; None where the workload has none."""
    gap: float | None = None
    """Seconds from the end of the previous reply to this request; None where unknown."""
    blocks: "array[int] | None" = None
    """The content of each block of the prompt in order, as 64-bit integers that are equal where the content
    is; None where unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationShape:
    """What statistics need of one conversation."""

    turns: Sequence[TurnShape]
    block_size: int
    """Tokens of a block."""
    scope: str = ""
    """Blocks of different scopes are different, whatever they are called."""
    start: float | None = None
    """Arrival in seconds; None where unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How a quantity is spread; percentiles by linear interpolation (Hyndman and Fan's type 7)."""

    count: int
    minimum: float
    median: float
    mean: float
    p95: float
    maximum: float

    @classmethod
    def of(cls, values: "array[int] | array[float]") -> "Spread | None":
        """Return the spread of `values`; None of nothing."""
        if not values:
            return None
        numbers = np.asarray(values)
        median, p95 = np.percentile(numbers, (50, 95))
        return cls(
            count=len(numbers),
            minimum=float(numbers.min()),
            median=float(median),
            mean=float(numbers.mean()),
            p95=float(p95),
            maximum=float(numbers.max()),
        )


@dataclass(slots=True, kw_only=True)
class TurnReuse:
    """Prompt tokens of one turn number over all conversations."""

    conversations: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """What the ideal cache serves: whole blocks that came before, never a prompt's last token."""


@dataclass(slots=True, kw_only=True)
class Inspection:
    """Takes conversations one after another and keeps what their statistics need, not the conversations."""

    turns: "array[int]" = field(default_factory=lambda: array("q"))
    """Turns of each conversation."""
    input_tokens: "array[int]" = field(default_factory=lambda: array("q"))
    """Prompt length of each request."""
    output_tokens: "array[int]" = field(default_factory=lambda: array("q"))
    """Reply length of each request that has one."""
    context_tokens: "array[int]" = field(default_factory=lambda: array("q"))
    """Longest prompt and reply of each conversation: the context it needs."""
    gaps: "array[float]" = field(default_factory=lambda: array("d"))
    """Known gaps in seconds."""
    starts: "array[float]" = field(default_factory=lambda: array("d"))
    """Known arrivals in seconds."""
    by_turn: list[TurnReuse] = field(default_factory=list)
    """Reuse by number of the turn, of conversations whose content is known."""
    block_sizes: set[int] = field(default_factory=set)
    """Block sizes that content was compared in."""
    blocks: int = 0
    """Blocks of all prompts, a last one that is not full included where the workload names it."""
    repeated_blocks: int = 0
    """Those of them that came before."""
    tree: PrefixTree = field(default_factory=PrefixTree)
    """All prompts whose content is known."""

    def add(self, conversation: ConversationShape) -> None:
        """Take one conversation into account."""
        self.turns.append(len(conversation.turns))
        if conversation.start is not None:
            self.starts.append(conversation.start)
        needed = 0
        for number, turn in enumerate(conversation.turns):
            self.input_tokens.append(turn.input_tokens)
            if turn.output_tokens is not None:
                self.output_tokens.append(turn.output_tokens)
            if turn.gap is not None:
                self.gaps.append(turn.gap)
            needed = max(needed, turn.input_tokens + (turn.output_tokens or 0))
            if turn.blocks is not None:
                self._reuse(conversation, number, turn.input_tokens, turn.blocks)
        self.context_tokens.append(needed)

    @property
    def conversations(self) -> int:
        """Conversations seen."""
        return len(self.turns)

    @property
    def requests(self) -> int:
        """Requests seen."""
        return len(self.input_tokens)

    @property
    def hit_rate(self) -> float | None:
        """Share of the prompt tokens that the ideal cache serves; None where no content is known."""
        prompt = sum(turn.prompt_tokens for turn in self.by_turn)
        return sum(turn.cached_tokens for turn in self.by_turn) / prompt if prompt else None

    @property
    def block_hit_rate(self) -> float | None:
        """Share of all blocks that came before, as traces of hashes count it: 1 - distinct / all."""
        return self.repeated_blocks / self.blocks if self.blocks else None

    @property
    def first_turn_sharing(self) -> float | None:
        """Share of the first turns' prompt tokens, in blocks, that another conversation also starts with."""
        tree = self.tree
        return tree.shared_first_tokens / tree.first_prompt_tokens if tree.first_prompt_tokens else None

    def _reuse(self, conversation: ConversationShape, number: int, tokens: int, blocks: "array[int]") -> None:
        size = conversation.block_size
        self.block_sizes.add(size)
        known = self.tree.add(
            blocks, scope=(conversation.scope, size), block_size=size, tokens=tokens, first=number == 0
        )
        self.blocks += len(blocks)
        self.repeated_blocks += known
        while len(self.by_turn) <= number:
            self.by_turn.append(TurnReuse())
        turn = self.by_turn[number]
        turn.conversations += 1
        turn.prompt_tokens += tokens
        turn.cached_tokens += min(known, (tokens - 1) // size) * size
