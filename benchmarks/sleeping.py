"""A runner that only sleeps, and plans for it: all of a sweep is real but the engines and the load.

`SleepingRunner` stands where `jobs.block.BlockRunner` does. It starts nothing: it sleeps as long as an engine
would take to start and a replay to play, and reports as a block does, with cells of the usual size.
"""

import random
import time
from collections.abc import Iterator, Mapping, Sequence

from engines.digest import seed_of
from engines.spec import Drafter, EngineConfig, Layout, Model
from jobs.cell import arm_fields
from jobs.load import LoadLevel
from jobs.metric_names import METRICS
from jobs.result import CLOSING, MEASURED, OPENING, TREATMENT, CellResult
from jobs.task import BlockTask, CellReport, CellTask, EngineReport, EngineStopped, Report, RunTask
from jobs.workload.bind import digest_of
from jobs.workload.tokens import TokenConversation, TokenTurn, TokenWorkload
from orchestrator.plan import Arm, Block, Cluster, Plan, Run, Timeouts, WorkloadRef

START, REPLAY = "start_seconds", "replay_seconds"
"""Flags of the sleeping engine: seconds of a start, and of a replay without a drafter."""
FILES = {"requests.parquet": bytes(24_000), "gauges.parquet": bytes(6_000), "slices.json": b"{}"}
"""What a cell leaves, of the usual size."""


class SleepingRunner:
    """Reports what a block would, after sleeping as long as it would take."""

    def run(self, task: BlockTask) -> Iterator[Report]:
        """Yield the reports of every run, in the order of the task."""
        for run in task.runs:
            seconds = float(run.config.flags[START])
            time.sleep(seconds)
            files = {"r0-command.json": b"{}", "r0-log.txt": b"asleep\n"}
            yield EngineReport(run=run.run, label=run.config.label, ready=True, seconds=seconds, files=files)
            for cell in run.cells:
                time.sleep(replay_seconds(run.config))
                yield CellReport(result=slept(task, run, cell), files=FILES)
            yield EngineStopped(run=run.run, files=files)


def replay_seconds(config: EngineConfig) -> float:
    """Return how long the sleeping engine plays one cell."""
    return float(config.flags[REPLAY]) * (1 + config.drafter.k / 8)


def slept(task: BlockTask, run: RunTask, cell: CellTask) -> CellResult:
    """Return a whole result with made-up figures: seeded, and within a percent in every block."""
    level = cell.level.concurrency or 1
    base = 1000.0 * level**0.8 * (1 + run.config.drafter.k / 20)
    draws = random.Random(seed_of(task.seed, task.block, cell.cell))
    return made_up(
        task,
        run,
        cell,
        metrics={name: base * draws.uniform(0.99, 1.01) for name in METRICS},
        seconds=replay_seconds(run.config),
        start_seconds=float(run.config.flags[START]),
    )


def made_up(
    task: BlockTask,
    run: RunTask,
    cell: CellTask,
    *,
    metrics: Mapping[str, float],
    seconds: float,
    start_seconds: float,
) -> CellResult:
    """Return the whole result of a cell that nobody measured, with these figures."""
    return CellResult(
        **arm_fields(run.config, cell.level),
        cell=cell.cell,
        block=task.block,
        segment=task.segment,
        round=task.round,
        kind=task.kind,
        role=run.role,
        outcome=MEASURED,
        devices=task.devices,
        replicas=task.devices // run.config.layout.devices,
        metrics=metrics,
        identity={"pair_key": run.config.baseline().digest, "workload": task.workload_digest, "run": run.run},
        started=time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()),
        seconds=seconds,
        start_seconds=start_seconds if cell is run.cells[0] else None,
    )


def arms_of(
    devices: int, drafts: Sequence[int], levels: Sequence[int], flags: Mapping[str, float]
) -> tuple[Arm, ...]:
    """Return a baseline on a layout of so many devices, and a treatment for each draft length."""
    drafters = [Drafter(), *(Drafter(method="ngram", k=k) for k in drafts)]
    return tuple(
        Arm(
            config=EngineConfig(
                engine="emulator",
                version="asleep",
                model=Model(name="asleep"),
                device="emulated",
                layout=Layout(tp=devices),
                drafter=drafter,
                flags=dict(flags),
            ),
            levels=tuple(LoadLevel(concurrency=level) for level in levels),
        )
        for drafter in drafters
    )


def block_of(index: int, arms: Sequence[Arm], levels: int | None = None) -> Block:
    """Return a block of arms of one layout, baseline first, at the first so many of their levels."""
    baseline, *treatments = arms
    order = [(baseline, OPENING), *((arm, TREATMENT) for arm in treatments), (baseline, CLOSING)]
    runs = tuple(Run(arm=arm.digest, role=role, levels=arm.levels[:levels]) for arm, role in order)
    return Block(index=index, devices=baseline.config.layout.devices, runs=runs)


def plan_of(name: str, arms: Sequence[Arm], blocks: Sequence[Block], cluster: Cluster) -> Plan:
    """Return the plan of hand-made blocks."""
    return Plan(
        name=name,
        arms=tuple(arms),
        refused=(),
        blocks=tuple(blocks),
        workload=WorkloadRef(
            name="asleep", format="builtin", paths=(), digest=workload_digest(), conversations=1, turns=1
        ),
        cluster=cluster,
        timeouts=Timeouts(),
        seed=0,
        threshold=0.02,
        tracking={"uri": "disabled", "experiment": None, "required": False},
    )


def workload() -> TokenWorkload:
    """Return the smallest workload there is: nobody replays it."""
    turn = TokenTurn(keep=0, suffix=(1, 2, 3), output_tokens=1)
    return TokenWorkload(
        name="asleep",
        conversations=(TokenConversation(id="one", turns=(turn,)),),
        validity="hashed",
        tokenizer="asleep",
    )


def workload_digest() -> str:
    """Return the digest of `workload`, as the ledger checks it."""
    return digest_of(workload())
