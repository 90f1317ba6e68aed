"""A finished replay, read back from the job's folder. Not imported by the load process: it needs numpy."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from jobs.errors import ReplayError
from jobs.nouns import counted
from jobs.replay.files import CHUNKS_FILE, JOB_FILE, REQUESTS_FILE, SUMMARY_FILE, shard_folder
from jobs.replay.job import ReplayJob, ReplaySummary, RequestRecord
from jobs.replay.shards import merged
from jobs.replay.window import open_window

CHUNK = np.dtype([("time", "<i8"), ("tokens", "<i4"), ("request", "<i4")])
"""One token-carrying chunk: CLOCK_MONOTONIC in ns, the request's tokens so far, index of the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayData:
    """What one replay left behind."""

    summary: ReplaySummary
    requests: tuple[RequestRecord, ...]
    """In order of dispatch."""
    chunks: npt.NDArray[Any]
    """Records of dtype `CHUNK`; those of one request are contiguous and in order of time."""
    concurrency: int
    """C of the job; 0 for an open loop."""

    @property
    def open_loop(self) -> bool:
        """Whether conversations arrived by themselves: latencies then count from the scheduled time."""
        return self.concurrency == 0

    @property
    def succeeded(self) -> tuple[RequestRecord, ...]:
        """Requests without an error."""
        return tuple(request for request in self.requests if request.error is None)


def load_replay(directory: str | Path) -> ReplayData:
    """Read the files of a finished replay and make one result of its processes' parts.

    Raises:
        ReplayError: a file is missing or damaged, or nothing was played.
    """
    directory = Path(directory)
    try:
        job = msgspec.json.decode((directory / JOB_FILE).read_bytes(), type=ReplayJob)
        parts = [_part(shard_folder(directory, shard)) for shard in range(job.shards)]
    except (OSError, msgspec.DecodeError) as error:
        message = f"the load process left no usable result in {directory} ({error})"
        raise ReplayError(message) from error
    requests: list[RequestRecord] = []
    offset = 0
    for _, records, chunks in parts:
        requests += (replace(record, chunk_offset=record.chunk_offset + offset) for record in records)
        offset += len(chunks)
    if not requests:
        message = f"the load process sent no request within its deadline of {job.deadline_seconds:g} s"
        raise ReplayError(message)
    requests.sort(key=lambda request: request.dispatched)
    chunks = np.concatenate([chunks for _, _, chunks in parts])
    for index, request in enumerate(requests):
        chunks["request"][request.chunk_offset : request.chunk_offset + request.chunks] = index
    summary = merged([summary for summary, _, _ in parts])
    if job.arrivals is not None:
        start, end = open_window(requests, len(job.order))
        summary = replace(summary, window_start=start, window_end=end)
    return ReplayData(summary=summary, requests=tuple(requests), chunks=chunks, concurrency=job.concurrency)


def _part(folder: Path) -> tuple[ReplaySummary, list[RequestRecord], npt.NDArray[Any]]:
    """Read what one process left."""
    summary = msgspec.json.decode((folder / SUMMARY_FILE).read_bytes(), type=ReplaySummary)
    requests = msgspec.json.Decoder(RequestRecord).decode_lines((folder / REQUESTS_FILE).read_bytes())
    chunks = np.fromfile(folder / CHUNKS_FILE, dtype=CHUNK)
    expected = sum(request.chunks for request in requests)
    if len(requests) != summary.requests or len(chunks) != expected:
        message = (
            f"the result in {folder} is incomplete: {len(requests)} of "
            f"{counted(summary.requests, 'request')}, "
            f"{len(chunks)} of {counted(expected, 'chunk')}"
        )
        raise ReplayError(message)
    return summary, requests, chunks
