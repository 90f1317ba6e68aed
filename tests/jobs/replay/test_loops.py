"""Closed loops with think times and ramps, and open loops, as a load process against a real server.

No test bounds a delay from above: whoever runs them may be slow. What must never happen is that something is
sent before it is due, or more of it at once than allowed.
"""

import resource
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from jobs.load import LoadLevel
from jobs.replay.arrivals import schedule_of
from jobs.replay.data import ReplayData
from jobs.replay.job import ReplayJob, RequestRecord
from jobs.replay.launch import run_replay
from jobs.workload.tokens import TokenConversation, TokenWorkload

MS = 1_000_000
Run = Callable[..., ReplayData]


@pytest.fixture
def run(scripted_url: str, make_workload: Callable[..., TokenWorkload], tmp_path: Path) -> Run:
    count = iter(range(100))

    def play(
        level: LoadLevel,
        *,
        script: str = "good",
        gap: float | None = None,
        replicas: int = 1,
        conversations: int = 8,
        **changes: object,
    ) -> ReplayData:
        workload = make_workload(conversations)
        if gap is not None:
            made = tuple(with_gap(conversation, gap) for conversation in workload.conversations)
            workload = replace(workload, conversations=made)
        schedule = schedule_of(workload, level, seed=7)
        fields = {
            "urls": (scripted_url,) * replicas,
            "model": script,
            "workload": "",
            "order": schedule.order,
            "arrivals": schedule.arrivals,
            "concurrency": level.concurrency or 0,
            "ramp": level.ramp,
            "max_inflight": level.max_inflight,
            "salt": "s",
        }
        job = ReplayJob(**{**fields, **changes})  # type: ignore[arg-type]  # fields of the job
        return run_replay(job, workload, tmp_path / str(next(count)))

    return play


def with_gap(conversation: TokenConversation, gap: float) -> TokenConversation:
    # The first turn has a gap too, which nobody plays: there is nothing before it.
    return replace(conversation, turns=tuple(replace(turn, gap=gap) for turn in conversation.turns))


def by_conversation(data: ReplayData) -> dict[tuple[str, int], list[RequestRecord]]:
    found: dict[tuple[str, int], list[RequestRecord]] = {}
    for request in data.requests:
        found.setdefault((request.conversation, request.epoch), []).append(request)
    return found


def arrivals_of(data: ReplayData) -> list[tuple[int, str, int, int]]:
    """(number of the arrival, conversation, epoch, when it was due after the first) in order of arrival."""
    firsts = sorted((request for request in data.requests if not request.turn), key=lambda r: r.user)
    begin = firsts[0].scheduled
    return [(r.user, r.conversation, r.epoch, r.scheduled - begin) for r in firsts]


def most_in_flight(data: ReplayData) -> int:
    events = sorted([(r.dispatched, 1) for r in data.requests] + [(r.ended, -1) for r in data.requests])
    count = peak = 0
    for _, step in events:
        count += step
        peak = max(peak, count)
    return peak


def test_users_are_due_when_they_become_free(run: Run) -> None:
    data = run(LoadLevel(concurrency=2))
    assert not data.open_loop
    assert data.summary.errors == 0
    for user in range(2):
        mine = [request for request in data.requests if request.user == user]
        assert mine[0].scheduled == min(request.scheduled for request in data.requests)
        for before, after in pairwise(mine):
            assert after.scheduled == before.ended <= after.dispatched


def test_users_think_between_turns_and_keep_their_slot(run: Run) -> None:
    data = run(LoadLevel(concurrency=2), gap=0.06)
    assert data.summary.errors == 0
    for user in range(2):
        mine = [request for request in data.requests if request.user == user]
        for before, after in pairwise(mine):
            pause = 60 * MS if after.turn else 0
            assert after.scheduled == before.ended + pause <= after.dispatched
    assert most_in_flight(data) <= 2


def test_a_ramp_spreads_the_users(run: Run) -> None:
    data = run(LoadLevel(concurrency=4, ramp=0.2))
    firsts = [min(r.scheduled for r in data.requests if r.user == user) for user in range(4)]
    assert [first - firsts[0] for first in firsts] == [0, 50 * MS, 100 * MS, 150 * MS]
    assert all(request.dispatched >= request.scheduled for request in data.requests)
    assert data.summary.window_start is not None
    assert data.summary.window_start >= firsts[3]


def test_an_open_loop_sends_when_due_and_not_before(run: Run) -> None:
    level = LoadLevel(rate=40.0, process="constant")
    data = run(level, gap=0.03, replicas=2)
    assert data.open_loop
    assert data.summary.errors == 0
    conversations = by_conversation(data)
    assert len(conversations) == 8
    due = sorted(turns[0].scheduled for turns in conversations.values())
    assert [time - due[0] for time in due] == [number * 25 * MS for number in range(8)]
    for turns in conversations.values():
        first, second = turns
        assert (first.turn, second.turn) == (0, 1)
        assert second.scheduled == first.ended + 30 * MS
        assert (first.user, first.replica) == (second.user, second.replica)
        assert first.replica == first.user % 2
    assert all(request.dispatched >= request.scheduled for request in data.requests)
    assert data.summary.cap_waits == 0


