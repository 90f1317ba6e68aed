"""Filler: the tokens that stand for a block of a trace, equal in every process and on every machine.

Light: the load process makes its prompts with this module.
"""

import hashlib
import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

RULES = "specload-filler-1"
"""Name of the rules below; raise it when they would give other tokens."""
MAX_VOCABULARY = 8192
"""A vocabulary is cut to so many tokens: prompts need variety, not the whole tokenizer."""
_DRAWS = 1 << 16
"""Values of one draw (two bytes)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filler:
    """Turns (scope, hash id) into token ids.

    The bytes of SHAKE-256 over rules, scope and id are read as little-endian 16-bit draws, and each draw
    picks a token of the vocabulary. The first n tokens of a block do not depend on its length, so a partly
    filled block is the beginning of the whole one.
    """

    vocabulary: Sequence[int]
    """Ids of plain tokens of the target's tokenizer, 1 to `MAX_VOCABULARY` of them, ascending."""
    _table: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """Token of each draw."""

    def __post_init__(self) -> None:
        words = array("I", self.vocabulary)
        assert 0 < len(words) <= MAX_VOCABULARY
        object.__setattr__(self, "vocabulary", words)
        repeated = words.tolist() * -(-_DRAWS // len(words))
        object.__setattr__(self, "_table", tuple(repeated[:_DRAWS]))

    def __reduce__(self) -> tuple[object, ...]:
        # The table is made anew where the filler arrives: it is larger than everything else of it.
        return (_filler, (self.vocabulary,))

    def tokens(self, scope: str, block: int, count: int) -> list[int]:
        """Return the first `count` tokens of block `block` of `scope`."""
        seed = f"{RULES}\n{block}\n{scope}".encode("utf-8", "surrogatepass")
        draws = array("H", hashlib.shake_256(seed).digest(2 * count))
        if sys.byteorder == "big":
            draws.byteswap()
        return list(map(self._table.__getitem__, draws))

    def fill(self, scope: str, blocks: Sequence[int], block_size: int, count: int) -> list[int]:
        """Return `count` tokens: whole blocks of `block_size`, and what is left of the last one."""
        tokens: list[int] = []
        for block in blocks:
            tokens += self.tokens(scope, block, min(block_size, count - len(tokens)))
        assert len(tokens) == count
        return tokens


def filler_of(plain: Sequence[int]) -> Filler:
    """Return the filler of a tokenizer's plain tokens: all, or `MAX_VOCABULARY` of them evenly spaced."""
    ordered = sorted(plain)
    count = min(len(ordered), MAX_VOCABULARY)
    return Filler(vocabulary=[ordered[index * len(ordered) // count] for index in range(count)])


def _filler(vocabulary: Sequence[int]) -> Filler:
    return Filler(vocabulary=vocabulary)
