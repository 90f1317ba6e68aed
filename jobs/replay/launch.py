"""Starting the load processes and waiting for them, from the actor that owns the engine."""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec

from jobs.errors import ReplayError
from jobs.replay.data import ReplayData, load_replay
from jobs.replay.files import JOB_FILE, QUEUE_FILE, WORKLOAD_FILE
from jobs.replay.job import ReplayJob
from jobs.replay.process import LoadProcess
from jobs.replay.shared_order import open_queue
from jobs.workload import token_file
from jobs.workload.tokens import TokenWorkload

POLL_SECONDS = 0.5
GRACE_SECONDS = 30.0
"""How long past its own deadline a load process may take to write its files."""
START_SECONDS = 0.05
"""From the last process' `ready` to the common start: time for the word to reach all of them."""


def run_replay(
    job: ReplayJob,
    workload: TokenWorkload | str | Path,
    directory: Path,
    *,
    watch: Callable[[], None] | None = None,
) -> ReplayData:
    """Play `job` in processes of its own and return what they measured.

    The processes hold the read end of a pipe of ours and end themselves when it closes: they never outlive
    their caller, whichever way that ends. They start together, when all of them are connected.

    Args:
        job: What to play; its `workload` path is set here.
        workload: The token workload, or the path of its file (then it is read where it lies).
        directory: Working folder of this replay; created, and kept.
        watch: Called about twice a second; what it raises stops the load processes and is raised here.

    Raises:
        ReplayError: a load process failed; the message ends with its last lines.
        SilentReplicaError: a replica hangs; the replay was ended a stall time after its last token.
    """
    assert job.arrivals is not None or 1 <= job.shards <= job.concurrency, "a process without a user"
    directory = directory.absolute()
    directory.mkdir(parents=True, exist_ok=True)
    if isinstance(workload, TokenWorkload):
        token_file.write(workload, directory / WORKLOAD_FILE)
        path = directory / WORKLOAD_FILE
    else:
        path = Path(workload).absolute()
    job = replace(job, workload=str(path))
    (directory / JOB_FILE).write_bytes(msgspec.json.encode(job))
    queue = open_queue(directory / QUEUE_FILE, len(job.order))
    processes: list[LoadProcess] = []
    try:
        for shard in range(job.shards):
            process = LoadProcess(directory, shard, queue, set(job.header_variables.values()))
            processes.append(process)
        _watched(processes, "ready", job, watch)
        start = time.monotonic_ns() + int(START_SECONDS * 1e9)
        for process in processes:
            process.go(start)
        _watched(processes, "ended", job, watch)
    finally:
        os.close(queue)
        for process in processes:
            process.stop()
    return load_replay(directory)


def _watched(
    processes: list[LoadProcess], stage: str, job: ReplayJob, watch: Callable[[], None] | None
) -> None:
    """Wait until all processes are `ready` or have `ended`; raise as soon as one fails."""
    limit = time.monotonic() + job.deadline_seconds + GRACE_SECONDS
    waiting = list(processes)
    while waiting:
        reached = waiting[0].wait_ready(POLL_SECONDS) if stage == "ready" else waiting[0].wait(POLL_SECONDS)
        for process in processes:
            process.check()
        if reached:
            waiting.pop(0)
            continue
        if watch is not None:
            watch()
        if time.monotonic() > limit:
            message = (
                f"a load process has not {'got ready' if stage == 'ready' else 'ended'} "
                f"{GRACE_SECONDS:.0f} s after the replay's deadline of {job.deadline_seconds:.0f} s"
            )
            raise ReplayError(message)
