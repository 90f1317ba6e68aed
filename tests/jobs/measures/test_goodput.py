"""Goodput: failures are misses, one chunk has no TPOT, no limits no figure."""

import dataclasses

import pytest

from jobs.measures.goodput import RATE, SHARE, goodput, meets
from jobs.measures.work import steady_window
from jobs.slo import Slo

MS = 1_000_000


@pytest.mark.parametrize(
    ("limits", "good"),
    [
        ({"ttft_ms": 20}, True),  # the record's is 20 ms exactly: the limit itself is within it
        ({"ttft_ms": 19.9}, False),
        ({"tpot_ms": 5}, True),  # 40 ms for the 8 tokens after the first chunk
        ({"tpot_ms": 4.9}, False),
        ({"e2el_ms": 60}, True),
        ({"e2el_ms": 59}, False),
        ({"ttft_ms": 20, "tpot_ms": 4.9}, False),  # every limit has to hold
    ],
)
def test_a_request_meets_its_limits(make_record, limits, good):
    assert meets(make_record(), Slo(**limits), scheduled=False) is good


def test_a_failure_is_a_miss_and_one_chunk_has_no_time_per_token(make_record):
    assert not meets(make_record(error="http_500"), Slo(ttft_ms=1e9), scheduled=False)
    single = make_record(chunks=1, first=60 * MS, first_tokens=10)
    assert meets(single, Slo(tpot_ms=0.001), scheduled=False)
    assert not meets(single, Slo(tpot_ms=0.001, ttft_ms=59), scheduled=False)


def test_an_open_loop_counts_from_when_a_request_was_due(make_record):
    late = make_record(scheduled=-30 * MS)
    assert meets(late, Slo(ttft_ms=20), scheduled=False)
    assert not meets(late, Slo(ttft_ms=20), scheduled=True)


def test_goodput_of_a_replay(make_replay):
    """20 requests over 5 rounds, 3 rounds of them in the window; one user's answers fail."""
    data = make_replay()
    requests = tuple(
        dataclasses.replace(request, error="cut") if request.user == 0 else request
        for request in data.requests
    )
    data = dataclasses.replace(data, requests=requests)
    window = steady_window(data.summary)
    assert window is not None
    found = goodput(data, Slo(ttft_ms=100, tpot_ms=10), window)
    assert found[SHARE] == pytest.approx(0.75)
    assert found[RATE] == pytest.approx(9 / (3 * 0.062))
    assert goodput(data, Slo(ttft_ms=1), window) == {SHARE: 0.0, RATE: 0.0}
    assert goodput(data, Slo(ttft_ms=100), None)[RATE] is None


def test_without_limits_it_is_absent_and_not_zero(make_replay):
    data = make_replay()
    assert goodput(data, Slo(), steady_window(data.summary)) == {SHARE: None, RATE: None}


def test_a_limit_is_a_latency():
    with pytest.raises(ValueError, match=r"slo\.tpot_ms is 0; .*choose more than 0, or null"):
        Slo(tpot_ms=0)
