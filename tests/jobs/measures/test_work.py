from collections.abc import Callable
from dataclasses import replace

import pytest

from jobs.measures import work
from jobs.replay.data import ReplayData

MS = 1_000_000
Make = Callable[..., ReplayData]


def test_little_in_flight_is_c_in_a_closed_loop(make_replay: Make) -> None:
    data = make_replay(users=16, rounds=6)
    window = work.steady_window(data.summary)
    assert window is not None
    assert work.in_flight(data, window) == pytest.approx(16, rel=0.02)
    # and the same as throughput times residence time
    ended = sum(window[0] <= request.ended < window[1] for request in data.requests)
    assert ended / work.seconds(window) * 0.061 == pytest.approx(work.in_flight(data, window), rel=0.01)


def test_prompts_count_at_the_first_token_and_output_chunk_by_chunk(make_replay: Make) -> None:
    data = make_replay(users=1, rounds=3, pause=0)
    # From the second chunk of round 0 to the third chunk of round 1, that one excluded.
    span = (30 * MS, (61 + 40) * MS)
    done = work.work_in(data, span)
    assert done.prompt == 100
    assert done.cached == 30
    assert done.output == 4 * 2 + 2 * 2
    assert done.total == 112
    assert done.computed == 82


def test_windows_that_touch_share_no_token(make_replay: Make) -> None:
    data = make_replay()
    start, end = work.makespan(data.summary)
    middle = (start + end) // 2
    parts = [work.work_in(data, (start, middle)), work.work_in(data, (middle, end + 1))]
    whole = work.whole_work(data)
    assert sum(part.prompt for part in parts) == whole.prompt == 2000
    assert sum(part.output for part in parts) == whole.output == 200


def test_failed_requests_do_no_work_but_are_in_flight(make_replay: Make) -> None:
    good = make_replay()
    requests = tuple(replace(r, error="cut") if r.user == 0 else r for r in good.requests)
    data = replace(good, requests=requests)
    assert work.whole_work(data).output == 150
    assert work.work_in(data, (0, 10**12)).output == 150
    window = work.steady_window(data.summary)
    assert window is not None
    assert work.in_flight(data, window) == work.in_flight(good, window)


def test_total_times_uncached_share_is_computed(make_replay: Make) -> None:
    done = work.whole_work(make_replay())
    assert done.computed is not None
    assert done.computed == done.total - 20 * 30
    assert done.total * (done.computed / done.total) == done.computed


def test_unreported_cached_tokens_make_computed_unknown(make_replay: Make) -> None:
    done = work.whole_work(make_replay(cached_tokens=None))
    assert done.cached is None
    assert done.computed is None
    assert work.rate(done.computed, (0, 1)) is None


@pytest.mark.parametrize(("start", "end"), [(None, 5), (5, None), (None, None), (5, 5), (6, 5)])
def test_an_empty_window_is_none(make_replay: Make, start: int | None, end: int | None) -> None:
    summary = replace(make_replay().summary, window_start=start, window_end=end)
    assert work.steady_window(summary) is None


def test_drain_is_what_comes_after_the_window(make_replay: Make) -> None:
    summary = replace(make_replay().summary, started=0, ended=100, window_start=10, window_end=75)
    assert work.drain_share(summary) == 0.25
    assert work.drain_share(replace(summary, window_end=101)) == 0.0
    assert work.drain_share(replace(summary, window_end=None)) is None


def test_the_aggregate_rate_is_c_times_the_rate_of_a_user(make_replay: Make) -> None:
    data = make_replay(users=8, rounds=6)
    window = work.steady_window(data.summary)
    assert window is not None
    aggregate = work.rate(work.work_in(data, window).total, window)
    own = replace(
        data, requests=tuple(r if r.user == 3 else replace(r, error="other") for r in data.requests)
    )
    single = work.rate(work.work_in(own, window).total, window)
    assert aggregate is not None
    assert single is not None
    assert aggregate == pytest.approx(8 * single, rel=0.02)


def test_thinking_is_from_an_answer_to_when_the_next_turn_is_due(make_replay: Make) -> None:
    data = make_replay(users=1, rounds=2, pause=39 * MS)
    first, second = (
        replace(request, conversation="c", turn=turn) for turn, request in enumerate(data.requests)
    )
    second = replace(second, scheduled=second.dispatched - 9 * MS)
    talk = replace(data, requests=(first, second))
    span = (0, 200 * MS)
    assert work.thinking(talk, span) == pytest.approx(30 / 200)  # 9 ms of the 39 are the client's lateness
    assert work.thinking(talk, (61 * MS, 91 * MS)) == pytest.approx(1.0)
    apart = replace(talk, requests=(first, replace(second, conversation="d")))
    assert work.thinking(apart, span) == 0.0
