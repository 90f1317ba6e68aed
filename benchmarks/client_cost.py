"""What the load process costs and how far off its times are, against a server that only streams.

    python benchmarks/client_cost.py [--runs 3] [--peer 'COMMAND'] [--short]

Client and server get a core each. The server (`jobs/replay/null_server.py`) paces the chunks of each stream
in the form in which vLLM streams and writes down when it really sent each of them, with the clock the client
uses; what is reported is the client's figure minus the server's truth. The client is the load process that
every cell uses. Figures are medians of the runs.

A peer is run beside it where its command is given; in it {url}, {streams}, {chunks} and {model} are replaced,
and it is asked for the same streams. Of a peer only CPU seconds and wall time are known, its start included:

    --peer 'vllm bench serve --backend openai --base-url {url} --model {model} --tokenizer FOLDER
            --dataset-name random --random-input-len 64 --random-output-len {chunks} --ignore-eos
            --num-prompts {streams} --max-concurrency {streams}'
"""

import argparse
import json
import os
import resource
import shlex
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jobs.replay.ceiling import ClientCost, NullServerProcess, Pour, measure_client

POURS = {
    "256x20ms": Pour(streams=256, interval=0.02, chunks=200),
    "32x20ms": Pour(streams=32, interval=0.02, chunks=200),
    "256x5ms": Pour(streams=256, interval=0.005, chunks=1000),
}
TARGETS = {
    "us_per_chunk_256x20ms": 15.0,
    "ttft_err_p99_ms_256x20ms": 15.0,
    "itl_err_p99_ms_256x20ms": 1.5,
    "ttft_err_p99_ms_32x20ms": 1.5,
    "wall_over_ideal_256x5ms": 1.02,
    "itl_err_p50_ms_256x5ms": 0.1,
    "fixed_cpu_s": 0.5,
    "peak_rss_mib": 80.0,
}
"""What has to be reached; all of them are upper limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """What another client took for the same streams."""

    cpu_seconds: float
    wall_seconds: float
    chunks: int
    """Chunks the server sent to it."""


def main() -> int:
    """Run the loads, print the table and, last, one line of JSON."""
    parser = argparse.ArgumentParser(description="cost and errors of the load process")
    parser.add_argument("--runs", type=int, default=3, help="runs of each load; medians are reported")
    parser.add_argument("--peer", help="command of another client, with {url}, {streams}, {chunks}, {model}")
    parser.add_argument("--short", action="store_true", help="a tenth of the chunks: to see that it works")
    options = parser.parse_args()
    server_cpus, client_cpus = cores()
    print(f"server on core {server_cpus}, client on core {client_cpus}; medians of {options.runs} runs")
    medians: dict[str, ClientCost] = {}
    for name, pour in POURS.items():
        load = shortened(pour) if options.short else pour
        costs = [run(load, server_cpus, client_cpus) for _ in range(options.runs)]
        medians[name] = median(costs)
        show(name, medians[name])
        if options.peer:
            show_peer(load, run_peer(options.peer, load, server_cpus, client_cpus))
    figures = summary(medians)
    print(f"\n{'figure':<28}{'measured':>10}{'must reach':>12}")
    for name, value in figures.items():
        verdict = "" if value <= TARGETS[name] else "  MISSED"
        print(f"{name:<28}{value:>10.3f}{'<= ' + format(TARGETS[name], 'g'):>12}{verdict}")
    print(json.dumps({name: round(value, 4) for name, value in figures.items()}))
    return 0


def cores() -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the server's and the client's core; both run anywhere where there is only one."""
    found = sorted(os.sched_getaffinity(0))
    return ((found[0],), (found[1],)) if len(found) > 1 else ((), ())


