from collections.abc import Callable

import pytest

from jobs.measures import sessions
from jobs.replay.data import ReplayData
from jobs.replay.job import RequestRecord

MS = 1_000_000
Make = Callable[..., RequestRecord]


@pytest.fixture
def play(make_record: Make, make_replay: Callable[..., ReplayData]) -> Callable[..., ReplayData]:
    def run(*requests: RequestRecord) -> ReplayData:
        data = make_replay()
        return type(data)(
            summary=data.summary, requests=requests, chunks=data.chunks[:0], concurrency=data.concurrency
        )

    return run


def turn(make: Make, conversation: str, number: int, begin_ms: int, **changes: object) -> RequestRecord:
    at = {name: (begin_ms + value) * MS for name, value in (("first", 20), ("last", 60), ("ended", 61))}
    fields = {"conversation": conversation, "turn": number, "dispatched": begin_ms * MS, **at, **changes}
    return make(**fields)


def test_a_session_lasts_from_its_first_dispatch_to_its_last_token(
    make_record: Make, play: Callable[..., ReplayData]
) -> None:
    # Two turns with 500 ms of thinking in between, and another conversation of one turn.
    data = play(turn(make_record, "a", 0, 0), turn(make_record, "b", 0, 10), turn(make_record, "a", 1, 560))
    found = sessions.complete_sessions(data, {"a": 2, "b": 1})
    assert sessions.session_seconds(found) == pytest.approx([0.620, 0.060])
    assert sessions.session_speeds_tok_s(found) == pytest.approx([200.0, 200.0])


def test_epochs_of_a_conversation_are_sessions_of_their_own(
    make_record: Make, play: Callable[..., ReplayData]
) -> None:
    data = play(turn(make_record, "a", 0, 0), turn(make_record, "a", 0, 100, epoch=1))
    assert len(sessions.complete_sessions(data)) == 2


def test_a_failed_or_missing_turn_leaves_no_session_time(
    make_record: Make, play: Callable[..., ReplayData]
) -> None:
    failed = turn(make_record, "a", 1, 100, error="cut")
    assert sessions.complete_sessions(play(turn(make_record, "a", 0, 0), failed)) == ()
    assert sessions.complete_sessions(play(turn(make_record, "a", 0, 0)), {"a": 2}) == ()
    assert len(sessions.session_seconds(())) == 0
