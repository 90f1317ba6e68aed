"""Keys of prompt prefixes: equal for equal prefixes of whole blocks, whoever holds them.

A key is the 64-bit sum of the prefix' tokens, each mixed with its place. Two different prefixes have the same
key with a chance of 1 in 2^64: for comparing what an engine reports, that is never.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from jobs.workload.tokens import TokenConversation, TokenWorkload

Words = NDArray[np.uint64]
_NOTHING: Words = np.empty(0, np.uint64)


def prefix_keys(prompt: Sequence[int], block_size: int) -> Words:
    """Return the key of every prefix of whole blocks, the shortest first."""
    return _at_ends(extended(_NOTHING, 0, np.asarray(prompt, dtype=np.uint64)), block_size)


def turn_keys(
    workload: TokenWorkload, conversation: TokenConversation, block_size: int
) -> Iterator[tuple[int, Words]]:
    """Yield (keys kept of the turn before, keys) of each turn of a conversation.

    Time is linear in the tokens that are new in each turn.
    """
    sums = _NOTHING
    for turn, prompt in zip(conversation.turns, workload.prompts(conversation), strict=True):
        sums = extended(sums, turn.keep, np.asarray(prompt[turn.keep :], dtype=np.uint64))
        yield turn.keep // block_size, _at_ends(sums, block_size)


def extended(sums: Words, keep: int, fresh: Words) -> Words:
    """Return the keys of all prefixes of a sequence: the first `keep` of `sums`, and `fresh` elements after.

    Args:
        sums: Keys of the prefixes of the sequence before, one an element.
        keep: How many of its elements this sequence starts with.
        fresh: The elements after them: tokens, or whatever else prefixes are told apart by.
    """
    places = np.arange(keep, keep + len(fresh), dtype=np.uint64)
    base = sums[keep - 1 : keep] if keep else np.zeros(1, np.uint64)
    added = np.cumsum(mixed(fresh ^ mixed(places)), dtype=np.uint64)
    return np.concatenate((sums[:keep], base + added))


def repeated(parts: Sequence[Words]) -> Words:
    """Return the keys that are in more than one of `parts`, ascending; within a part each is there once."""
    if not parts:
        return np.empty(0, np.uint64)
    keys = np.sort(np.concatenate(parts))
    return np.unique(keys[1:][keys[1:] == keys[:-1]])


def leading(keys: Words, known: Words) -> int:
    """Return how many of `keys`, from the first on, are among the ascending `known`."""
    if not len(known):
        return 0
    place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    missing = np.flatnonzero(known[place] != keys)
    return int(missing[0]) if len(missing) else len(keys)


def _at_ends(sums: Words, block_size: int) -> Words:
    return sums[block_size - 1 :: block_size]


def mixed(words: Words) -> Words:
    """Return each word with its bits mixed (the finaliser of SplitMix64), from another start than zero."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
