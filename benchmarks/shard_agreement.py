"""Do one load process and several tell the same story? The same replay by 1 and by N processes, in turn.

    python benchmarks/shard_agreement.py [--shards 4] [--rounds 4] [--users 64]

The engine is the emulator on its calibrated time, noise off, on a core of its own; the load processes share
the others. Runs alternate 1, N, N, 1, ... so that drift hits both alike. Work has to be equal to the token.
For each figure the table shows the medians, their ratio, and the spread of the runs of one process among
themselves: a ratio inside it is agreement. The last line is JSON.
"""

import argparse
import json
import math
import os
import statistics
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from engines.acceptance import Acceptance
from engines.emulator import EMULATOR_VERSION
from engines.emulator.adapter import EmulatorEngine
from engines.spec import Drafter, EngineConfig, Model
from jobs.cores import Cores
from jobs.fleet import Fleet
from jobs.measures.timing import e2el_ms, icl_ms, itl_ms, quantile, tpot_ms, ttft_ms, user_speed_tok_s
from jobs.replay.data import ReplayData
from jobs.replay.job import ReplayJob
from jobs.replay.launch import run_replay
from jobs.workload.tokens import TokenConversation, TokenTurn, TokenWorkload

CONFIG = EngineConfig(
    engine="emulator",
    version=EMULATOR_VERSION,
    model=Model(name="llama-3.1-8b", max_context=4096),
    drafter=Drafter(method="ngram", k=3, acceptance=Acceptance(alpha=0.7)),
    device="emulated",
    flags={"gpu": "h100", "noise": {"start": 0.0, "drift": 0.0, "step": 0.0}},
)


def main() -> int:
    """Run both in turn, print the table and, last, one line of JSON."""
    parser = argparse.ArgumentParser(description="agreement of one load process and several")
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=4, help="runs of each")
    parser.add_argument("--users", type=int, default=64)
    options = parser.parse_args()
    found = sorted(os.sched_getaffinity(0))
    cores = Cores(
        engine=tuple(found[:1]),
        load=tuple(found[1:] or found),
        oversubscribed=len(found) < 1 + options.shards,
    )
    fleet = Fleet(EmulatorEngine(), CONFIG, name="agreement", devices=1, device_names=(), cores=cores)
    runs: dict[int, list[ReplayData]] = {1: [], options.shards: []}
    try:
        fleet.start(ready_seconds=60.0)
        for round_number in range(options.rounds):
            turn = (1, options.shards) if round_number % 2 == 0 else (options.shards, 1)
            for shards in turn:
                runs[shards].append(play(fleet, cores, options.users, shards, round_number))
    finally:
        fleet.stop(grace=5.0)
        fleet.remove_files()
    works = {frozenset(work(data).items()) for made in runs.values() for data in made}
    figures = {shards: [measured(data) for data in made] for shards, made in runs.items()}
    print(f"emulated engine on core {cores.engine}, load processes on {cores.load}, {options.users} users")
    print(f"requests {len(runs[1][0].requests)}, equal work in all runs: {len(works) == 1}")
    print(
        f"{'figure':<22}{'1 process':>12}{f'{options.shards} processes':>14}{'ratio':>9}{'spread of 1':>13}"
    )
    ratios = {}
    for name in figures[1][0]:
        one, many = ([run[name] for run in figures[shards]] for shards in (1, options.shards))
        ratio = statistics.median(many) / statistics.median(one)
        ratios[name] = round(ratio, 4)
        print(
            f"{name:<22}{statistics.median(one):>12.3f}{statistics.median(many):>14.3f}{ratio:>9.4f}"
            f"{spread(one):>12.1%}"
        )
    print(json.dumps({"equal_work": len(works) == 1, "shards": options.shards, "ratios": ratios}))
    return 0 if len(works) == 1 else 1


def workload(users: int) -> TokenWorkload:
    """Return four conversations of two turns a user."""
    made = []
    for number in range(4 * users):
        first = TokenTurn(keep=0, suffix=tuple(range(number, number + 200)), output_tokens=80 + number % 40)
        second = TokenTurn(keep=200, suffix=tuple(range(500, 600)), output_tokens=100)
        made.append(TokenConversation(id=f"c{number}", turns=(first, second)))
    return TokenWorkload(name="made", conversations=tuple(made), validity="synthetic", tokenizer="none")


def play(fleet: Fleet, cores: Cores, users: int, shards: int, number: int) -> ReplayData:
    """Replay once."""
    played = workload(users)
    job = ReplayJob(
        urls=tuple(server.url for server in fleet.servers),
        model=CONFIG.model.name,
        workload="",
        order=tuple((index, 0) for index in range(len(played.conversations))),
        concurrency=users,
        salt=f"agreement-{shards}-{number}",
        request_options=dict(fleet.engine.capabilities.request_options),
        cpus=cores.load,
        shards=shards,
    )
    with tempfile.TemporaryDirectory() as folder:
        return run_replay(job, played, Path(folder))


def work(data: ReplayData) -> Counter[tuple[object, ...]]:
    """Return what was asked for and came back."""
    return Counter(
        (r.conversation, r.turn, r.prompt_tokens, r.completion_tokens, r.error) for r in data.requests
    )


def measured(data: ReplayData) -> dict[str, float]:
    """Return the figures that must not depend on the number of processes."""
    seconds = (data.summary.ended - data.summary.started) / 1e9
    latencies = {
        "TTFT p50 ms": quantile(ttft_ms(data.succeeded), 50),
        "TTFT p95 ms": quantile(ttft_ms(data.succeeded), 95),
        "TPOT p50 ms": quantile(tpot_ms(data.succeeded), 50),
        "ITL p50 ms": quantile(itl_ms(data.chunks), 50),
        "chunk gap p99 ms": quantile(icl_ms(data.chunks), 99),
        "E2EL p95 ms": quantile(e2el_ms(data.succeeded), 95),
        "user speed tok/s": user_speed_tok_s(data.succeeded),
    }
    return {
        **{name: math.nan if value is None else value for name, value in latencies.items()},
        "output tok/s": sum(r.completion_tokens or 0 for r in data.succeeded) / seconds,
        "send lag p99 ms": data.summary.send_lag_p99_ms,
        "loop lag p99 ms": data.summary.loop_lag_p99_ms,
    }


def spread(values: Sequence[float]) -> float:
    """Return (largest - smallest) / median."""
    return (max(values) - min(values)) / statistics.median(values)


if __name__ == "__main__":
    raise SystemExit(main())
