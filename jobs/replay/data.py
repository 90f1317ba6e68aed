"""A finished replay, read back from the job's folder. Not imported by the load process: it needs numpy."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from jobs.errors import ReplayError
from jobs.replay.files import CHUNKS_FILE, JOB_FILE, REQUESTS_FILE, SUMMARY_FILE
from jobs.replay.job import ReplayJob, ReplaySummary, RequestRecord

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
    """C of the job."""

    @property
    def succeeded(self) -> tuple[RequestRecord, ...]:
        """Requests without an error."""
        return tuple(request for request in self.requests if request.error is None)


def load_replay(directory: str | Path) -> ReplayData:
    """Read the files of a finished replay.

    Raises:
        ReplayError: a file is missing or damaged.
    """
    directory = Path(directory)
    try:
        job = msgspec.json.decode((directory / JOB_FILE).read_bytes(), type=ReplayJob)
        summary = msgspec.json.decode((directory / SUMMARY_FILE).read_bytes(), type=ReplaySummary)
        decoder = msgspec.json.Decoder(RequestRecord)
        requests = tuple(decoder.decode_lines((directory / REQUESTS_FILE).read_bytes()))
        chunks = np.fromfile(directory / CHUNKS_FILE, dtype=CHUNK)
    except (OSError, msgspec.DecodeError) as error:
        message = f"the load process left no usable result in {directory} ({error})"
        raise ReplayError(message) from error
    expected = sum(request.chunks for request in requests)
    if len(requests) != summary.requests or len(chunks) != expected:
        message = (
            f"the result in {directory} is incomplete: {len(requests)} of {summary.requests} requests, "
            f"{len(chunks)} of {expected} chunks"
        )
        raise ReplayError(message)
    return ReplayData(summary=summary, requests=requests, chunks=chunks, concurrency=job.concurrency)