def shortened(pour: Pour) -> Pour:
    """Return the same streams with a tenth of the chunks."""
    return Pour(streams=pour.streams, interval=pour.interval, chunks=pour.chunks // 10)


def run(pour: Pour, server_cpus: Sequence[int], client_cpus: Sequence[int]) -> ClientCost:
    """Run one load once."""
    with tempfile.TemporaryDirectory() as folder:
        return measure_client(pour, Path(folder), client_cpus=client_cpus, server_cpus=server_cpus)


def median(costs: Sequence[ClientCost]) -> ClientCost:
    """Return the median of each figure."""
    names = ClientCost.__dataclass_fields__
    return ClientCost(**{name: statistics.median(getattr(cost, name) for cost in costs) for name in names})


def summary(medians: dict[str, ClientCost]) -> dict[str, float]:
    """Return the figures by their published names."""
    many, few, fast = medians["256x20ms"], medians["32x20ms"], medians["256x5ms"]
    return {
        "us_per_chunk_256x20ms": many.us_per_chunk,
        "ttft_err_p99_ms_256x20ms": many.ttft_error_p99_ms,
        "itl_err_p99_ms_256x20ms": many.itl_error_p99_ms,
        "ttft_err_p99_ms_32x20ms": few.ttft_error_p99_ms,
        "wall_over_ideal_256x5ms": fast.wall_over_ideal,
        "itl_err_p50_ms_256x5ms": fast.itl_error_p50_ms,
        "fixed_cpu_s": max(cost.fixed_cpu_seconds for cost in medians.values()),
        "peak_rss_mib": max(cost.peak_rss_mib for cost in medians.values()),
    }


def show(name: str, cost: ClientCost) -> None:
    """Print a load's line of the table."""
    print(
        f"{name:>9}: {cost.us_per_chunk:5.1f} us/chunk ({cost.cpu_share:.0%} of a core), TTFT error p99 "
        f"{cost.ttft_error_p99_ms:.2f} ms, ITL error p50 {cost.itl_error_p50_ms:.3f} ms, p99 "
        f"{cost.itl_error_p99_ms:.2f} ms, wall/ideal {cost.wall_over_ideal:.3f} "
        f"(server {cost.server_wall_over_ideal:.3f}), loop lag p99 {cost.loop_lag_p99_ms:.2f} ms, "
        f"send lag p99 {cost.send_lag_p99_ms:.2f} ms, fixed CPU {cost.fixed_cpu_seconds:.2f} s, "
        f"{cost.peak_rss_mib:.0f} MiB"
    )


def run_peer(template: str, pour: Pour, server_cpus: Sequence[int], client_cpus: Sequence[int]) -> Peer:
    """Run another client against a fresh server."""
    with tempfile.TemporaryDirectory() as folder:
        server = NullServerProcess(pour, Path(folder) / "truth.bin", server_cpus)
        asked = {
            "url": server.url,
            "streams": pour.streams,
            "chunks": pour.chunks * pour.tokens,
            "model": "null",
        }
        command = template
        for name, value in asked.items():
            command = command.replace(f"{{{name}}}", str(value))
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        try:
            bind = (lambda: os.sched_setaffinity(0, client_cpus)) if client_cpus else None
            subprocess.run(shlex.split(command), check=True, preexec_fn=bind, stdout=subprocess.DEVNULL)
            wall = time.monotonic() - begun
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        finally:
            truth = server.stop()
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Peer(cpu_seconds=cpu, wall_seconds=wall, chunks=sum(len(times) for _, _, times in truth))


def show_peer(pour: Pour, peer: Peer) -> None:
    """Print the peer's line below it."""
    ideal = pour.chunks * pour.interval
    print(
        f"     peer: {peer.cpu_seconds:.1f} s of CPU for {peer.chunks} chunks "
        f"({peer.cpu_seconds / max(1, peer.chunks) * 1e6:.0f} us/chunk, start included), "
        f"wall {peer.wall_seconds:.1f} s (the load alone: {ideal:.1f} s)"
    )


if __name__ == "__main__":
    raise SystemExit(main())
