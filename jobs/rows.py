"""Per-request and per-sample rows as Parquet."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.measures.timing import origin
from jobs.replay.data import ReplayData
from jobs.replay.job import RequestRecord

_SPECULATION = pa.struct(
    [
        ("steps", pa.int32()),
        ("drafted", pa.int32()),
        ("accepted", pa.int32()),
        ("histogram", pa.list_(pa.int32())),
    ]
)
_REQUESTS = pa.schema(
    [
        ("conversation", pa.string()),
        ("epoch", pa.int32()),
        ("turn", pa.int32()),
        ("user", pa.int32()),
        ("replica", pa.int32()),
        ("scheduled", pa.int64()),
        ("dispatched", pa.int64()),
        ("send_lag", pa.int64()),
        ("first", pa.int64()),
        ("last", pa.int64()),
        ("ended", pa.int64()),
        ("prompt_tokens", pa.int32()),
        ("cached_tokens", pa.int32()),
        ("completion_tokens", pa.int32()),
        ("first_tokens", pa.int32()),
        ("expected_prompt_tokens", pa.int32()),
        ("expected_tokens", pa.int32()),
        ("chunks", pa.int32()),
        ("chunk_offset", pa.int64()),
        ("finish_reason", pa.string()),
        ("error", pa.string()),
        ("error_detail", pa.string()),
        ("speculation", _SPECULATION),
        ("rank", pa.int32()),
        ("ttft_ms", pa.float64()),
        ("tpot_ms", pa.float64()),
        ("e2el_ms", pa.float64()),
        ("in_window", pa.bool_()),
    ]
)


def requests_parquet(data: ReplayData) -> bytes:
    """Return one row a request in order of dispatch: its record and its latencies.

    Times are nanoseconds of CLOCK_MONOTONIC. Latencies of an open loop count from `scheduled`. `in_window`
    says whether the steady window holds the dispatch.
    """
    rows = [_row(request, data) for request in data.requests]
    return _bytes(pa.Table.from_pylist(rows, schema=_REQUESTS))


def gauges_parquet(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Return one row a sample and replica. A column that a sample lacks is null there, never zero."""
    names = {name: None for row in rows for name in row}
    columns = {name: [row.get(name) for row in rows] for name in names} or {"time": pa.array([], pa.int64())}
    return _bytes(pa.table(columns))


def _row(request: RequestRecord, data: ReplayData) -> dict[str, Any]:
    row = asdict(request)
    first, last = request.first, request.last
    begun = origin(request, scheduled=data.open_loop)
    row["ttft_ms"] = None if first is None else (first - begun) / 1e6
    row["e2el_ms"] = None if last is None else (last - begun) / 1e6
    tokens = (request.completion_tokens or 0) - request.first_tokens
    decoded = first is not None and last is not None and request.chunks > 1 and tokens > 0
    row["tpot_ms"] = (
        (last - first) / tokens / 1e6 if decoded and first is not None and last is not None else None
    )
    start, end = data.summary.window_start, data.summary.window_end
    row["in_window"] = start is not None and end is not None and start <= request.dispatched < end
    return row


def _bytes(table: pa.Table) -> bytes:
    # Figures hardly repeat: dictionaries and statistics of them make small files larger and slower to read.
    words = [field.name for field in table.schema if pa.types.is_string(field.type)]
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", use_dictionary=words, write_statistics=False)
    return sink.getvalue()
