"""Where one load process ends on this machine: measured against a server that only streams."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from jobs.cores import CoreLease
from jobs.gates.client import CPU_CORES, LAG_MS
from jobs.replay.ceiling import ClientCost, Pour, measure_client
from jobs.replay.shards import STREAMS_PER_PROCESS
from orchestrator.doctor import NOTE, OK, Finding

POURS = (
    Pour(streams=32, interval=0.02, chunks=100),
    Pour(streams=256, interval=0.02, chunks=100),
    Pour(streams=256, interval=0.005, chunks=400),
)
"""A light load, the one that a load process is sized for, and one that costs it most of a core."""
SECONDS = sum(pour.interval * pour.chunks + 0.7 for pour in POURS)
"""About how long `ceiling` takes, processes' starts included."""
STEP = 0.02
"""The pace that the ceiling is told in: seconds between two chunks of a stream."""


def ceiling(pours: Sequence[Pour] = POURS) -> Iterator[Finding]:
    """Yield a finding for each pour, then the ceiling that follows from the last one.

    Raises:
        ReplayError: the load process or the null server failed.
    """
    with CoreLease(engine=1, load=1) as lease, tempfile.TemporaryDirectory() as folder:
        cores = lease.cores
        shared = cores.oversubscribed
        detail = f"server on {_named(cores.engine)}, load process on {_named(cores.load)}"
        remedy = "client and server disturb each other here: read the lags as upper bounds" if shared else ""
        yield Finding(what="cores", state=NOTE if shared else OK, detail=detail, remedy=remedy)
        for number, pour in enumerate(pours):
            cost = measure_client(
                pour, Path(folder) / str(number), client_cpus=cores.load, server_cpus=cores.engine
            )
            yield _finding(pour, cost)
    yield _ceiling(cost)


def _finding(pour: Pour, cost: ClientCost) -> Finding:
    late = max(cost.loop_lag_p99_ms, cost.send_lag_p99_ms) > LAG_MS
    return Finding(
        what=f"{pour.streams} streams, {pour.interval * 1e3:g} ms",
        state=NOTE if late or cost.cpu_share > CPU_CORES else OK,
        detail=(
            f"{cost.us_per_chunk:.1f} us of CPU a chunk, {cost.cpu_share:.0%} of a core, loop lag p99 "
            f"{cost.loop_lag_p99_ms:.2f} ms, send lag p99 {cost.send_lag_p99_ms:.2f} ms, TTFT error p99 "
            f"{cost.ttft_error_p99_ms:.2f} ms, ITL error p99 {cost.itl_error_p99_ms:.2f} ms"
        ),
        remedy=f"lag above {LAG_MS:g} ms would fail a cell's gates: is something else running?"
        if late
        else "",
    )


def _ceiling(cost: ClientCost) -> Finding:
    """Return what one load process carries within the CPU that the gates allow it."""
    rate = CPU_CORES / cost.us_per_chunk * 1e6
    return Finding(
        what="ceiling of one process",
        state=OK,
        detail=(
            f"{rate:,.0f} chunks/s within {CPU_CORES:.0%} of a core ({1e6 / cost.us_per_chunk:,.0f} on a "
            f"whole one): {rate * STEP:,.0f} streams at {STEP * 1e3:g} ms a chunk"
        ),
        remedy=f"a replay takes another load process for every {STREAMS_PER_PROCESS} streams",
    )


def _named(cores: Sequence[int]) -> str:
    return f"core{'' if len(cores) == 1 else 's'} {', '.join(map(str, cores))}"
