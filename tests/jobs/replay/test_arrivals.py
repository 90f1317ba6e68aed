"""Orders and arrivals: equal for equal seeds, sorted, at the mean rate that was asked for."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.digest import digest
from jobs.errors import WorkloadError
from jobs.load import CONSTANT, POISSON, TRACE, LoadLevel
from jobs.replay.arrivals import Schedule, mean_rate, schedule_of, warmup_users
from jobs.workload.conversation import RECORDED
from jobs.workload.order import replay_order
from jobs.workload.tokens import TokenConversation, TokenTurn, TokenWorkload

ROOT = Path(__file__).parents[3]
S = 1_000_000_000


def workload(starts: Sequence[float | None]) -> TokenWorkload:
    turn = TokenTurn(keep=0, suffix=(1, 2), output_tokens=3)
    made = [TokenConversation(id=f"c{i}", turns=(turn,), start=start) for i, start in enumerate(starts)]
    return TokenWorkload(name="made", conversations=tuple(made), validity=RECORDED, tokenizer="none")


def arrivals(schedule: Schedule) -> tuple[int, ...]:
    assert schedule.arrivals is not None
    assert len(schedule.arrivals) == len(schedule.order)
    return schedule.arrivals


def test_a_closed_loop_plays_the_shared_order() -> None:
    made = workload([None] * 8)
    schedule = schedule_of(made, LoadLevel(concurrency=2, ramp=3.0), seed=5)
    assert schedule == Schedule(order=replay_order(made, concurrency=2, seed=5), arrivals=None)


def test_constant_arrivals_are_multiples_of_the_gap() -> None:
    schedule = schedule_of(workload([None] * 5), LoadLevel(rate=4.0, process=CONSTANT), seed=1)
    assert arrivals(schedule) == (0, S // 4, S // 2, 3 * S // 4, S)
    assert sorted(schedule.order) == [(index, 0) for index in range(5)]


@settings(max_examples=40, deadline=None)
@given(
    size=st.integers(1, 30),
    rate=st.floats(0.01, 1000.0),
    process=st.sampled_from([POISSON, CONSTANT]),
    seed=st.integers(0, 2**63 - 1),
)
def test_one_pass_plays_everything_once_in_ascending_time(
    size: int, rate: float, process: str, seed: int
) -> None:
    level = LoadLevel(rate=rate, process=process)
    schedule = schedule_of(workload([None] * size), level, seed=seed)
    times = arrivals(schedule)
    assert sorted(schedule.order) == [(index, 0) for index in range(size)]
    assert list(times) == sorted(times)
    assert times[0] >= 0
    assert schedule == schedule_of(workload([None] * size), level, seed=seed)


@settings(max_examples=25, deadline=None)
@given(rate=st.floats(1.0, 50.0), duration=st.floats(2.0, 20.0), seed=st.integers(0, 2**32))
def test_a_duration_bounds_the_arrivals_and_repeats_the_workload(
    rate: float, duration: float, seed: int
) -> None:
    level = LoadLevel(rate=rate, process=CONSTANT, duration=duration)
    schedule = schedule_of(workload([None] * 7), level, seed=seed)
    times = arrivals(schedule)
    assert times[-1] < duration * S <= times[-1] + S / rate + 1
    epochs = [epoch for _, epoch in schedule.order]
    assert epochs == [number // 7 for number in range(len(times))]
    longer = replace(level, duration=2 * duration)
    assert arrivals(schedule_of(workload([None] * 7), longer, seed=seed))[: len(times)] == times


def test_poisson_arrivals_have_the_mean_and_the_spread_of_their_rate() -> None:
    times = arrivals(schedule_of(workload([None] * 20_000), LoadLevel(rate=5.0), seed=3))
    gaps = [(after - before) / S for before, after in zip((0, *times), times, strict=False)]
    mean = sum(gaps) / len(gaps)
    variance = sum((gap - mean) ** 2 for gap in gaps) / len(gaps)
    # Four standard errors: 1 / sqrt(n) of the mean, sqrt(8 / n) of the variance of exponential gaps.
    assert mean == pytest.approx(1 / 5, rel=4 / 20_000**0.5)
    assert variance == pytest.approx(1 / 25, rel=4 * (8 / 20_000) ** 0.5)


def test_levels_and_seeds_have_arrivals_of_their_own() -> None:
    made = workload([None] * 50)
    first = schedule_of(made, LoadLevel(rate=1.0), seed=1)
    assert first != schedule_of(made, LoadLevel(rate=1.0), seed=2)
    assert arrivals(first) == tuple(
        pytest.approx(2 * time, abs=1) for time in arrivals(schedule_of(made, LoadLevel(rate=2.0), seed=1))
    )


def test_a_trace_is_played_at_its_own_times() -> None:
    made = workload([10.0, 12.5, 11.0, 12.5])
    schedule = schedule_of(made, LoadLevel(rate_scale=1.0), seed=1)
    assert schedule.order == ((0, 0), (2, 0), (1, 0), (3, 0))
    assert arrivals(schedule) == (0, S, 5 * S // 2, 5 * S // 2)
    assert schedule == schedule_of(made, LoadLevel(rate_scale=1.0), seed=2)


@settings(max_examples=30, deadline=None)
@given(starts=st.lists(st.floats(0.0, 1e5), min_size=1, max_size=30), scale=st.floats(0.1, 50.0))
def test_a_scale_divides_the_times_and_keeps_the_order(starts: list[float], scale: float) -> None:
    once = schedule_of(workload(starts), LoadLevel(rate_scale=1.0), seed=0)
    scaled = schedule_of(workload(starts), LoadLevel(rate_scale=scale), seed=0)
    assert scaled.order == once.order
    assert list(arrivals(scaled)) == pytest.approx(
        [time / scale for time in arrivals(once)], abs=1 + 1 / scale
    )
    halved = schedule_of(workload(starts), LoadLevel(rate_scale=2.0), seed=0)
    assert list(arrivals(halved)) == pytest.approx([time / 2 for time in arrivals(once)], abs=1)


def test_a_duration_cuts_a_trace_off() -> None:
    level = LoadLevel(rate_scale=2.0, duration=1.5)
    schedule = schedule_of(workload([0.0, 1.0, 2.9, 3.0, 9.0]), level, seed=0)
    assert schedule.order == ((0, 0), (1, 0), (2, 0))
    assert arrivals(schedule) == (0, S // 2, round(1.45 * S))


def test_a_scaled_trace_can_come_at_even_gaps() -> None:
    level = LoadLevel(rate_scale=2.0, process=CONSTANT)
    made = workload([5.0, 5.1, 5.2, 9.0, 15.0])  # 4 gaps in 10 s
    assert mean_rate(level, made) == pytest.approx(0.8)
    assert arrivals(schedule_of(made, level, seed=0)) == tuple(round(i / 0.8 * S) for i in range(5))


def test_what_has_no_arrivals_is_refused() -> None:
    with pytest.raises(WorkloadError, match=r"no arrival time for 2 of its 3 conversations.*load\.rate"):
        schedule_of(workload([1.0, None, None]), LoadLevel(rate_scale=1.0), seed=0)
    with pytest.raises(WorkloadError, match="at one time"):
        mean_rate(LoadLevel(rate_scale=1.0, process=POISSON), workload([1.0, 1.0]))
    with pytest.raises(WorkloadError, match=r"load\.duration=0\.001"):
        schedule_of(workload([None]), LoadLevel(rate=0.1, duration=0.001), seed=0)


def test_a_trace_at_one_time_arrives_at_once() -> None:
    schedule = schedule_of(workload([1.0, 1.0]), LoadLevel(rate_scale=1.0, process=TRACE), seed=0)
    assert arrivals(schedule) == (0, 0)


def test_users_of_a_warm_up() -> None:
    made = workload([0.0, 1.0, 10.0])
    assert warmup_users(LoadLevel(concurrency=16), made) == 16
    assert warmup_users(LoadLevel(rate=2.3), made) == 3
    assert warmup_users(LoadLevel(rate=0.1), made) == 1
    assert warmup_users(LoadLevel(rate=1e9, max_inflight=64), made) == 64
    assert warmup_users(LoadLevel(rate_scale=20.0), made) == 4


def test_another_process_finds_the_same_schedule() -> None:

    code = (
        "import sys; sys.path.insert(0, 'tests/jobs/replay'); from test_arrivals import *; import json;"
        "print(json.dumps([digest(schedule_of(workload([None] * 9), LoadLevel(rate=2.5, duration=8.0), "
        "seed=11)), digest(schedule_of(workload([None] * 9), LoadLevel(concurrency=3), seed=11))]))"
    )
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=True, timeout=60)
    here = [
        digest(schedule_of(workload([None] * 9), LoadLevel(rate=2.5, duration=8.0), seed=11)),
        digest(schedule_of(workload([None] * 9), LoadLevel(concurrency=3), seed=11)),
    ]
    assert json.loads(done.stdout) == here
