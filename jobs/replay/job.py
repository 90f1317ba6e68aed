"""What the load process is told and what it leaves behind: the seam between the block and the load process.

Files in a job's folder: `job.json` (a `ReplayJob`), `workload.tokens` (the token workload), `queue.bin` (what
is left to play), and a folder `shard-N` a load process with `requests.jsonl` (one `RequestRecord` a line, in
order of their ends), `chunks.bin` (16-byte records) and `summary.json`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jobs.load import MAX_INFLIGHT


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayJob:
    """One replay: conversations of one shared order against one or more replicas, by users or by arrivals."""

    urls: tuple[str, ...]
    """Base URL of each replica; user u (in an open loop, arrival u) plays on replica u mod len(urls)."""
    model: str
    """Served model name."""
    workload: str
    """Path of the token workload file."""
    order: tuple[tuple[int, int], ...]
    """(conversation index, epoch) in start order; a user takes the next entry when it is free."""
    concurrency: int
    """C: users of a closed loop; 0 for an open loop."""
    ramp: float = 0.0
    """Closed loop: seconds over which the users start: user u after u/C of it."""
    arrivals: tuple[int, ...] | None = None
    """Open loop: when each entry of `order` is due, in nanoseconds from the start; None for a closed loop."""
    max_inflight: int = MAX_INFLIGHT
    """Open loop: requests in flight; each load process has its share. One beyond it waits, and is counted."""
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
    rank_header: str | None = None
    """HTTP header that names the data-parallel rank of each request; None where the engine chooses it."""
    ranks: int = 1
    """Data-parallel ranks of a replica: with a header, entry i of `order` is played on rank i mod `ranks`."""
    header_variables: Mapping[str, str] = field(default_factory=dict)
    """HTTP header of every request -> environment variable with its value, which is a secret."""
    stall_seconds: float = 120.0
    """A stream without a byte for so long has failed (cause `stall`); a replica without a token for so long,
    while it has requests, hangs, and the replay ends."""
    deadline_seconds: float = 3600.0
    """The whole replay is cut off after so long; requests in flight fail with cause `deadline`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """What the engine says about the drafts of one request."""

    steps: int
    """Verification steps that had a draft."""
    drafted: int
    """Draft tokens proposed."""
    accepted: int
    """Draft tokens accepted."""
    histogram: tuple[int, ...] = ()
    """Steps by the number of draft tokens accepted, from none on."""

    @property
    def mean_length(self) -> float | None:
        """Tokens a step, the verifier's own included; None without a step."""
        return 1 + self.accepted / self.steps if self.steps else None

    @property
    def per_position(self) -> tuple[float, ...]:
        """Share of steps in which position 1, 2, ... was accepted (unconditional)."""
        return tuple(sum(self.histogram[j:]) / self.steps for j in range(1, len(self.histogram)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """One request as the client saw it. Times are nanoseconds of CLOCK_MONOTONIC."""

    conversation: str
    epoch: int
    turn: int
    user: int
    """User of a closed loop; number of the arrival in an open one."""
    replica: int
    scheduled: int
    """When the request was due: in an open loop the arrival, in a closed one the time its user became free;
    for a later turn the end of the answer before it plus the recorded gap."""
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
    speculation: Speculation | None = None
    """The engine's own account of this request's drafts; None where it gives none."""
    rank: int | None = None
    """Data-parallel rank that the request named; None where the engine chose it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySummary:
    """What the load process says about itself and the run."""

    started: int
    """Nanoseconds of CLOCK_MONOTONIC when the first request was dispatched."""
    ended: int
    window_start: int | None
    """Start of the steady window as `jobs/replay/window.py` defines it; None if that never happened."""
    window_end: int | None
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
    cap_waits: int
    """Open loop: requests that had to wait because `max_inflight` others were in flight."""
    requests: int
    errors: int
