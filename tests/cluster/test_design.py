"""A budget stops a sweep between blocks, the same words go on, and the winner is measured again."""

import logging
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.cluster_utils import Cluster as Nodes

from analysis.summary import summarise
from benchmarks.sleeping import made_up
from engines.digest import seed_of
from jobs.block import BlockRunner
from jobs.metric_names import METRICS
from jobs.result import (
    CLOSING,
    CONFIRMATION,
    INVALID,
    MEASURED,
    OPENING,
    PLANNED,
    SEARCH,
    TREATMENT,
    CellResult,
)
from jobs.task import BlockTask, CellReport, EngineReport, Report
from orchestrator.driver import run_sweep
from orchestrator.planning import make_plan
from orchestrator.status import FINISHED, read_status
from orchestrator.sweep import collect
from orchestrator.tracking import NullRecorder
from tests.cluster.conftest import SMALL

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

GRID = ("drafter.k=3,7", "load.concurrency=[1,2]", "design.blocks=2")


class Known:
    """A runner whose figures are known: what is emulated here is only the replay, not the sweep around it."""

    fresh = 1.4
    """Ratio of treatments in appended rounds; in planned ones 1.5 with K=3, 1.3 with K=7, at all loads."""

    def run(self, task: BlockTask) -> Iterator[Report]:
        """Yield each cell at once, with a noise of up to two per mille."""
        for run in task.runs:
            yield EngineReport(run=run.run, label=run.config.label, ready=True, seconds=0.1)
            for cell in run.cells:
                planned = 1.5 if run.config.drafter.k == 3 else 1.3
                ratio = 1.0 if run.config.drafter.is_none else self.fresh if task.round else planned
                figure = 100.0 * ratio * (1.0 + 0.002 * (seed_of(cell.cell) % 1000) / 1000)
                metrics = dict.fromkeys(METRICS, figure)
                yield CellReport(
                    result=made_up(task, run, cell, metrics=metrics, seconds=1.0, start_seconds=0.1)
                )


class Falling(Known):
    """A treatment whose ratio falls through 1 at C=10."""

    def run(self, task: BlockTask) -> Iterator[Report]:
        """Yield each cell at once, with a noise of up to one per cent."""
        for run in task.runs:
            yield EngineReport(run=run.run, label=run.config.label, ready=True, seconds=0.1)
            for cell in run.cells:
                ratio = 1.0 if run.config.drafter.is_none else (10.0 / cell.level.value) ** 0.2
                figure = 100.0 * ratio * (1.0 + 0.01 * (seed_of(cell.cell) % 1000) / 1000)
                metrics = dict.fromkeys(METRICS, figure)
                yield CellReport(
                    result=made_up(task, run, cell, metrics=metrics, seconds=1.0, start_seconds=0.1)
                )


class Lucky(Known):
    """A winner that was only lucky: it does not win again."""

    fresh = 1.0


class Late(Known):
    """A machine that is busy at first: one treatment and both baselines of a level are invalid."""

    def run(self, task: BlockTask) -> Iterator[Report]:
        """Yield the cells, in a first segment some of them without a measurement that counts."""
        for report in super().run(task):
            if isinstance(report, CellReport) and task.segment == 0 and self.late(report.result):
                bad = replace(report.result, outcome=INVALID, cause="loop_lag", reason="late", metrics={})
                report = CellReport(result=bad)  # noqa: PLW2901 - the rest goes on as it is
            yield report

    def late(self, cell: CellResult) -> bool:
        """Whether it is K=3 at C=1 in block 0, or a baseline at C=2 in block 1."""
        lost = cell.role != TREATMENT and cell.level == 2
        return lost if cell.block == 1 else cell.k == 3 and cell.level == 1


@pytest.fixture(scope="module")
def local_ray() -> Iterator[None]:
    """A node of two slots that all sweeps of this module run on."""
    args = {"num_cpus": 4, "num_gpus": 0, "resources": {"engine_slot": 2}, "include_dashboard": False}
    node = Nodes(initialize_head=True, head_node_args=args)
    ray.init(address=node.address, log_to_driver=False, logging_level=logging.ERROR)
    yield
    ray.shutdown()
    node.shutdown()


def sweep(
    folder: Path, runner: type, *words: str, retry: Sequence[str] = ()
) -> tuple[list[CellResult], dict[str, Any], list[str]]:
    """Run a sweep; return its cells, its summary, and what it said."""
    points = collect(["-m", *SMALL, "drafter=eagle3", *words])
    planned = make_plan(points)
    said: list[str] = []
    outcome = run_sweep(
        planned.plan,
        planned.workload,
        folder,
        recorder=NullRecorder(),
        say=said.append,
        runner=runner,
        retry=retry,
    )
    return list(outcome.results), outcome.summary.to_dict(), said


def test_a_winner_is_confirmed_in_a_round_that_a_later_run_finds_and_finishes(
    local_ray: None, tmp_path: Path
) -> None:
    words = (*GRID, "design.confirm=2")
    results, summary, said = sweep(tmp_path, Known, *words)
    fresh = {cell.level for cell in results if cell.round == 1}  # the best level, and the weakest
    assert Counter((cell.round, cell.block) for cell in results) == {
        (0, 0): 8,
        (0, 1): 8,
        (1, 2): 3 * len(fresh),
        (1, 3): 3 * len(fresh),
    }
    planned = summarise([cell for cell in results if cell.round == 0], threshold=0.02)
    assert summary["rows"] == planned.to_dict()["rows"], "fresh blocks count nowhere else"
    assert [again["at"] for again in summary["confirmations"]] == [f"C={level:g}" for level in sorted(fresh)]
    for again in summary["confirmations"]:
        assert again["ratio"]["value"] == pytest.approx(1.4, rel=0.01)
        assert again["verdict"] == "wins"
        assert f" {again['at']} confirmed: ratio 1." in again["text"]
        assert "over 2 fresh blocks" in again["text"]
    assert any(line.startswith("round 1 confirms tp1/eagle3-k") for line in said)

    # a driver that is killed in the round leaves part of it
    (folder,) = tmp_path.glob("study-*")
    for cell in folder.glob("cells/b3-*"):
        shutil.rmtree(cell)
    finished, same, _ = sweep(tmp_path, Known, *words)
    assert {cell.cell for cell in finished} == {cell.cell for cell in results}
    assert same["confirmations"] == summary["confirmations"]
    assert [path.name for path in folder.glob("rounds/*")] == ["0001.json"]


