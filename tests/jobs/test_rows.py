import io
from collections.abc import Callable
from dataclasses import fields, replace

import pyarrow.parquet as pq
import pytest

from jobs.replay.data import ReplayData
from jobs.replay.job import RequestRecord
from jobs.rows import gauges_parquet, requests_parquet


def test_requests_keep_every_field_and_their_latencies(make_replay: Callable[..., ReplayData]) -> None:
    data = make_replay()
    failed = replace(
        data.requests[0], error="refused", first=None, last=None, completion_tokens=None, chunks=0
    )
    data = replace(data, requests=(failed, *data.requests[1:]))
    table = pq.read_table(io.BytesIO(requests_parquet(data)))
    assert set(table.column_names) >= {field.name for field in fields(RequestRecord)}
    rows = table.to_pylist()
    assert len(rows) == 20
    assert rows[0]["error"] == "refused"
    assert rows[0]["ttft_ms"] is None
    assert rows[0]["tpot_ms"] is None
    assert rows[1]["ttft_ms"] == pytest.approx(20.0)
    assert rows[1]["tpot_ms"] == pytest.approx(5.0)
    assert rows[1]["e2el_ms"] == pytest.approx(60.0)
    assert [row["in_window"] for row in rows] == [False] * 4 + [True] * 12 + [False] * 4


def test_latencies_of_an_open_loop_count_from_the_schedule(make_replay: Callable[..., ReplayData]) -> None:
    closed = make_replay()
    late = replace(closed.requests[5], scheduled=closed.requests[5].dispatched - 7_000_000)
    requests = (*closed.requests[:5], late, *closed.requests[6:])
    data = replace(closed, requests=requests, concurrency=0)
    rows = pq.read_table(io.BytesIO(requests_parquet(data))).to_pylist()
    assert (rows[5]["ttft_ms"], rows[5]["e2el_ms"]) == (pytest.approx(27.0), pytest.approx(67.0))
    assert (rows[4]["ttft_ms"], rows[4]["e2el_ms"]) == (pytest.approx(20.0), pytest.approx(60.0))
    assert rows[5]["tpot_ms"] == pytest.approx(5.0)


def test_gauges_are_null_where_a_source_is_absent() -> None:
    rows = [{"time": 1, "kv_usage": 0.5}, {"time": 2, "kv_usage": None, "gpu_watts": 300.0}]
    table = pq.read_table(io.BytesIO(gauges_parquet(rows))).to_pylist()
    assert table == [
        {"time": 1, "kv_usage": 0.5, "gpu_watts": None},
        {"time": 2, "kv_usage": None, "gpu_watts": 300.0},
    ]


def test_no_samples_are_an_empty_file() -> None:
    assert pq.read_table(io.BytesIO(gauges_parquet([]))).num_rows == 0
