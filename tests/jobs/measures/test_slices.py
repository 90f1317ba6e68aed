from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from jobs.measures import slices
from jobs.metric_names import CONTEXT_SLICES, TURN_SLICES
from jobs.replay.data import CHUNK, ReplayData
from jobs.replay.job import RequestRecord, Speculation

MS = 1_000_000


def test_turns_from_three_on_are_one_slice(make_record: Callable[..., RequestRecord]) -> None:
    requests = [
        make_record(
            turn=turn, first=(10 + 10 * turn) * MS, prompt_tokens=100 * (turn + 1), cached_tokens=50 * turn
        )
        for turn in range(5)
    ]
    found = slices.by_turn(requests)
    assert list(found) == list(TURN_SLICES)
    assert [found[name]["requests"] for name in found] == [1, 1, 1, 2]
    assert [found[name]["ttft_p50_ms"] for name in found] == pytest.approx([10, 20, 30, 45])
    # 150 of 400 and 200 of 500: a share of the sums
    assert [found[name]["cached_share"] for name in found] == pytest.approx([0, 0.25, 1 / 3, 350 / 900])
    # 8 tokens in 50, 40, 30 ms; then 16 tokens in 20 + 10 ms
    assert [found[name]["speed_tok_s"] for name in found] == pytest.approx([160, 200, 8 / 0.03, 16 / 0.03])


def test_a_slice_without_requests_has_no_figures(make_record: Callable[..., RequestRecord]) -> None:
    found = slices.by_turn([make_record()])
    assert found["1"]["requests"] == 0
    assert found["1"]["ttft_p50_ms"] is None
    assert found["1"]["cached_share"] is None
    assert slices.by_turn([make_record(cached_tokens=None)])["0"]["cached_share"] is None


def test_an_answer_crosses_from_one_bucket_of_context_into_the_next(
    make_replay: Callable[..., ReplayData],
) -> None:
    # Prompt 995, chunks after 10, 30, 60 ms with 4, 8, 12 tokens so far: contexts before them 999, 1003.
    data = make_replay(users=1, rounds=1, prompt_tokens=995, completion_tokens=12)
    chunks = np.array([(10 * MS, 4, 0), (30 * MS, 8, 0), (60 * MS, 12, 0)], dtype=CHUNK)
    found = slices.by_context(replace(data, chunks=chunks))
    assert list(found) == list(CONTEXT_SLICES)
    assert found["0_1k"] == pytest.approx(
        {"tokens": 4, "chunks": 1, "speed_tok_s": 4 / 0.02, "tokens_per_chunk": 4, "mal": None}
    )
    assert found["1k_4k"] == pytest.approx(
        {"tokens": 4, "chunks": 1, "speed_tok_s": 4 / 0.03, "tokens_per_chunk": 4, "mal": None}
    )
    assert found["64k_up"]["speed_tok_s"] is None


@pytest.mark.parametrize(
    ("prompt", "bucket"),
    [(999, "0_1k"), (1_000, "1k_4k"), (4_000, "4k_16k"), (63_999, "16k_64k"), (64_000, "64k_up")],
)
def test_buckets_include_their_least_context(
    make_replay: Callable[..., ReplayData], prompt: int, bucket: str
) -> None:
    data = make_replay(users=1, rounds=1, prompt_tokens=prompt - 1)
    chunks = np.array([(0, 1, 0), (MS, 2, 0)], dtype=CHUNK)
    found = slices.by_context(replace(data, chunks=chunks))
    assert [name for name in found if found[name]["chunks"]] == [bucket]


def test_speeds_by_context_pool_to_the_user_speed(make_replay: Callable[..., ReplayData]) -> None:
    found = slices.by_context(make_replay())
    assert found["0_1k"]["speed_tok_s"] == pytest.approx(200.0)
    assert found["0_1k"]["tokens_per_chunk"] == pytest.approx(2.0)
    assert found["0_1k"]["tokens"] == 20 * 8


def test_failed_requests_are_in_no_slice(make_replay: Callable[..., ReplayData]) -> None:
    data = make_replay()
    broken = replace(data, requests=tuple(replace(r, error="cut") for r in data.requests))
    assert all(part["chunks"] == 0 for part in slices.by_context(broken).values())


def test_acceptance_by_context_is_that_of_the_requests_whose_answer_lies_there(
    make_replay: Callable[..., ReplayData],
) -> None:
    # Middles of the answers at 990 + 20 / 2 = 1,000 and at 80 + 10.
    data = make_replay(users=2, rounds=1)
    long, short, failed = (replace(data.requests[number % 2]) for number in range(3))
    requests = (
        replace(
            long,
            prompt_tokens=990,
            completion_tokens=20,
            speculation=Speculation(steps=10, drafted=30, accepted=5),
        ),
        replace(
            short,
            prompt_tokens=80,
            completion_tokens=20,
            speculation=Speculation(steps=8, drafted=24, accepted=12),
        ),
        replace(failed, error="cut", speculation=Speculation(steps=1, drafted=3, accepted=3)),
    )
    found = slices.by_context(replace(data, requests=requests))
    assert (found["0_1k"]["mal"], found["1k_4k"]["mal"]) == (2.5, 1.5)
    assert found["4k_16k"]["mal"] is None
