import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.replay.sse import EventSplitter

STREAM = (
    ": keep-alive\n\n"
    'data: {"text": "one"}\n\n'
    "event: response.delta\nid: 7\ndata: "
    + json.dumps({"text": "\u00e4\u2028\u2029\U0001f600"}, ensure_ascii=False)
    + "\n\n"
    "data: first line\ndata: second line\n\n"
    "\n"
    "data:no space\n\n"
    ": only a comment\n: and another\n\n"
    "retry: 100\n\n"
    "data: [DONE]\n\n"
).encode()
PAYLOADS = [
    b'{"text": "one"}',
    json.dumps({"text": "\u00e4\u2028\u2029\U0001f600"}, ensure_ascii=False).encode(),
    b"first line\nsecond line",
    b"no space",
    b"[DONE]",
]


def read(stream: bytes, cuts: list[int]) -> list[bytes]:
    splitter = EventSplitter()
    found: list[bytes] = []
    edges = [0, *sorted(cuts), len(stream)]
    for begin, end in pairwise(edges):
        found += splitter.feed(stream[begin:end])
    assert splitter.rest == b""
    return found


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_every_single_cut_gives_the_same_events(newline: bytes) -> None:
    stream = STREAM.replace(b"\n", newline)
    for cut in range(len(stream) + 1):
        assert read(stream, [cut]) == PAYLOADS, cut


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_byte_by_byte(newline: bytes) -> None:
    stream = STREAM.replace(b"\n", newline)
    assert read(stream, list(range(1, len(stream)))) == PAYLOADS


@given(st.lists(st.integers(0, len(STREAM)), max_size=20))
def test_any_cuts_give_the_same_events(cuts: list[int]) -> None:
    assert read(STREAM, cuts) == PAYLOADS


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=30), max_size=8),
    st.sampled_from(["\n", "\r\n"]),
    st.data(),
)
def test_any_payloads_come_back(texts: list[str], newline: str, data: st.DataObject) -> None:
    stream = "".join(f"data: {text}{newline}{newline}" for text in texts).encode()
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=10))
    assert read(stream, cuts) == [text.encode() for text in texts]


def test_an_unfinished_event_waits() -> None:
    splitter = EventSplitter()
    assert splitter.feed(b'data: {"te') == []
    assert splitter.rest == b'data: {"te'
    assert splitter.feed(b'xt": 1}\n') == []
    assert splitter.feed(b"\n") == [b'{"text": 1}']


def test_a_long_event_in_many_pieces_is_read_once() -> None:
    splitter = EventSplitter()
    piece = b"x" * 1000
    assert splitter.feed(b"data: ") == []
    for _ in range(2000):
        assert splitter.feed(piece) == []
    [payload] = splitter.feed(b"\n\n")
    assert payload == piece * 2000
