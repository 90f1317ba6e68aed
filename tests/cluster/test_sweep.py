"""A sweep from the command line to report and MLflow; what happens when it is stopped or its engines fail."""

import json
import os
import signal
import subprocess
from collections import Counter
from pathlib import Path

import psutil
import pytest
from mlflow import MlflowClient

from jobs.result import CLOSING, FAILED, OPENING, TREATMENT
from orchestrator.status import FINISHED, RUNNING, read_status
from tests.cluster.conftest import SPECLOAD, Sweeps, engine_tree, lives, results_in, wait_until
from tests.lateness import broken, ended

pytestmark = pytest.mark.cluster

GRID = ("-m", "drafter=eagle3", "drafter.k=3,7", "load.concurrency=[1,2]", "design.blocks=2")
ONE_BLOCK = ("-m", "drafter=eagle3", "drafter.k=3,7", "load.concurrency=[1,2]", "design.blocks=1")


def test_a_sweep_end_to_end_and_again(sweeps: Sweeps) -> None:
    said = sweeps.run_whole(*GRID)
    results = sweeps.results()
    roles = Counter(result.role for result in results)
    assert roles == {OPENING: 4, CLOSING: 4, TREATMENT: 8}, said
    for result in results:
        assert broken(result) == {}
        assert result.outcome in ("measured", "invalid"), result.reason
        assert result.emulated
        assert result.metrics["tokens/client_output"] == result.metrics["tokens/engine_output"]
    assert "EMULATED" in said
    assert "specload ui" in said
    assert (sweeps.sweep / "report.html").stat().st_size > 10_000
    _check_mlflow(sweeps, cells=len(results))

    again, said = sweeps.run(*GRID)
    assert again == 0
    assert "nothing to run" in said
    assert "0 engine starts" in said
    assert [result.cell for result in sweeps.results()] == [result.cell for result in results]


def _check_mlflow(sweeps: Sweeps, *, cells: int) -> None:
    client = MlflowClient(f"sqlite:///{sweeps.folder / 'results' / 'mlflow.db'}")
    (experiment,) = [e for e in client.search_experiments() if e.name != "Default"]
    runs = client.search_runs([experiment.experiment_id], max_results=1000)
    parents = [run for run in runs if run.data.tags["specload.kind"] == "sweep"]
    assert [run.info.run_name for run in parents] == [sweeps.sweep.name]
    children = [run for run in runs if run.data.tags.get("mlflow.parentRunId") == parents[0].info.run_id]
    assert [run.data.tags["specload.kind"] for run in children] == ["cell"] * cells
    assert {run.data.tags["specload.kind"] for run in runs} == {"sweep", "cell", "curve"}
    assert "Chart: ratio against load by drafter" in parents[0].data.tags["mlflow.note.content"]


def test_a_killed_driver_leaves_no_engine_and_the_same_words_finish_the_rest(sweeps: Sweeps) -> None:
    driver = sweeps.start(*ONE_BLOCK, "tracking=disabled")
    watched = psutil.Process(driver.pid)
    assert wait_until(lambda: len(sweeps.results()) >= 3 or driver.poll() is not None, seconds=120)
    assert driver.poll() is None
    assert wait_until(lambda: any(step.arm for step in read_status(sweeps.sweep).running), seconds=60)
    living = read_status(sweeps.sweep)
    assert wait_until(lambda: bool(engine_tree(watched)), seconds=30)
    engines = engine_tree(watched)
    assert (living.state, living.owner.pid, living.devices_in_use) == (RUNNING, driver.pid, 1)
    assert living.done + living.left == 8
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    before = sweeps.results()
    shown = status_of(sweeps.sweep)
    assert f"{sweeps.sweep.name}: stopped; {read_status(sweeps.sweep).left} cells left; go on with: " in shown
    assert wait_until(lambda: not any(map(lives, engines)), seconds=15), [
        p.cmdline() for p in engines if lives(p)
    ]

    code, said = sweeps.run(*ONE_BLOCK, "tracking=disabled")
    results = sweeps.results()
    assert sweeps.ended(code), said
    assert sweeps.lost(before) == []
    treatments = Counter((r.block, r.arm, r.concurrency) for r in results if r.role == TREATMENT)
    assert len(treatments) == 4
    assert set(treatments.values()) == {1}, "a cell was measured twice"
    resumed = [result for result in results if result.segment == 1]
    assert {OPENING, CLOSING} <= {result.role for result in resumed}
    assert {result.block for result in resumed} == {0}
    last = read_status(sweeps.sweep)
    assert (last.state, last.left, last.done) == (FINISHED, 0, len(results))
    assert "every cell has its outcome" in status_of(sweeps.sweep)


