"""A load process: `python -m jobs.replay JOBDIR SHARD QUEUE` plays its share of the job in that folder.

SHARD is its number among the job's `shards`, QUEUE the descriptor of the open queue (see `shared_order`).
Results go to the shard's own folder. `launch` holds the other end of standard input and output.
"""

import asyncio
import gc
import os
import sys
from pathlib import Path

import msgspec
import uvloop

from jobs.errors import SilentReplicaError
from jobs.replay.caller import SILENT, Caller
from jobs.replay.clock import percentile_99
from jobs.replay.files import JOB_FILE, SUMMARY_FILE, shard_folder
from jobs.replay.job import ReplayJob, ReplaySummary
from jobs.replay.log import ReplayLog
from jobs.replay.player import Player
from jobs.replay.shared_order import SharedOrder
from jobs.workload.token_file import read
from jobs.workload.tokens import TokenWorkload


def main() -> None:
    """Play one shard of the job whose folder is the first argument."""
    directory, shard, queue = Path(sys.argv[1]), int(sys.argv[2]), SharedOrder(int(sys.argv[3]))
    job = msgspec.json.decode((directory / JOB_FILE).read_bytes(), type=ReplayJob)
    if job.cpus:
        cores = job.cpus if job.shards == 1 else (job.cpus[shard % len(job.cpus)],)
        os.sched_setaffinity(0, cores)
    folder = shard_folder(directory, shard)
    try:
        summary = _replay(job, folder, queue, shard)
    except ValueError as error:
        sys.exit(str(error))  # what a user can fix, in its own words
    except SilentReplicaError as error:
        sys.stderr.write(str(error))
        sys.exit(SILENT)
    (folder / SUMMARY_FILE).write_bytes(msgspec.json.encode(summary))


def _replay(job: ReplayJob, folder: Path, queue: SharedOrder, shard: int) -> ReplaySummary:
    workload = read(job.workload)
    with ReplayLog(folder) as log:
        # Nothing of the workload is garbage, and a collection in the middle of a replay would be lag of ours.
        gc.collect()
        gc.freeze()
        gc.disable()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_play(job, workload, log, queue, shard))


async def _play(
    job: ReplayJob, workload: TokenWorkload, log: ReplayLog, queue: SharedOrder, shard: int
) -> ReplaySummary:
    caller = Caller()
    player = Player(job, workload, log, queue=queue, shard=shard)
    await player.open()
    start = await caller.start()
    await player.play(start)
    caller.close()
    window_start, window_end = player.window
    return ReplaySummary(
        started=start if log.started is None else log.started,
        ended=start if log.ended is None else log.ended,
        window_start=window_start,
        window_end=window_end,
        loop_lag_p99_ms=player.check.lag_p99_ms,
        send_lag_p99_ms=percentile_99(log.send_lags) / 1e6,
        cpu_seconds=player.check.cpu_seconds,
        cpu_share=player.check.cpu_share,
        peak_rss_mib=player.check.peak_rss_mib,
        processes=1,
        cap_waits=player.cap_waits,
        requests=log.requests,
        errors=log.errors,
    )


if __name__ == "__main__":
    main()
