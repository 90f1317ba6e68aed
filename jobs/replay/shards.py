"""How many load processes a replay takes, and how their results become one."""

from collections.abc import Sequence

from jobs.replay.job import ReplaySummary

STREAMS_PER_PROCESS = 256
"""Concurrent streams one load process carries with room to spare.

Set from `benchmarks/client_cost.py` on one core of a virtual machine: 256 streams with a chunk each 20 ms, a
quick engine's pace at that concurrency, take 0.28 of it and are stamped 3 ms late at the 99th percentile;
with a chunk each 5 ms they take 0.91, and the CPU gate would refuse the cell.
"""


def shards_for(concurrency: int, cores: int) -> int:
    """Return the number of load processes for `concurrency` streams on `cores` cores for the load.

    One for each 256 streams, but never more than there are cores: two processes on one core would disturb
    each other. The client gates say where that is too few.
    """
    return max(1, min(cores, -(-concurrency // STREAMS_PER_PROCESS)))


def merged(summaries: Sequence[ReplaySummary]) -> ReplaySummary:
    """Return the summary of the whole replay from those of its processes.

    The window starts when the last user of all processes has finished its first conversation and ends when
    the first user of any finds no work. Of the processes' own condition the worst counts.
    """
    starts = [summary.window_start for summary in summaries]
    known = [start for start in starts if start is not None]
    ends = [summary.window_end for summary in summaries if summary.window_end is not None]
    busy = [summary for summary in summaries if summary.requests] or summaries
    return ReplaySummary(
        started=min(summary.started for summary in busy),
        ended=max(summary.ended for summary in busy),
        window_start=max(known) if len(known) == len(starts) else None,
        window_end=min(ends, default=None),
        loop_lag_p99_ms=max(summary.loop_lag_p99_ms for summary in summaries),
        send_lag_p99_ms=max(summary.send_lag_p99_ms for summary in summaries),
        cpu_seconds=sum(summary.cpu_seconds for summary in summaries),
        cpu_share=max(summary.cpu_share for summary in summaries),
        peak_rss_mib=max(summary.peak_rss_mib for summary in summaries),
        processes=sum(summary.processes for summary in summaries),
        cap_waits=sum(summary.cap_waits for summary in summaries),
        requests=sum(summary.requests for summary in summaries),
        errors=sum(summary.errors for summary in summaries),
    )