def status_of(sweep: Path) -> str:
    """Return what `specload status` prints of a sweep's folder."""
    done = subprocess.run(
        [str(SPECLOAD), "status", str(sweep)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_second_driver_is_refused_and_sigterm_ends_the_first_cleanly(sweeps: Sweeps) -> None:
    driver = sweeps.start(*ONE_BLOCK)
    watched = psutil.Process(driver.pid)
    assert wait_until(lambda: len(sweeps.results()) >= 1 or driver.poll() is not None, seconds=120)
    code, said = sweeps.run(*ONE_BLOCK)
    assert code == 2, said
    assert "is being run by process" in said
    assert driver.poll() is None, "the sweep has ended before it could be stopped"
    tree = watched.children(recursive=True)
    driver.terminate()
    assert driver.wait(timeout=60) == 143
    assert wait_until(lambda: not any(map(lives, tree)), seconds=15), [p.cmdline() for p in tree if lives(p)]
    assert sweeps.results()
    client = MlflowClient(f"sqlite:///{sweeps.folder / 'results' / 'mlflow.db'}")
    (experiment,) = [e for e in client.search_experiments() if e.name != "Default"]
    (parent,) = client.search_runs([experiment.experiment_id], f"attributes.run_name = '{sweeps.sweep.name}'")
    assert parent.info.status == "KILLED"


def test_a_sweep_that_measures_nothing_fails_and_keeps_its_outcomes(sweeps: Sweeps) -> None:
    code, said = sweeps.run(
        *("drafter=eagle3", "load.concurrency=[1]", "design.blocks=1", "tracking=disabled"),
        "+engine.flags.fail={at: start}",
    )
    assert code == 1
    assert "no cell of" in said
    assert {result.outcome for result in sweeps.results()} == {FAILED}
    assert (sweeps.sweep / "report.html").exists()


def test_too_few_devices_is_refused_before_anything_starts(sweeps: Sweeps) -> None:
    code, said = sweeps.run("drafter=eagle3", "layout=tp4", "load.concurrency=[1]", "cluster.slots=2")
    assert code == 2, said
    assert not sweeps.results() or all(result.outcome == "infeasible" for result in sweeps.results())


def test_a_saved_plan_reproduces_the_sweep(sweeps: Sweeps, tmp_path: Path) -> None:
    words = ("drafter=eagle3", "load.concurrency=[1]", "design.blocks=1", "tracking=disabled")
    sweeps.run_whole(*words)
    saved = json.loads((sweeps.sweep / "plan.json").read_text())
    copy = tmp_path / "elsewhere" / "plan.json"
    copy.parent.mkdir()
    copy.write_text(json.dumps(saved))
    process = subprocess.run(
        [str(SPECLOAD), "sweep", "--from", str(copy), "--results", str(tmp_path / "other")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    cells = tmp_path / "other" / saved["sweep"] / "cells"
    said = process.stdout + process.stderr
    assert ended(process.returncode, said, results_in(cells)), said
    again = json.loads((tmp_path / "other" / saved["sweep"] / "plan.json").read_text())
    assert again["digest"] == saved["digest"]
