"""The load process: `python -m jobs.replay JOBDIR` plays the job in that folder and writes its results there.

Standard input is a pipe of the process that started it. When it closes, that process is gone and so this one
ends.
"""

import asyncio
import gc
import os
import sys
from pathlib import Path

import msgspec
import uvloop

from jobs.replay.files import CHUNKS_FILE, JOB_FILE, SUMMARY_FILE
from jobs.replay.job import ReplayJob, ReplaySummary
from jobs.replay.log import ReplayLog
from jobs.replay.users import ClosedLoop
from jobs.workload.token_file import read
from jobs.workload.tokens import TokenWorkload

ORPHANED = 3
"""Exit code when the caller ended first."""


def main() -> None:
    """Play the job whose folder is the only argument."""
    directory = Path(sys.argv[1])
    job = msgspec.json.decode((directory / JOB_FILE).read_bytes(), type=ReplayJob)
    if job.cpus:
        os.sched_setaffinity(0, job.cpus)
    workload = read(job.workload)
    with (directory / CHUNKS_FILE).open("wb") as chunks:
        log = ReplayLog(chunks)
        # Nothing of the workload is garbage, and a collection in the middle of a replay would be lag of ours.
        gc.collect()
        gc.freeze()
        gc.disable()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            play = runner.run(_play(job, workload, log))
    log.write(directory)
    (directory / SUMMARY_FILE).write_bytes(msgspec.json.encode(_summary(play, log)))


async def _play(job: ReplayJob, workload: TokenWorkload, log: ReplayLog) -> ClosedLoop:
    loop = asyncio.get_running_loop()
    loop.add_reader(sys.stdin.fileno(), _end_if_orphaned)
    play = ClosedLoop(job, workload, log)
    await play.play()
    loop.remove_reader(sys.stdin.fileno())
    return play


def _end_if_orphaned() -> None:
    if not os.read(sys.stdin.fileno(), 1):
        os._exit(ORPHANED)


def _summary(play: ClosedLoop, log: ReplayLog) -> ReplaySummary:
    records = log.records
    return ReplaySummary(
        started=min(record.dispatched for record in records),
        ended=max(record.ended for record in records),
        window_start=play.window.start,
        window_end=play.window.end,
        loop_lag_p99_ms=play.check.lag_p99_ms,
        cpu_seconds=play.check.cpu_seconds,
        cpu_share=play.check.cpu_share,
        peak_rss_mib=play.check.peak_rss_mib,
        requests=len(records),
        errors=sum(record.error is not None for record in records),
    )


if __name__ == "__main__":
    main()
