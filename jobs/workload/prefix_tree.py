"""All prompts of a workload as one tree of blocks: which prefixes came before, and whose they are.

An edge holds the blocks between two forks, so a trace of millions of blocks takes eight bytes a block and a
few objects a prompt, and a prompt that grows turn by turn is compared at the speed of array comparisons.
"""

from array import array
from collections.abc import Hashable
from dataclasses import dataclass, field

from jobs.workload.bound import common_prefix

_NONE, _SHARED = 0, -1


@dataclass(slots=True)
class _Edge:
    """Blocks that are always met together, and what goes on after them."""

    blocks: "array[int]"
    children: "dict[int, _Edge] | None" = None
    """First block -> edge."""
    first_tokens: int = _NONE
    """Tokens that the only first prompt through this edge has in it; `_SHARED` where several go through."""


@dataclass(slots=True)
class PrefixTree:
    """The prompts that were added so far."""

    first_prompt_tokens: int = 0
    """Tokens of all prompts that were added as first ones."""
    shared_first_tokens: int = 0
    """Those of them, in blocks, that another first prompt starts with too."""
    _roots: dict[Hashable, _Edge] = field(default_factory=dict)

    def add(self, blocks: "array[int]", *, scope: Hashable, block_size: int, tokens: int, first: bool) -> int:
        """Add a prompt and return how many of its blocks, from the first on, came before.

        Args:
            blocks: Content of its blocks in order: 64-bit integers, equal where the content is.
            scope: Prompts of different scopes have nothing in common.
            block_size: Tokens of a block; the last one may hold fewer.
            tokens: Length of the prompt.
            first: Whether it is a conversation's first.
        """
        edge = self._roots.get(scope)
        if edge is None:
            edge = self._roots[scope] = _Edge(array("q"))
        if first:
            self.first_prompt_tokens += tokens
        known = place = 0
        while place < len(blocks):
            found = edge.children.get(blocks[place]) if edge.children else None
            if found is None:
                found = _Edge(blocks[place:])
                edge.children = edge.children or {}
                edge.children[blocks[place]] = found
            else:
                same = common_prefix(found.blocks, blocks[place : place + len(found.blocks)])
                if same < len(found.blocks):
                    _split(found, same, block_size)
                known += same
            if first:
                end = min(tokens, (place + len(found.blocks)) * block_size)
                self._pass(found, end - place * block_size)
            place += len(found.blocks)
            edge = found
        return known

    def _pass(self, edge: _Edge, tokens: int) -> None:
        """Note that one more first prompt goes through `edge`, with so many tokens in it."""
        if edge.first_tokens == _NONE:
            edge.first_tokens = tokens
            return
        if edge.first_tokens != _SHARED:
            self.shared_first_tokens += edge.first_tokens
            edge.first_tokens = _SHARED
        self.shared_first_tokens += tokens


def _split(edge: _Edge, at: int, block_size: int) -> None:
    """Cut `edge` after `at` of its blocks; the rest becomes its only child."""
    rest = _Edge(edge.blocks[at:], edge.children, edge.first_tokens)
    if edge.first_tokens > 0:
        rest.first_tokens = edge.first_tokens - at * block_size
        edge.first_tokens = at * block_size
    edge.blocks = edge.blocks[:at]
    edge.children = {rest.blocks[0]: rest}
