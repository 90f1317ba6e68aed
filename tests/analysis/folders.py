"""A sweep's folder as the product writes it, for tests that read one."""

import dataclasses
import json
from pathlib import Path

import numpy as np

from jobs.replay.data import ReplayData
from jobs.replay.job import ReplaySummary, RequestRecord, Speculation
from jobs.rows import gauges_parquet, requests_parquet

SECOND = 1_000_000_000


def write_folder(root: Path, results, *, requests=None, gauges=None, plan=None) -> Path:
    """Write cells with their requests and samples; those of every measured cell where none are given."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "plan.json").write_text(json.dumps({"sweep": root.name, "threshold": 0.02, **(plan or {})}))
    for cell in results:
        folder = root / "cells" / cell.cell
        folder.mkdir(parents=True)
        (folder / "result.json").write_text(json.dumps(cell.to_dict()))
        if cell.outcome == "measured":
            records = requests if requests is not None else [record(), record(turn=1, begun=3)]
            (folder / "requests.parquet").write_bytes(requests_parquet(replay(records)))
            (folder / "gauges.parquet").write_bytes(
                gauges_parquet(gauges if gauges is not None else samples())
            )
    return root


def record(*, begun=1, turn=0, tokens=21, **changes) -> RequestRecord:
    """A request dispatched at `begun` s: its first token 0.5 s later, twenty more in 2 s."""
    made = RequestRecord(
        conversation="first",
        epoch=0,
        turn=turn,
        user=0,
        replica=0,
        scheduled=begun * SECOND,
        dispatched=begun * SECOND,
        send_lag=2_000_000,
        first=begun * SECOND + SECOND // 2,
        last=begun * SECOND + 5 * SECOND // 2,
        ended=begun * SECOND + 3 * SECOND,
        prompt_tokens=100,
        cached_tokens=None,
        completion_tokens=tokens,
        first_tokens=1,
        expected_prompt_tokens=100,
        expected_tokens=tokens,
        chunks=10,
        chunk_offset=0,
        finish_reason="length",
        error=None,
        speculation=Speculation(steps=10, drafted=30, accepted=11, histogram=(4, 2, 3, 1)),
    )
    return dataclasses.replace(made, **changes)


def replay(records) -> ReplayData:
    summary = ReplaySummary(
        started=0,
        ended=20 * SECOND,
        window_start=2 * SECOND,
        window_end=9 * SECOND,
        loop_lag_p99_ms=0.0,
        send_lag_p99_ms=0.0,
        cpu_seconds=0.0,
        cpu_share=0.0,
        peak_rss_mib=0.0,
        processes=1,
        cap_waits=0,
        requests=len(records),
        errors=0,
    )
    return ReplayData(summary=summary, requests=tuple(records), chunks=np.empty(0), concurrency=1)


def samples():
    engine = {"replica": 0, "running": 3, "waiting": None, "kv_usage": 0.25}
    return [{"time": 7 * SECOND + second * SECOND, **engine, "gpu0_power_w": 300.0} for second in (0, 1)]
