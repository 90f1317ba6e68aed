"""The usual piece of a streamed answer, told at a glance: one HTTP chunk that is one event of one line."""

from functools import lru_cache

_TAIL = b"\n\n\r\n"
"""How it ends: the event's empty line, and the end of the chunk."""


def whole_event(data: bytes) -> bytes | None:
    """Return the payload of `data` if it is one whole chunk (RFC 9112, 7.1) with one whole event in it.

    That is what engines send for a step, and this is quick and without state. What it does not take, for
    instance sizes in capital letters, is for the HTTP parser and an `EventSplitter`. It may only be asked
    where a chunk begins.
    """
    head = _head(len(data))
    start, end = len(head), len(data) - 4
    if (
        data.startswith(head)
        and data.endswith(_TAIL)
        and data.find(b"\n", start) == end  # (`find` beats `in` here)
        and data.find(b"\r", start) == end + 2
    ):
        return data[start:end]
    return None


@lru_cache(maxsize=8192)
def _head(length: int) -> bytes:
    """Return how a chunk begins that takes `length` bytes in all and holds a `data` line."""
    for digits in range(1, len(f"{length:x}") + 1):
        size = b"%x" % max(0, length - digits - 4)
        if len(size) == digits:
            return size + b"\r\ndata: "
    return b"\0"  # no chunk takes so many bytes: one more would need another digit
