"""The glance at a piece of a stream agrees with what a chunk and an event are."""

import pytest

from jobs.replay.chunked import whole_event


def chunk(event: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(event), event)


def test_a_chunk_of_any_size_with_one_event_gives_its_payload() -> None:
    for size in range(5000):
        payload = b"x" * size
        assert whole_event(chunk(b"data: %b\n\n" % payload)) == payload


EVENT = b'data: {"a": 1}\n\n'


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"0\r\n\r\n",
        EVENT,
        chunk(EVENT)[:-1],
        chunk(EVENT) + b"0\r\n\r\n",
        chunk(EVENT) * 2,
        chunk(EVENT * 2),
        chunk(EVENT[:-1]),
        chunk(b'data: {"a":\n 1}\n\n'),
        chunk(b'data: {"a":\r 1}\n\n'),
        chunk(b'data: {"a": 1}\r\n\r\n'),
        chunk(b'data:{"a": 1}\n\n'),
        chunk(b": comment\n\n"),
        b"0" + chunk(EVENT),
        chunk(EVENT).replace(b"10", b"0x10", 1),
        chunk(EVENT).replace(b"10", b"11", 1),
        chunk(EVENT).replace(b"10", b"10;name=value", 1),
        chunk(b"data: %b\n\n" % (b"x" * 163)).upper(),
    ],
)
def test_what_is_not_exactly_that_is_left_to_the_parsers(data: bytes) -> None:
    assert whole_event(data) is None


def test_no_length_is_taken_for_a_chunk_that_cannot_have_it() -> None:
    for length in (21, 262, 4103):
        for size in (length - 5, length - 6, length - 7, length - 8):
            body = b"data: " + b"x" * (length - len(b"%x" % size) - 2 - 6 - 4) + b"\n\n\r\n"
            data = b"%x\r\n%b" % (size, body)
            assert len(data) == length
            assert whole_event(data) is None
