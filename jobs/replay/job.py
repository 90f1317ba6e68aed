"""What the load process is told and what it leaves behind: the seam between the block and the load process.

Files in a job's folder: `job.json` (a `ReplayJob`), `workload.tokens` (the token workload), `queue.bin` (what
is left to play), and a folder `shard-N` a load process with `requests.jsonl` (one `RequestRecord` a line, in
order of their ends), `chunks.bin` (16-byte records) and `summary.json`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayJob:
    """One replay: C users play conversations of one shared order against one or more replicas."""

    urls: tuple[str, ...]
    """Base URL of each replica; user u plays on replica u mod len(urls), to the end of each conversation."""
    model: str
    """Served model name."""
    workload: str
    """Path of the token workload file."""
    order: tuple[tuple[int, int], ...]
    """(conversation index, epoch) in start order; a user takes the next entry when it is free."""
    concurrency: int
    salt: str | None
    """Prefix of `cache_salt`; the epoch is appended. None where the engine has no salts."""
    request_options: Mapping[str, Any] = field(default_factory=dict)
    """Extra JSON fields of every request."""
    seed: int = 0
    """Base of the per-request sampling seeds."""
    cpus: tuple[int, ...] = ()
    """CPU cores of the load processes; empty for all. Several processes are dealt one core each, in turn."""
    shards: int = 1
    """Load processes that share the work: process s plays the users s, s + shards, s + 2 shards, ..."""
    ca_file: str | None = None
    """PEM file of the authority that certificates of https:// replicas come from; None for the system's."""
    stall_seconds: float = 120.0
    """A stream without a byte for so long has failed (cause `stall`)."""
    deadline_seconds: float = 3600.0
    """The whole replay is cut off after so long; requests in flight fail with cause `deadline`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """One request as the client saw it. Times are nanoseconds of CLOCK_MONOTONIC."""

    conversation: str
    epoch: int
    turn: int
    user: int
    replica: int
    dispatched: int
    """The request's last byte was handed to the socket."""
    send_lag: int | None
    """Nanoseconds from the decision to send to `dispatched`; None if the request never left."""
    first: int | None
    """First chunk that carries a token."""
    last: int | None
    """Last chunk that carries a token."""
    ended: int
    """End of the stream, or of the failure."""
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    first_tokens: int
    """Tokens in the first chunk (n_first)."""
    expected_prompt_tokens: int
    expected_tokens: int
    """The pinned output length."""
    chunks: int
    """Token-carrying chunks: this request's records in `chunks.bin`."""
    chunk_offset: int
    """Index of its first record in `chunks.bin`."""
    finish_reason: str | None
    error: str | None
    """None for a success, else the cause: `http_500`, `refused`, `cut`, `stall`, `short`, ..."""
    error_detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySummary:
    """What the load process says about itself and the run."""

    started: int
    """Nanoseconds of CLOCK_MONOTONIC when the first request was dispatched."""
    ended: int
    window_start: int | None
    """Every user has finished its first conversation; None if that never happened."""
    window_end: int | None
    """The first user found no work."""
    loop_lag_p99_ms: float
    """How late timers fired, 99th percentile in ms; of the worst process."""
    send_lag_p99_ms: float
    """99th percentile of the requests' send lag in ms; of the worst process."""
    cpu_seconds: float
    """CPU seconds of all load processes during the replay."""
    cpu_share: float
    """CPU seconds over wall seconds, in cores; of the worst process."""
    peak_rss_mib: float
    """Peak memory of the largest process."""
    processes: int
    """Load processes that shared the work."""
    requests: int
    errors: int
