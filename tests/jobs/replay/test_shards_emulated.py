"""One and four load processes against the emulated engine: the same work, and the same account of it."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from engines.acceptance import Acceptance
from engines.emulator import EMULATOR_VERSION
from engines.emulator.adapter import EmulatorEngine
from engines.spec import Drafter, EngineConfig, Model
from jobs.fleet import Fleet
from jobs.replay.data import ReplayData
from jobs.replay.job import ReplayJob
from jobs.replay.launch import run_replay
from jobs.workload.tokens import TokenConversation, TokenTurn, TokenWorkload
from tests.fleets import running

CONFIG = EngineConfig(
    engine="emulator",
    version=EMULATOR_VERSION,
    model=Model(name="llama-3.1-8b", max_context=4096),
    drafter=Drafter(method="ngram", k=3, acceptance=Acceptance(alpha=0.7)),
    device="emulated",
    flags={"gpu": "h100", "noise": {"start": 0.0, "drift": 0.0, "step": 0.0}, "time_scale": 1.0},
)
USERS = 8


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    with running(EmulatorEngine(), CONFIG) as fleet:
        yield fleet


def conversations() -> TokenWorkload:
    made = []
    for number in range(4 * USERS):
        first = TokenTurn(keep=0, suffix=tuple(range(number, number + 60)), output_tokens=10 + number % 7)
        second = TokenTurn(keep=60, suffix=tuple(range(500, 540)), output_tokens=12)
        made.append(TokenConversation(id=f"c{number}", turns=(first, second)))
    return TokenWorkload(name="made", conversations=tuple(made), validity="synthetic", tokenizer="none")


@pytest.fixture
def play(fleet: Fleet, tmp_path: Path) -> Callable[[int], tuple[ReplayData, int]]:
    def run(shards: int) -> tuple[ReplayData, int]:
        workload = conversations()
        job = ReplayJob(
            urls=tuple(server.url for server in fleet.servers),
            model=CONFIG.model.name,
            workload="",
            order=tuple((index, 0) for index in range(len(workload.conversations))),
            concurrency=USERS,
            salt=f"shards-{shards}",
            request_options=dict(fleet.engine.capabilities.request_options),
            shards=shards,
        )
        before = fleet.counters()
        data = run_replay(job, workload, tmp_path / str(shards))
        return data, int(fleet.counters().since(before).generation_tokens)

    return run


def test_the_results_agree(play: Callable[[int], tuple[ReplayData, int]]) -> None:
    (one, one_engine), (four, four_engine) = play(1), play(4)
    assert (one.summary.processes, four.summary.processes) == (1, 4)
    assert one.summary.errors == four.summary.errors == 0
    work = [
        Counter((r.conversation, r.turn, r.prompt_tokens, r.completion_tokens) for r in data.requests)
        for data in (one, four)
    ]
    assert work[0] == work[1]
    assert one_engine == four_engine == sum(r.completion_tokens or 0 for r in one.requests)
    for data in (one, four):
        # All users are in it from the start to the first that finds no work, however they are dealt out.
        assert {request.user for request in data.requests} == set(range(USERS))
        assert data.summary.window_start is not None
        assert data.summary.window_end is not None
        assert data.summary.started < data.summary.window_start
        assert data.summary.window_end <= data.summary.ended
        assert max(in_flight(data)) <= USERS
        # The running counts of each request end at its length: no chunk was lost or counted twice.
        last = {int(chunk["request"]): int(chunk["tokens"]) for chunk in data.chunks}
        assert last == {index: r.completion_tokens for index, r in enumerate(data.requests)}
        assert np.all(np.diff(data.chunks["time"])[np.diff(data.chunks["request"]) == 0] >= 0)


def in_flight(data: ReplayData) -> list[int]:
    """Requests in flight after each start and end."""
    steps = [(r.dispatched, 1) for r in data.requests] + [(r.ended, -1) for r in data.requests]
    return list(np.cumsum([step for _, step in sorted(steps)]))
