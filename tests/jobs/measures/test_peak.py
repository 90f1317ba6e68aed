import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.measures import peak, work
from jobs.replay.data import CHUNK, ReplayData

S = 1_000_000_000
Make = Callable[..., ReplayData]


def with_chunks(data: ReplayData, chunks: list[tuple[int, int, int]]) -> ReplayData:
    return replace(data, chunks=np.array(chunks, dtype=CHUNK))


def test_the_fastest_second_is_found_and_tokens_are_no_chunks(make_replay: Make) -> None:
    # Second 0: 2 chunks of 3 tokens; second 1: 1 chunk of 8; second 2: 4 chunks of 1.
    chunks = [(0, 3, 0), (S // 2, 6, 0), (3 * S // 2, 14, 0)]
    chunks += [(2 * S + place * S // 5, 15 + place, 0) for place in range(4)]
    data = with_chunks(make_replay(), chunks)
    assert peak.output_rates(data, (0, 3 * S)) == pytest.approx((6.0, 8.0, 4.0))
    assert peak.output_peak_tok_s(data, (0, 3 * S)) == pytest.approx(8.0)


def test_a_short_window_is_one_bin_and_the_last_bin_is_no_remainder(make_replay: Make) -> None:
    data = with_chunks(make_replay(), [(0, 1, 0), (S // 10, 2, 0), (1_900_000_000, 30, 0)])
    assert peak.output_rates(data, (0, S // 2)) == pytest.approx((4.0,))
    # 1.95 s: one bin of 1.95 s, not one of 1 s and a remainder of 0.95 s whose few tokens look fast.
    assert peak.output_rates(data, (0, 1_950_000_000)) == pytest.approx((30 / 1.95,))


def test_failed_requests_have_no_peak(make_replay: Make) -> None:
    data = make_replay()
    broken = replace(data, requests=tuple(replace(r, error="cut") for r in data.requests))
    assert peak.output_peak_tok_s(broken, work.makespan(data.summary)) == 0.0


@given(
    times=st.lists(st.integers(0, 9 * S), min_size=1, max_size=60),
    span=st.tuples(st.integers(0, 4 * S), st.integers(1, 6 * S)),
    seed=st.integers(0, 1000),
)
def test_the_peak_is_never_below_the_average(
    make_replay: Make, times: list[int], span: tuple[int, int], seed: int
) -> None:
    draws = random.Random(seed)
    running = 0
    chunks = []
    for time in sorted(times):
        running += draws.randint(1, 16)
        chunks.append((time, running, 0))
    data = with_chunks(make_replay(), chunks)
    window = (span[0], span[0] + span[1])
    average = work.rate(work.work_in(data, window).output, window)
    assert average is not None
    assert peak.output_peak_tok_s(data, window) >= average
