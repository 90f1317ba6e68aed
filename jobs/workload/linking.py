"""Which requests of a trace without sessions belong to one conversation: told by their shared blocks."""

from array import array

RULE = (
    "a request continues an earlier one if all whole blocks of that one are the beginning of its own prompt, "
    "if no other conversation had brought the last of these blocks before (so that a system prompt, which "
    "many share, links nothing), and if nothing has continued it yet; of several the one with most blocks. "
    "Every other request starts a conversation"
)
"""The rule of `links`, for people."""

_PRIME = (1 << 61) - 1
_BASE = 0x1F3D5B79A2C4E687 % _PRIME
_UNSEEN = -1


def links(blocks: "array[int]", ends: "array[int]", wholes: "array[int]") -> "array[int]":
    """Return for each request the one that continues it, or -1.

    Time is linear in the blocks; memory beside the arguments is one entry a request.

    Args:
        blocks: Hash ids of all requests, one request after another.
        ends: End of each request's ids in `blocks`.
        wholes: Whole blocks of each request: all but a partly filled last one.
    """
    count = len(ends)
    # First request that begins with these whole blocks, for what is all whole blocks of some request. The key
    # is a polynomial over the ids: only a filter, for a match is confirmed block by block.
    first: dict[int, int] = {}
    for row in range(count):
        start = ends[row - 1] if row else 0
        key = 0
        for position in range(start, start + wholes[row]):
            key = (key * _BASE + blocks[position]) % _PRIME
        if wholes[row]:
            first[key] = _UNSEEN
    following = array("i", [-1]) * count
    for row in range(count):
        start = ends[row - 1] if row else 0
        key = 0
        before = -1
        for length in range(1, wholes[row] + 1):
            key = (key * _BASE + blocks[start + length - 1]) % _PRIME
            known = first.get(key)
            if known is None:
                continue
            if known == _UNSEEN:
                first[key] = row
            elif wholes[known] == length and following[known] < 0:
                before = known
        if before >= 0:
            begin = ends[before - 1] if before else 0
            length = wholes[before]
            if blocks[begin : begin + length] == blocks[start : start + length]:
                following[before] = row
                if wholes[row] == length:
                    first[key] = row  # the same blocks again: the conversation goes on from here
    return following
