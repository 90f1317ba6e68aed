"""Every response of the corpus, cut at every byte, gives the one right result."""

import asyncio
import re
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.replay.answer import Answer
from jobs.replay.http import _Link
from jobs.replay.inbox import Inbox, Taker
from tests.jobs.replay.corpus import CORPUS, FAILURES, SUCCESSES, Case

IDS = [case.name for case in CORPUS]


class Options:
    """A socket's options."""

    def setsockopt(self, level: int, name: int, value: int) -> None:
        pass


class Wire(asyncio.Transport):
    """The sending half of a connection whose receiving half the test plays."""

    def __init__(self) -> None:
        super().__init__({"socket": Options()})
        self.closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    abort = close


class Turns(Inbox):
    """An inbox whose turns the test makes: each piece comes in a turn of the event loop of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.due: list[Taker] = []

    def put(self, taker: Taker) -> None:
        self.due.append(taker)

    def serve(self) -> None:
        while self.due:
            self.due.pop(0).take_in()


def receive(case: Case, cuts: Iterable[int]) -> Answer:
    """Return what becomes of the response when the network cuts it there."""
    inbox = Turns()
    link = _Link(inbox)
    link.connection_made(Wire())
    answer = Answer(case.pinned, 0)
    link.send(b"POST", answer)
    edges = [0, *sorted(cuts), len(case.response)]
    for begin, end in pairwise(edges):
        if begin < end and link.usable:
            link.data_received(case.response[begin:end])
            inbox.serve()
    if case.closes:
        link.connection_lost(None)
    return answer


def judge(case: Case, answer: Answer) -> None:
    assert answer.finished.done(), "nobody noticed that the response was over"
    reader = answer.reader
    assert reader.error == case.error, reader.error_detail
    assert case.detail in reader.error_detail
    assert tuple(reader.counts) == case.counts
    assert len(reader.times) == len(case.counts)
    assert list(reader.times) == sorted(reader.times)
    assert (reader.prompt_tokens, reader.cached_tokens) == (case.prompt, case.cached)
    if case.error is None:
        assert reader.completion_tokens == case.pinned == reader.counts[-1]


@pytest.mark.parametrize("case", CORPUS, ids=IDS)
def test_in_one_piece(case: Case) -> None:
    async def play() -> None:
        judge(case, receive(case, ()))

    asyncio.run(play())


@pytest.mark.parametrize("case", CORPUS, ids=IDS)
def test_cut_at_every_byte(case: Case) -> None:
    async def play() -> None:
        for cut in range(1, len(case.response)):
            judge(case, receive(case, (cut,)))
        judge(case, receive(case, range(1, len(case.response))))

    asyncio.run(play())


@pytest.mark.parametrize("case", CORPUS, ids=IDS)
def test_cut_where_lines_end(case: Case) -> None:
    """An engine's writes arrive one by one: whole chunks, and whatever is between them."""
    ends = [match.end() for match in re.finditer(rb"\r\n(?=[0-9a-f]+\r\n)", case.response)]

    async def play() -> None:
        for begin in range(len(ends)):
            judge(case, receive(case, ends[begin:]))

    asyncio.run(play())


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(CORPUS), st.data())
def test_cut_anywhere_any_number_of_times(case: Case, data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(case.response)), max_size=12))

    async def play() -> None:
        judge(case, receive(case, cuts))

    asyncio.run(play())


@pytest.mark.parametrize("case", SUCCESSES, ids=[case.name for case in SUCCESSES])
def test_every_proper_beginning_of_a_success_is_a_failure(case: Case) -> None:
    """The connection breaks at any byte before the end: never a success, whatever has arrived."""

    async def play() -> None:
        for size in range(len(case.response)):
            cut = receive(Case(name="", response=case.response[:size], pinned=case.pinned, closes=True), ())
            whole = cut.finished.done() and cut.reader.error is None
            # What is left out may be nothing but the line ends after [DONE] of a stream without a length.
            assert not whole or (case.closes and not case.response[size:].strip()), size

    asyncio.run(play())


def test_the_corpus_is_as_large_as_it_says() -> None:
    assert len(CORPUS) == len({case.name for case in CORPUS}) == len(SUCCESSES) + len(FAILURES)
    assert (len(SUCCESSES), len(FAILURES)) == (35, 34)
