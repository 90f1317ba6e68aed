"""Several load processes: one queue, one clock, one result."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from jobs.errors import ReplayError
from jobs.replay.data import ReplayData
from jobs.replay.files import shard_folder
from jobs.replay.job import ReplayJob, ReplaySummary
from jobs.replay.launch import run_replay
from jobs.replay.shards import STREAMS_PER_PROCESS, merged, shards_for
from jobs.replay.shared_order import SharedOrder, open_queue
from jobs.workload.tokens import TokenWorkload

ROOT = Path(__file__).parents[3]
TAKE_ALL = (
    "import sys; from jobs.replay.shared_order import SharedOrder\n"
    "queue = SharedOrder(int(sys.argv[1])); sys.stdin.read()\n"
    "while (position := queue.take()) is not None: print(position)\n"
)


def test_each_position_is_taken_once_and_in_order_by_whoever_asks(tmp_path: Path) -> None:
    queue = open_queue(tmp_path / "queue.bin", 20_000)
    takers = [
        subprocess.Popen(
            [sys.executable, "-c", TAKE_ALL, str(queue)],
            cwd=ROOT,
            pass_fds=(queue,),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for taker in takers:
        assert taker.stdin is not None
        taker.stdin.close()  # all begin now
        taker.stdin = None
    taken = [[int(line) for line in taker.communicate()[0].split()] for taker in takers]
    os.close(queue)
    assert sorted(position for mine in taken for position in mine) == list(range(20_000))
    assert all(mine == sorted(mine) for mine in taken)


def test_an_empty_order_has_no_work(tmp_path: Path) -> None:
    queue = open_queue(tmp_path / "queue.bin", 0)
    assert SharedOrder(queue).take() is None
    os.close(queue)


@pytest.mark.parametrize(
    ("concurrency", "cores", "expected"),
    [(1, 8, 1), (STREAMS_PER_PROCESS, 8, 1), (STREAMS_PER_PROCESS + 1, 8, 2), (10_000, 8, 8), (10_000, 0, 1)],
)
def test_processes_follow_streams_and_cores(concurrency: int, cores: int, expected: int) -> None:
    assert shards_for(concurrency, cores) == expected


def summary(**changes: object) -> ReplaySummary:
    fields: dict[str, object] = {
        "started": 10,
        "ended": 90,
        "window_start": 30,
        "window_end": 70,
        "loop_lag_p99_ms": 1.0,
        "send_lag_p99_ms": 0.5,
        "cpu_seconds": 2.0,
        "cpu_share": 0.2,
        "peak_rss_mib": 40.0,
        "processes": 1,
        "cap_waits": 1,
        "requests": 5,
        "errors": 1,
    }
    return ReplaySummary(**{**fields, **changes})  # type: ignore[arg-type]  # fields of the summary


def test_the_merged_summary_is_of_all_users_and_of_the_worst_process() -> None:
    other = summary(
        started=5, ended=80, window_start=40, window_end=60, loop_lag_p99_ms=3.0, send_lag_p99_ms=0.1,
        cpu_seconds=1.0, cpu_share=0.9, peak_rss_mib=30.0, requests=7, errors=0, cap_waits=2,
    )  # fmt: skip
    assert merged([summary(), other]) == summary(
        started=5, ended=90, window_start=40, window_end=60, loop_lag_p99_ms=3.0, send_lag_p99_ms=0.5,
        cpu_seconds=3.0, cpu_share=0.9, peak_rss_mib=40.0, processes=2, requests=12, errors=1, cap_waits=3,
    )  # fmt: skip


def test_one_process_whose_users_never_finished_leaves_no_window() -> None:
    assert merged([summary(), summary(window_start=None)]).window_start is None
    assert merged([summary(), summary(window_end=None)]).window_end == 70
    assert merged([summary(window_end=None)] * 2).window_end is None


def test_a_process_without_work_has_no_say_in_the_times() -> None:
    assert merged([summary(), summary(started=0, ended=0, requests=0)]).started == 10


Play = Callable[..., ReplayData]


@pytest.fixture
def play(scripted_url: str, make_workload: Callable[..., TokenWorkload], tmp_path: Path) -> Play:
    def run(shards: int, **changes: object) -> ReplayData:
        job = ReplayJob(
            urls=(scripted_url, scripted_url, scripted_url),
            model="good",
            workload="",
            order=tuple((index, epoch) for epoch in range(4) for index in range(8)),
            concurrency=8,
            salt="s",
            shards=shards,
        )
        return run_replay(replace(job, **changes), make_workload(), tmp_path / str(shards))  # type: ignore[arg-type]  # fields of the job

    return run


def work(data: ReplayData) -> Counter[tuple[object, ...]]:
    """What was asked for and came back, whoever played it and when."""
    return Counter(
        (r.conversation, r.epoch, r.turn, r.prompt_tokens, r.completion_tokens, r.first_tokens, r.error)
        for r in data.requests
    )


def test_one_and_four_processes_do_the_same_work(play: Play) -> None:
    one, four = play(1), play(4)
    assert (one.summary.processes, four.summary.processes) == (1, 4)
    assert one.summary.requests == four.summary.requests == 64
    assert work(one) == work(four)
    assert sorted(np.bincount(one.chunks["request"])) == sorted(np.bincount(four.chunks["request"]))


def test_the_parts_make_one_consistent_result(play: Play, tmp_path: Path) -> None:
    data = play(4)
    times = [request.dispatched for request in data.requests]
    assert times == sorted(times)
    assert len(data.chunks) == sum(request.chunks for request in data.requests)
    for index, request in enumerate(data.requests):
        mine = data.chunks[request.chunk_offset : request.chunk_offset + request.chunks]
        assert set(mine["request"]) == {index}
        assert (mine["time"][0], mine["time"][-1]) == (request.first, request.last)
        assert (mine["tokens"][0], mine["tokens"][-1]) == (request.first_tokens, request.completion_tokens)
    assert all((shard_folder(tmp_path / "4", shard) / "requests.jsonl").stat().st_size for shard in range(4))
    assert data.summary.window_start is not None
    assert data.summary.window_end is not None
    assert data.summary.window_start >= max(
        min(r.ended for r in data.requests if r.user == user and r.turn == 1) for user in range(8)
    )
    assert data.summary.window_end <= min(
        max(r.ended for r in data.requests if r.user == user) for user in range(8)
    )


def test_users_are_dealt_to_processes_and_keep_their_replica(play: Play) -> None:
    data = play(4)
    assert {request.user for request in data.requests} == set(range(8))
    for user in range(8):
        mine = [request for request in data.requests if request.user == user]
        assert {request.replica for request in mine} == {user % 3}
        assert all(before.ended <= after.dispatched for before, after in pairwise(mine))
    starts = [request for request in data.requests if request.turn == 0]
    assert Counter((r.conversation, r.epoch) for r in starts).most_common(1)[0][1] == 1


def test_an_open_loop_is_dealt_out_too(play: Play) -> None:
    arrivals = tuple(5_000_000 * index for index in range(32))
    one = play(1, concurrency=0, arrivals=arrivals)
    four = play(4, concurrency=0, arrivals=arrivals)
    assert work(one) == work(four)
    for data in (one, four):
        due = sorted(request.scheduled for request in data.requests if request.turn == 0)
        assert [after - before for before, after in pairwise(due)] == [5_000_000] * 31
        assert all(request.scheduled <= request.dispatched for request in data.requests)


def test_one_process_that_fails_fails_the_replay_with_its_reason(play: Play) -> None:
    with pytest.raises(ReplayError, match="replica URL 'ftp://nowhere'"):
        play(2, urls=("ftp://nowhere",))
