from collections.abc import Callable

import numpy as np
import pytest

from jobs.measures import timing
from jobs.replay.data import CHUNK, ReplayData
from jobs.replay.job import RequestRecord

MS = 1_000_000
Make = Callable[..., RequestRecord]


def chunked(gaps_ms: list[float], tokens: list[int], first: int) -> tuple[np.ndarray, dict[str, int]]:
    """One request: a first chunk of `first` tokens at 0, then chunks after the gaps."""
    times = [0, *(int(sum(gaps_ms[: i + 1]) * MS) for i in range(len(gaps_ms)))]
    counts = [first, *(first + sum(tokens[: i + 1]) for i in range(len(tokens)))]
    chunks = np.array([(t, n, 0) for t, n in zip(times, counts, strict=True)], dtype=CHUNK)
    fields = {
        "dispatched": -10 * MS,
        "first": 0,
        "last": times[-1],
        "completion_tokens": counts[-1],
        "first_tokens": first,
        "chunks": len(times),
    }
    return chunks, fields


def test_a_published_chunk_gap_gives_the_published_time_per_token(make_record: Make) -> None:
    # Chunks of 2 or 3 tokens (2.55 on average) every 8.72 ms: 292.29 tok/s is 3.42 ms a token, not 8.72.
    chunks, fields = chunked([8.72] * 20, [2] * 9 + [3] * 11, first=3)
    request = make_record(**fields)
    assert timing.tpot_ms([request])[0] == pytest.approx(3.42, abs=0.01)
    assert timing.user_speed_tok_s([request]) == pytest.approx(292.29, rel=2e-3)
    assert timing.itl_ms(chunks).mean() == pytest.approx(3.42, abs=0.01)
    assert np.median(timing.icl_ms(chunks)) == pytest.approx(8.72)


def test_tokens_of_the_first_chunk_are_not_in_the_denominator(make_record: Make) -> None:
    # 10 tokens in 40 ms, 2 of them in the first chunk: 40 / 8, neither 40 / 9 nor 40 / 10.
    assert timing.tpot_ms([make_record()]) == pytest.approx([5.0])


def test_latencies_count_from_dispatch_to_token_chunks(make_record: Make) -> None:
    request = make_record(dispatched=5 * MS)
    assert timing.ttft_ms([request]) == pytest.approx([15.0])
    assert timing.e2el_ms([request]) == pytest.approx([55.0])  # last chunk, not the end of the stream


def test_user_speed_pools_tokens_and_time_not_ratios(make_record: Make) -> None:
    fast = make_record()  # 8 tokens in 40 ms
    slow = make_record(last=420 * MS, completion_tokens=10)  # 8 tokens in 400 ms
    assert timing.user_speed_tok_s([fast, slow]) == pytest.approx(16 / 0.44)


def test_single_chunk_answers_are_left_out_of_speeds_and_counted(make_record: Make) -> None:
    single = make_record(last=20 * MS, first_tokens=10, chunks=1)
    assert timing.user_speed_tok_s([single]) is None
    assert len(timing.tpot_ms([single])) == 0
    assert timing.single_chunk([single, make_record()]) == 1
    assert timing.user_speed_tok_s([single, make_record()]) == timing.user_speed_tok_s([make_record()])


def test_decode_share_is_a_ratio_of_sums(make_record: Make) -> None:
    requests = [make_record(), make_record(dispatched=-20 * MS, last=40 * MS)]
    assert timing.decode_share(requests) == pytest.approx((40 + 20) / (60 + 60))


def test_inter_token_latency_is_one_value_a_token() -> None:
    chunks, _ = chunked([10.0, 30.0], [1, 3], first=1)
    assert timing.itl_ms(chunks) == pytest.approx([10.0, 10.0, 10.0, 10.0])
    assert timing.icl_ms(chunks) == pytest.approx([10.0, 30.0])


def test_gaps_never_span_two_requests(make_replay: Callable[..., ReplayData]) -> None:
    data = make_replay()
    assert len(timing.icl_ms(data.chunks)) == len(data.requests) * 4
    assert timing.icl_ms(data.chunks) == pytest.approx(np.full(80, 10.0))
    assert timing.tokens_of_chunks(data.chunks).sum() == 200


def test_nothing_measured_is_nothing_said() -> None:
    empty = np.zeros(0, dtype=CHUNK)
    assert timing.quantile(timing.icl_ms(empty), 50) is None
    assert timing.quantile(timing.itl_ms(empty), 50) is None
    assert timing.user_speed_tok_s([]) is None
    assert timing.decode_share([]) is None


def test_quantiles_interpolate_linearly() -> None:
    assert timing.quantile(np.array([1.0, 2.0, 3.0, 4.0]), 50) == 2.5
    assert timing.quantile(np.array([0.0, 10.0]), 95) == pytest.approx(9.5)


def test_an_open_loop_counts_from_when_a_request_was_due(make_record: Make) -> None:
    late = make_record(scheduled=0, dispatched=5 * MS)
    assert timing.ttft_ms([late], scheduled=True) == pytest.approx([20.0])
    assert timing.ttft_ms([late]) == pytest.approx([15.0])
    assert timing.e2el_ms([late], scheduled=True) == pytest.approx([60.0])
    assert timing.schedule_lag_ms([late, make_record()]) == pytest.approx([5.0, 0.0])
    assert timing.decode_share([late], scheduled=True) == pytest.approx(40 / 60)


def test_request_speeds_are_one_a_request(make_record: Make) -> None:
    slow = make_record(last=420 * MS)
    single = make_record(last=20 * MS, first_tokens=10, chunks=1)
    assert timing.request_speeds_tok_s([make_record(), slow, single]) == pytest.approx([200.0, 20.0])
