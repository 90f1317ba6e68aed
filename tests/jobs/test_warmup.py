from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from jobs.replay.data import CHUNK, ReplayData
from jobs.warmup import WarmUp, looks_of, warm_up
from jobs.workload.tokens import TokenWorkload

MS = 1_000_000
Make = Callable[..., ReplayData]


@pytest.fixture
def round_of(make_replay: Make) -> Callable[..., ReplayData]:
    """A round of users who all decode from 0, with these gaps in ms; the last user ends earlier."""

    def make(gaps: list[float], users: int = 2, early: int = 0) -> ReplayData:
        data = make_replay(users=users, rounds=1)
        chunks = []
        requests = []
        for user in range(users):
            steps = gaps[: len(gaps) - early] if user == users - 1 else gaps
            times = [0, *(int(time) for time in np.cumsum(steps) * MS)]
            chunks += [(time, index + 1, user) for index, time in enumerate(times)]
            at = {"first": times[0], "last": times[-1], "chunks": len(times)}
            requests.append(replace(data.requests[user], **at))
        return replace(data, requests=tuple(requests), chunks=np.array(chunks, dtype=CHUNK))

    return make


Round = Callable[..., ReplayData]


def test_a_round_is_two_looks_at_its_full_batch(round_of: Round) -> None:
    # Twenty steps of 20 ms, twenty of 10; then one user alone for ten steps of 5, which is another batch.
    data = round_of([20.0] * 20 + [10.0] * 20 + [5.0] * 10, early=10)
    before, after = looks_of(data)
    assert (before.batch, before.gaps, before.median_ms) == (2, 40, pytest.approx(20.0))
    assert (after.batch, after.gaps, after.median_ms) == (2, 40, pytest.approx(10.0))


def test_too_few_gaps_are_no_look(round_of: Round) -> None:
    assert looks_of(round_of([10.0] * 7)) == []
    assert len(looks_of(round_of([10.0] * 8))) == 2


def test_failed_requests_show_nothing(round_of: Round) -> None:
    data = round_of([10.0] * 40)
    assert looks_of(replace(data, requests=tuple(replace(r, error="cut") for r in data.requests))) == []


@pytest.fixture
def warm(make_workload: Callable[..., TokenWorkload]) -> Callable[..., tuple[WarmUp, list[TokenWorkload]]]:
    def run(rounds: list[ReplayData], **changes: int) -> tuple[WarmUp, list[TokenWorkload]]:
        played: list[TokenWorkload] = []

        def play(text: TokenWorkload, users: int) -> ReplayData:
            played.append(text)
            assert users == 2
            return rounds[len(played) - 1]

        options = {"users": 2, "per_user": 1, "rounds_max": 3, "seed": 0, **changes}
        return warm_up(play, make_workload(8), **options), played

    return run


Warm = Callable[..., tuple[WarmUp, list[TokenWorkload]]]


def test_a_warm_engine_needs_one_round(warm: Warm, round_of: Round) -> None:
    found, played = warm([round_of([10.0] * 40)])
    assert (found.rounds, found.requests, found.settled) == (1, 2, True)
    assert found.caveats == ()
    assert len(played[0].conversations) == 2


def test_rounds_go_on_until_the_step_time_settles_each_on_new_text(warm: Warm, round_of: Round) -> None:
    settling = [[30.0] * 20 + [20.0] * 20, [10.6] * 20 + [10.2] * 20, [10.0] * 40]
    found, played = warm([round_of(gaps) for gaps in settling])
    assert (found.rounds, found.settled) == (2, True)
    prompts = {tuple(next(iter(text.prompts(c)))) for text in played for c in text.conversations}
    assert len(prompts) == 4


def test_a_step_time_that_does_not_settle_is_a_caveat(warm: Warm, round_of: Round) -> None:
    found, _ = warm([round_of([30.0] * 20 + [20.0] * 20)] * 3)
    assert (found.rounds, found.requests, found.settled) == (3, 6, False)
    assert "not settled after 3 warm-up rounds" in found.caveats[0]
    assert "from 30.00 to 20.00 ms" in found.caveats[0]


def test_five_percent_is_the_tolerance(warm: Warm, round_of: Round) -> None:
    assert warm([round_of([10.0] * 20 + [10.49] * 20)] * 3)[0].rounds == 1
    assert warm([round_of([10.0] * 20 + [10.51] * 20)] * 3)[0].rounds == 3


def test_rounds_too_short_to_tell_are_all_played_and_say_nothing(warm: Warm, round_of: Round) -> None:
    found, _ = warm([round_of([10.0] * 3)] * 3)
    assert (found.rounds, found.settled, found.caveats) == (3, None, ())


def test_no_warm_up_is_none(warm: Warm) -> None:
    found, played = warm([], per_user=0)
    assert (found.rounds, found.requests, found.settled) == (0, 0, None)
    assert played == []