def test_who_asks_has_invalid_cells_measured_again_and_the_rest_stays(
    local_ray: None, tmp_path: Path
) -> None:
    before, _, _ = sweep(tmp_path, Late, *GRID)
    assert Counter((cell.block, cell.role) for cell in before if cell.outcome == INVALID) == {
        (0, TREATMENT): 1,
        (1, OPENING): 1,
        (1, CLOSING): 1,
    }
    same, _, said = sweep(tmp_path, Late, *GRID, retry=("failed",))
    assert same == before
    assert "nothing to run" in said[0]

    after, _, said = sweep(tmp_path, Late, *GRID, retry=("invalid",))
    again = [cell for cell in after if cell.segment == 1]
    assert Counter((cell.block, cell.role, cell.level) for cell in again) == {
        (0, OPENING, 1): 1, (0, TREATMENT, 1): 1, (0, CLOSING, 1): 1,
        (1, OPENING, 2): 1, (1, TREATMENT, 2): 2, (1, CLOSING, 2): 1,
    }  # fmt: skip
    assert any(line.startswith("[7/7] ") for line in said)
    assert {cell.outcome for cell in after} == {MEASURED}
    told = {caveat for cell in again for caveat in cell.caveats if "earlier try" in caveat}
    assert told == {
        "an earlier try of this cell was invalid (loop_lag) in segment 0",
        "an earlier try of this cell had no baseline that counts in segment 0",
    }
    (folder,) = tmp_path.glob("study-*")
    assert len(list(folder.glob("cells/.earlier-*/result.json"))) == 5, "history: 3 invalid, 2 of lost pairs"
    status = read_status(folder)
    assert (status.state, status.left, status.invalid, status.measured) == (FINISHED, 0, 0, len(after))
    assert len(after) == len(before) - 5 + 7


def test_a_lucky_winner_is_not_confirmed(local_ray: None, tmp_path: Path) -> None:
    _, summary, _ = sweep(tmp_path, Lucky, *GRID, "design.confirm=3")
    assert summary["confirmations"]
    for again in summary["confirmations"]:
        assert again["verdict"] == "no difference"
        assert "not confirmed: ratio" in again["text"]
    assert {row["verdict"] for row in summary["rows"]} == {"wins"}


def test_a_budget_stops_between_blocks_and_the_same_words_go_on(local_ray: None, tmp_path: Path) -> None:
    words = ("drafter.k=3", "load.concurrency=[1]", "design.blocks=2")
    # nothing is timed yet, so one block runs alone; then less is left than another is expected to take
    before, _, said = sweep(tmp_path, BlockRunner, *words, "design.budget=0.0001")
    assert {(cell.block, cell.role) for cell in before} == {(0, OPENING), (0, TREATMENT), (0, CLOSING)}
    assert any("1 block with 3 cells did not start" in line for line in said)

    after, summary, said = sweep(tmp_path, BlockRunner, *words, "design.budget=10")
    assert {cell.cell for cell in before} < {cell.cell for cell in after}
    assert Counter((cell.block, cell.segment) for cell in after) == {(0, 0): 3, (1, 0): 3}, said
    assert len(summary["rows"]) == 1
    assert not any("did not start" in line for line in said)


def test_a_search_adds_rounds_at_levels_of_its_own_until_the_crossover_is_known(
    local_ray: None, tmp_path: Path
) -> None:
    grid = ("drafter.k=3", "load.concurrency=[1,64]", "design.blocks=2")
    before, _, _ = sweep(tmp_path, Falling, *grid)
    assert {cell.kind for cell in before} == {PLANNED}
    words = (*grid, "load.search=crossover", "load.search_width=1.3", "design.confirm=2")
    results, summary, said = sweep(tmp_path, Falling, *words)
    assert {cell.cell for cell in before} < {cell.cell for cell in results}, "the same sweep goes on"
    searched = [cell for cell in results if cell.kind == SEARCH]
    rounds = {cell.round for cell in searched}
    assert rounds == set(range(1, len(rounds) + 1))
    for number in rounds:
        own = [cell for cell in searched if cell.round == number]
        assert Counter(cell.role for cell in own) == dict.fromkeys(
            (OPENING, TREATMENT, CLOSING), len({cell.level for cell in own})
        ), "pairs stay pairs"
    (row,) = [row for row in summary["crossovers"] if row["objective"] == "total"]
    low, high = row["crossover"]["low"], row["crossover"]["high"]
    assert low <= 10.0 <= high
    assert high / low <= 1.3
    assert set(row["levels"]) == {cell.level for cell in results if cell.counts}, "searched cells count"
    assert any(line.startswith("round 1 searches. tp1/eagle3-k3: crossover on total") for line in said)
    assert any(f"crossover on total throughput {low:.3g} to {high:.3g}" in line for line in said)
    assert {cell.round for cell in results if cell.kind == CONFIRMATION} == {len(rounds) + 1}
    again, same, _ = sweep(tmp_path, Falling, *words)
    assert len(again) == len(results), "it has ended"
    assert same["crossovers"] == summary["crossovers"]
