"""A small plan to run things on: one layout, a baseline and two treatments, two blocks."""

import pytest

from engines.spec import Drafter, EngineConfig, Model
from jobs.load import LoadLevel
from jobs.result import CLOSING, OPENING, TREATMENT, CellResult
from orchestrator.counts import Counts
from orchestrator.pending import Segment, cell_id, pending
from orchestrator.plan import Arm, Block, Cluster, Plan, Run, Timeouts, WorkloadRef

LEVELS = (LoadLevel(concurrency=1), LoadLevel(concurrency=4))


def arm(drafter: Drafter) -> Arm:
    config = EngineConfig(
        engine="emulator", version="1", model=Model(name="m"), device="emulated", drafter=drafter
    )
    return Arm(config=config, levels=LEVELS)


@pytest.fixture
def small_plan() -> Plan:
    baseline = arm(Drafter())
    treatments = [arm(Drafter(method="ngram", k=k)) for k in (3, 7)]
    runs = (
        Run(arm=baseline.digest, role=OPENING, levels=LEVELS),
        *(Run(arm=treatment.digest, role=TREATMENT, levels=LEVELS) for treatment in treatments),
        Run(arm=baseline.digest, role=CLOSING, levels=LEVELS),
    )
    return Plan(
        name="study",
        arms=(baseline, *treatments),
        refused=(),
        blocks=tuple(Block(index=index, devices=1, runs=runs) for index in range(2)),
        workload=WorkloadRef(name="w", format="builtin", paths=(), digest="d", conversations=8, turns=16),
        cluster=Cluster(address=None, resource="engine_slot", slots=1, cpus_per_device=1.0, load_cpus=1.0),
        timeouts=Timeouts(),
        seed=0,
        threshold=0.02,
        tracking={"uri": None, "experiment": None},
    )


def outcome(
    plan: Plan, segment: Segment, run: Run, level: LoadLevel, *, kind: str = "measured"
) -> CellResult:
    config = plan.arm(run.arm).config
    return CellResult(
        cell=cell_id(plan, segment, run, level),
        arm=run.arm,
        arm_label=config.label,
        layout=config.layout.label,
        drafter=config.drafter.method,
        k=config.drafter.k,
        concurrency=level.concurrency,
        rate=level.rate,
        rate_scale=level.rate_scale,
        block=segment.block.index,
        segment=segment.index,
        role=run.role,
        outcome=kind,
        emulated=True,
        started=f"2026-01-01T00:00:{run.role}",
    )


def outcomes(plan: Plan, segment: Segment) -> list[CellResult]:
    """Every cell of a segment, measured, in order."""
    return [outcome(plan, segment, run, level) for run in segment.runs for level in run.levels]


class Recorded:
    """Cells as a driver has them: recorded, and left of the plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.results: dict[str, CellResult] = {}

    def take(self, result: CellResult) -> CellResult:
        self.results[result.cell] = result
        return result

    def count(self) -> Counts:
        results = list(self.results.values())
        return Counts.of(results, pending(self.plan, results))