def test_an_open_loop_does_not_wait_for_answers(run: Run) -> None:
    """Eight streams that never end: a closed loop of one user would still be at the first."""
    data = run(LoadLevel(rate=200.0), script="stall", deadline_seconds=1.5)
    firsts = [request for request in data.requests if request.turn == 0]
    assert len(firsts) == 8
    assert max(request.dispatched for request in firsts) < min(request.ended for request in firsts)
    assert {request.error for request in firsts} == {"deadline"}


def test_the_open_window_is_that_of_the_rule(run: Run) -> None:
    level = LoadLevel(rate=100.0, process="constant", duration=0.5)
    data = run(level)
    spans = [
        (turns[0].scheduled, max(turn.ended for turn in turns)) for turns in by_conversation(data).values()
    ]
    first_end = min(end for _, end in spans)
    assert data.summary.window_start == max(end for begin, end in spans if begin <= first_end)
    assert data.summary.window_end == max(begin for begin, _ in spans)


def test_the_cap_holds_and_whoever_waits_for_it_is_counted(run: Run) -> None:
    data = run(LoadLevel(rate=1000.0, process="constant", max_inflight=2))
    assert data.summary.errors == 0
    assert len(data.requests) == 16
    assert most_in_flight(data) == 2
    assert 6 <= data.summary.cap_waits <= 14
    waited = [request for request in data.requests if request.dispatched - request.scheduled > 0]
    assert len(waited) >= data.summary.cap_waits


def test_processes_share_an_open_loop(run: Run) -> None:
    level = LoadLevel(rate=100.0)
    one, two = run(level), run(level, shards=2)
    assert two.summary.processes == 2
    assert {(r.conversation, r.epoch, r.turn, r.user, r.replica) for r in one.requests} == {
        (r.conversation, r.epoch, r.turn, r.user, r.replica) for r in two.requests
    }
    assert arrivals_of(one) == arrivals_of(two)


def test_the_same_job_sends_the_same_at_the_same_times(run: Run) -> None:
    level = LoadLevel(rate=50.0)
    first, second = run(level), run(level, script="final_usage")
    assert arrivals_of(first) == arrivals_of(second)
    dues = [due for _, _, _, due in arrivals_of(first)]
    assert dues == sorted(dues)


def test_more_users_than_a_process_may_open_files(run: Run) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 300:
        pytest.skip("the hard limit of open files is too low to raise the soft one")
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
    try:
        data = run(LoadLevel(concurrency=150), conversations=150)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert data.summary.errors == 0
    assert {request.user for request in data.requests} == set(range(150))


@pytest.mark.parametrize("level", [LoadLevel(rate=0.5, process="constant"), LoadLevel(concurrency=1)])
def test_a_deadline_while_nobody_waits_for_an_answer_shows(run: Run, level: LoadLevel) -> None:
    """The second arrival is due after 2 s, the second turn after 5 s; the replay ends at 0.4 s."""
    data = run(level, gap=5.0, deadline_seconds=0.4)
    assert {request.error for request in data.requests} == {None, "deadline"}
    late = next(request for request in data.requests if request.error == "deadline")
    assert "before it was sent" in late.error_detail
    assert late.send_lag is None
    assert late.scheduled > late.dispatched
    assert data.summary.window_end is None


def test_a_deadline_breaks_off_those_that_wait_for_the_cap(run: Run) -> None:
    level = LoadLevel(rate=1000.0, process="constant", max_inflight=2)
    data = run(level, script="stall", deadline_seconds=0.4)
    assert {request.error for request in data.requests} == {"deadline"}
    assert len(data.requests) == 8
    assert (data.summary.window_start, data.summary.window_end) == (None, None)


def test_a_pinned_conversation_names_the_rank_of_its_place_in_the_order(run: Run) -> None:
    order = tuple((index, 0) for index in (3, 1, 0, 2, 5))
    fields = {"script": "rank", "order": order, "rank_header": "X-data-parallel-rank", "ranks": 2}
    data = run(LoadLevel(concurrency=2), **fields)
    ranks = {f"c{index}": place % 2 for place, (index, _) in enumerate(order)}
    assert {(r.conversation, r.rank) for r in data.requests} == set(ranks.items())
    assert all(r.cached_tokens == 1 + (r.rank or 0) for r in data.requests), "what the server saw"
    assert len(data.requests) == 2 * len(order), "its later turns too"


def test_no_rank_is_named_where_the_engine_chooses(run: Run) -> None:
    data = run(LoadLevel(concurrency=2), script="rank", conversations=2, ranks=2)
    assert {(r.rank, r.cached_tokens) for r in data.requests} == {(None, 0)}
