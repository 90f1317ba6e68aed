"""What the load process costs and where it ends: a real replay against a server that only streams.

Not imported by the load process. It serves `specload doctor --client` and the benchmark of the client.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jobs.errors import ReplayError
from jobs.replay.data import ReplayData
from jobs.replay.job import ReplayJob
from jobs.replay.launch import run_replay
from jobs.workload.tokens import TokenConversation, TokenTurn, TokenWorkload

PROMPT_TOKENS = 64
MS = 1e6
"""Nanoseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pour:
    """Streams that all start at once and get a chunk each interval."""

    streams: int
    interval: float
    """Seconds between two chunks of a stream, and from a request to its first one."""
    chunks: int
    """Chunks a stream."""
    tokens: int = 1
    """Tokens a chunk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCost:
    """What the client added to what the server did. Errors are absolute, against the server's own record."""

    chunks: int
    us_per_chunk: float
    """CPU microseconds of the load process during the replay, over chunks."""
    ttft_error_p99_ms: float
    """Client's TTFT against first chunk sent - request received."""
    itl_error_p50_ms: float
    """Client's gap between two chunks against the server's."""
    itl_error_p99_ms: float
    wall_over_ideal: float
    """First dispatch to last end, over chunks x interval."""
    server_wall_over_ideal: float
    """The server's own: first request received to last chunk sent, over chunks x interval."""
    fixed_cpu_seconds: float
    """CPU of the load process outside the replay: start, reading the job, writing, exit."""
    peak_rss_mib: float
    loop_lag_p99_ms: float
    send_lag_p99_ms: float
    cpu_share: float
    """Cores."""


class NullServerProcess:
    """The null server, in a process of its own on loopback."""

    def __init__(self, pour: Pour, truth: Path, cpus: Sequence[int] = ()) -> None:
        self._truth = truth
        words = [str(pour.interval), str(pour.interval), str(pour.tokens), str(truth)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "jobs.replay.null_server", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).resolve().parents[2],
        )
        assert self._process.stdout is not None
        port = self._process.stdout.readline().strip()
        if not port:
            message = f"the null server ended with {self._process.wait()} before it listened"
            raise ReplayError(message)
        if cpus:
            os.sched_setaffinity(self._process.pid, cpus)
        self.url = f"http://127.0.0.1:{int(port)}"

    def stop(self) -> list[tuple[int, int, npt.NDArray[np.int64]]]:
        """End the server; return each request's key, when it was received and when its chunks were sent."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
        flat = np.fromfile(self._truth, dtype=np.int64) if self._truth.exists() else np.array([], np.int64)
        found = []
        at = 0
        while at < len(flat):
            key, received, count = (int(value) for value in flat[at : at + 3])
            found.append((key, received, flat[at + 3 : at + 3 + count]))
            at += 3 + count
        return found


def measure_client(
    pour: Pour, directory: Path, *, client_cpus: Sequence[int] = (), server_cpus: Sequence[int] = ()
) -> ClientCost:
    """Play one pour with one load process against the null server and hold the two records together.

    Raises:
        ReplayError: the load process failed, or a request did.
    """
    directory.mkdir(parents=True, exist_ok=True)
    server = NullServerProcess(pour, directory / "truth.bin", server_cpus)
    job = ReplayJob(
        urls=(server.url,),
        model="null",
        workload="",
        order=tuple((index, 0) for index in range(pour.streams)),
        concurrency=pour.streams,
        salt=None,
        cpus=tuple(client_cpus),
    )
    try:
        before = _children_cpu()
        data = run_replay(job, _workload(pour), directory / "replay")
        cpu = _children_cpu() - before
    finally:
        truth = server.stop()
    if data.summary.errors:
        request = next(request for request in data.requests if request.error is not None)
        message = (
            f"{data.summary.errors} of {data.summary.requests} requests to the null server failed, the first "
            f"with {request.error}: {request.error_detail}"
        )
        raise ReplayError(message)
    return _compare(pour, data, truth, cpu)


def _workload(pour: Pour) -> TokenWorkload:
    """Return a conversation of one turn for each stream; the first token tells which."""
    conversations = [
        TokenConversation(
            id=str(index),
            turns=(
                TokenTurn(
                    keep=0,
                    suffix=(index, *range(1000, 999 + PROMPT_TOKENS)),
                    output_tokens=pour.chunks * pour.tokens,
                ),
            ),
        )
        for index in range(pour.streams)
    ]
    return TokenWorkload(
        name="null", conversations=tuple(conversations), validity="synthetic", tokenizer="none"
    )


def _compare(
    pour: Pour, data: ReplayData, truth: list[tuple[int, int, npt.NDArray[np.int64]]], cpu: float
) -> ClientCost:
    sent = {key: (received, times) for key, received, times in truth}
    ttft_errors, itl_errors = [], []
    for request in data.requests:
        received, times = sent[int(request.conversation)]
        mine = data.chunks["time"][request.chunk_offset : request.chunk_offset + request.chunks]
        if len(mine) != len(times):
            message = f"stream {request.conversation}: {len(times)} chunks were sent, {len(mine)} counted"
            raise ReplayError(message)
        ttft_errors.append((mine[0] - request.dispatched) - (times[0] - received))
        itl_errors.append(np.diff(mine) - np.diff(times))
    summary = data.summary
    itl = np.abs(np.concatenate(itl_errors))
    ideal = pour.chunks * pour.interval * 1e9
    chunks = len(data.chunks)
    first, last = min(received for _, received, _ in truth), max(int(times[-1]) for _, _, times in truth)
    return ClientCost(
        chunks=chunks,
        us_per_chunk=summary.cpu_seconds / chunks * 1e6,
        ttft_error_p99_ms=float(np.percentile(np.abs(ttft_errors), 99)) / MS,
        itl_error_p50_ms=float(np.percentile(itl, 50)) / MS,
        itl_error_p99_ms=float(np.percentile(itl, 99)) / MS,
        wall_over_ideal=(summary.ended - summary.started) / ideal,
        server_wall_over_ideal=(last - first) / ideal,
        fixed_cpu_seconds=cpu - summary.cpu_seconds,
        peak_rss_mib=summary.peak_rss_mib,
        loop_lag_p99_ms=summary.loop_lag_p99_ms,
        send_lag_p99_ms=summary.send_lag_p99_ms,
        cpu_share=summary.cpu_share,
    )


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
