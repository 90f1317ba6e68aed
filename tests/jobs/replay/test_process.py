"""The load process as a process, against a real server with scripted answers."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from jobs.errors import LoadProcessKilledError, ReplayError, SilentReplicaError
from jobs.replay.data import ReplayData, load_replay
from jobs.replay.job import ReplayJob
from jobs.replay.launch import run_replay
from jobs.workload import token_file
from jobs.workload.tokens import TokenWorkload

ROOT = Path(__file__).parents[3]
Play = Callable[..., ReplayData]


@pytest.fixture
def play(scripted_url: str, make_workload: Callable[..., TokenWorkload], tmp_path: Path) -> Play:
    def run(script: str, *, users: int = 4, epochs: int = 1, **changes: object) -> ReplayData:
        order = tuple((index, epoch) for epoch in range(epochs) for index in range(8))
        fields = {"urls": (scripted_url,), "order": order, "concurrency": users, "salt": "s", "model": script}
        job = ReplayJob(**{"workload": "", **fields, **changes})  # type: ignore[arg-type]  # fields of the job
        return run_replay(job, make_workload(), tmp_path)

    return run


def test_a_good_replay_is_complete_and_consistent(play: Play) -> None:
    data = play("good", epochs=2)
    assert len(data.requests) == data.summary.requests == 32
    assert data.summary.errors == 0
    assert {(r.conversation, r.epoch, r.turn) for r in data.requests} == {
        (f"c{index}", epoch, turn) for index in range(8) for epoch in range(2) for turn in range(2)
    }
    for index, request in enumerate(data.requests):
        mine = data.chunks[request.chunk_offset : request.chunk_offset + request.chunks]
        assert set(mine["request"]) == {index}
        assert mine["time"][0] == request.first
        assert mine["time"][-1] == request.last
        assert mine["tokens"][0] == request.first_tokens == 3
        assert mine["tokens"][-1] == request.completion_tokens == request.expected_tokens
        assert request.first is not None
        assert request.last is not None
        assert request.dispatched < request.first <= request.last <= request.ended  # both in one read
        assert request.prompt_tokens == request.expected_prompt_tokens
        assert request.cached_tokens == 2
    times = [request.dispatched for request in data.requests]
    assert times == sorted(times)
    assert data.summary.started == min(times)
    assert data.summary.ended == max(request.ended for request in data.requests)


def test_users_play_turns_in_turn_and_keep_their_replica(play: Play, scripted_url: str) -> None:
    data = play("good", urls=(scripted_url, scripted_url), users=3, epochs=2)
    for user in range(3):
        mine = [request for request in data.requests if request.user == user]
        assert {request.replica for request in mine} == {user % 2}
        for before, after in pairwise(mine):
            assert before.ended <= after.dispatched
            if after.turn:
                assert (after.conversation, after.epoch) == (before.conversation, before.epoch)
                assert after.turn == before.turn + 1
    starts = [(r.conversation, r.epoch) for r in data.requests if r.turn == 0]
    assert starts == [(f"c{index}", epoch) for epoch in range(2) for index in range(8)]


def test_the_window_lies_between_first_conversations_and_missing_work(play: Play) -> None:
    data = play("good", epochs=4)
    summary = data.summary
    ends = [max(r.ended for r in data.requests if r.user == user and r.turn == 1) for user in range(4)]
    firsts = [min(r.ended for r in data.requests if r.user == user and r.turn == 1) for user in range(4)]
    assert summary.window_start is not None
    assert summary.window_end is not None
    assert max(firsts) <= summary.window_start <= summary.window_end
    assert min(ends) <= summary.window_end


def test_final_usage_alone_is_enough(play: Play) -> None:
    data = play("final_usage")
    assert data.summary.errors == 0
    assert [r.first_tokens for r in data.requests if r.turn == 0] == [2] * 8  # 7 tokens over 3 chunks


@pytest.mark.parametrize(
    ("script", "error", "detail"),
    [
        ("short", "short", "tokens instead of the pinned"),
        ("http_500", "http_500", "boom"),
        ("error_200", "error_body", "out of something"),
        ("error_line", "error_body", "engine gave up"),
        ("cut_before", "cut", "before the first token"),
        ("cut_after", "cut", "after the first token"),
        ("no_done", "cut", "[DONE]"),
        ("half_way", "cut", "finish_reason and [DONE]"),
        ("http_429", "http_429", "slow down"),
        ("bad_json", "bad_json", "NaN"),
    ],
)
def test_failures_are_recorded_with_their_cause(play: Play, script: str, error: str, detail: str) -> None:
    data = play(script)
    assert data.summary.errors == data.summary.requests == 16
    assert {request.error for request in data.requests} == {error}
    assert all(detail in request.error_detail for request in data.requests)


def test_ttft_counts_from_the_token_not_from_the_role(play: Play) -> None:
    data = play("role_first")
    assert data.summary.errors == 0
    for request in data.requests:
        assert request.first is not None
        assert request.first - request.dispatched >= 195_000_000  # the role chunk came at once


def test_a_failed_request_does_not_end_its_conversation(play: Play) -> None:
    data = play("fails_first")
    assert [r.error for r in data.requests if r.user == 0] == ["http_503", None, None, None]
    assert data.summary.requests == 16


def test_a_stream_that_gets_nothing_while_others_are_served_fails_alone(play: Play) -> None:
    data = play("neglects_c0", users=4, epochs=2, stall_seconds=1.0)
    failed = [request for request in data.requests if request.error is not None]
    assert {(request.conversation, request.error) for request in failed} == {("c0", "stall")}
    assert failed[0].first_tokens == 3
    assert len(data.requests) > 4 * len(failed)


def test_a_replica_that_says_nothing_to_anybody_ends_the_replay(
    play: Play, scripted_url: str, tmp_path: Path
) -> None:
    with pytest.raises(SilentReplicaError, match=f"replica at {scripted_url} has 2 requests.*for 2 s"):
        play("falls_silent", users=2, epochs=2, stall_seconds=2.0)
    requests = (tmp_path / "shard-0" / "requests.jsonl").read_text().splitlines()
    assert len(requests) == 2, "the users went on with their next requests"


def test_a_load_process_that_is_killed_is_told_from_one_that_fails(
    scripted_url: str, make_workload: Callable[..., TokenWorkload], tmp_path: Path
) -> None:
    def kill() -> None:
        for process in psutil.Process().children():
            if str(tmp_path) in process.cmdline():
                process.kill()

    job = ReplayJob(
        urls=(scripted_url,), model="stall", workload="", order=((0, 0),), concurrency=1, salt=None
    )
    with pytest.raises(LoadProcessKilledError, match="ended by signal 9"):
        run_replay(job, make_workload(), tmp_path, watch=kill)


def test_the_deadline_cuts_the_replay_off(play: Play) -> None:
    data = play("stall", deadline_seconds=0.5)
    assert len(data.requests) == 4
    assert {request.error for request in data.requests} == {"deadline"}
    assert data.summary.window_end is None


def test_a_connection_the_server_closes_is_opened_again(play: Play) -> None:
    assert play("closes").summary.errors == 0


def test_bytes_one_by_one_and_characters_cut_in_two(play: Play) -> None:
    data = play("byte_by_byte")
    assert data.summary.errors == 0
    assert {request.chunks for request in data.requests} == {1}


def test_nobody_listens(play: Play) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        data = play("good", urls=(f"http://127.0.0.1:{taken.getsockname()[1]}",))
    assert {request.error for request in data.requests} == {"refused"}
    assert data.summary.requests == 16


def test_what_watch_raises_stops_the_replay(
    scripted_url: str, make_workload: Callable[..., TokenWorkload], tmp_path: Path
) -> None:
    def watch() -> None:
        message = "engine died"
        raise RuntimeError(message)

    job = ReplayJob(
        urls=(scripted_url,), model="stall", workload="", order=((0, 0),), concurrency=1, salt=None
    )
    with pytest.raises(RuntimeError, match="engine died"):
        run_replay(job, make_workload(), tmp_path, watch=watch)
    assert not [p for p in psutil.Process().children() if str(tmp_path) in p.cmdline()]


def test_a_load_process_that_fails_says_why(
    make_workload: Callable[..., TokenWorkload], tmp_path: Path
) -> None:
    job = ReplayJob(
        urls=("ftp://127.0.0.1:1",), model="m", workload="", order=((0, 0),), concurrency=1, salt=None
    )
    with pytest.raises(ReplayError, match=r"ended with 1; its last lines: replica URL 'ftp://127.0.0.1:1'"):
        run_replay(job, make_workload(), tmp_path)


def test_a_damaged_result_is_no_result(play: Play, tmp_path: Path) -> None:
    play("good")
    (tmp_path / "shard-0" / "chunks.bin").write_bytes(b"\0" * 16)
    with pytest.raises(ReplayError, match="incomplete"):
        load_replay(tmp_path)
    (tmp_path / "shard-0" / "summary.json").write_text("{")
    with pytest.raises(ReplayError, match="no usable result"):
        load_replay(tmp_path)


def test_the_load_process_dies_with_its_caller(
    scripted_url: str, make_workload: Callable[..., TokenWorkload], tmp_path: Path
) -> None:
    token_file.write(make_workload(), tmp_path / "w.json")
    program = (
        "import sys; from pathlib import Path; from jobs.replay.job import ReplayJob\n"
        "from jobs.replay.launch import run_replay\n"
        f"job = ReplayJob(urls=({scripted_url!r},), model='stall', workload='', order=((0, 0),),\n"
        "    concurrency=1, salt=None)\n"
        f"run_replay(job, Path({str(tmp_path / 'w.json')!r}), Path({str(tmp_path / 'job')!r}))\n"
    )
    caller = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT)
    try:
        while not (children := psutil.Process(caller.pid).children()):
            assert caller.poll() is None
            time.sleep(0.05)
        time.sleep(0.3)
        os.kill(caller.pid, signal.SIGKILL)
        _, alive = psutil.wait_procs(children, timeout=10)
        assert not alive
    finally:
        caller.kill()
        caller.wait()


def test_nothing_heavy_is_imported() -> None:
    program = (
        "import sys, jobs.replay.__main__\n"
        "heavy = ['ray', 'mlflow', 'pandas', 'numpy', 'pyarrow', 'hydra', 'omegaconf', 'tokenizers',\n"
        "    'jinja2', 'aiohttp', 'torch']\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores to bind to one")
def test_the_load_process_keeps_to_its_cores(
    scripted_url: str, make_workload: Callable[..., TokenWorkload], tmp_path: Path
) -> None:
    core = max(os.sched_getaffinity(0))
    seen: list[list[int]] = []

    def watch() -> None:
        seen.extend(p.cpu_affinity() for p in psutil.Process().children() if str(tmp_path) in p.cmdline())

    fields = {"urls": (scripted_url,), "model": "stall", "workload": "", "order": ((0, 0),), "concurrency": 1}
    job = ReplayJob(**fields, salt=None, cpus=(core,), deadline_seconds=1.0)  # type: ignore[arg-type]  # fields of the job
    run_replay(job, make_workload(), tmp_path, watch=watch)
    assert seen
    assert seen[-1] == [core]
