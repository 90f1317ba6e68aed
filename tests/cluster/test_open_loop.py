"""A sweep over arrival rates from the command line to report and MLflow."""

import io

import pyarrow.parquet as pq
import pytest
from mlflow import MlflowClient

from jobs.result import CLOSING, OPENING, TREATMENT, CellResult
from tests.cluster.conftest import Sweeps
from tests.lateness import broken

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

WORDS = ("drafter=eagle3", "load=open", "load.rate=[5,10]", "load.duration=1.5", "design.blocks=1")


def test_arrival_rates_are_levels_from_plan_to_report(sweeps: Sweeps) -> None:
    said = sweeps.run_whole(*WORDS)
    results = sweeps.results()
    assert sorted((r.role, r.load) for r in results) == [
        (role, load) for role in sorted((OPENING, CLOSING, TREATMENT)) for load in ("r10", "r5")
    ]
    for result in results:
        assert broken(result) == {}
        assert (result.axis, result.concurrency) == ("rate", None)
        assert result.metrics["tokens/client_output"] == result.metrics["tokens/engine_output"]
        assert result.metrics["client/schedule_lag_p99_ms"] is not None
    assert "open loop with poisson arrivals" in said
    assert "Crossover: the arrival rate" in said
    assert "treatment tp1/eagle3-k3 r5" in said
    page = (sweeps.sweep / "report.html").read_text()
    assert ">conv./s</th>" in page
    _every_arm_was_sent_the_same(sweeps, results)

    client = MlflowClient(f"sqlite:///{sweeps.folder / 'results' / 'mlflow.db'}")
    (experiment,) = [e for e in client.search_experiments() if e.name != "Default"]
    cells = client.search_runs([experiment.experiment_id], "tags.`specload.kind` = 'cell'")
    assert sorted(run.data.params["load.rate"] for run in cells) == ["10"] * 3 + ["5"] * 3
    assert {run.data.params["load"] for run in cells} == {"r5", "r10"}
    assert not any("load.concurrency" in run.data.params for run in cells)
    # What was recorded as the sweep went on was not recorded again at its end.
    deleted = client.search_runs([experiment.experiment_id], run_view_type=2)
    assert deleted == []


def _every_arm_was_sent_the_same(sweeps: Sweeps, results: list[CellResult]) -> None:
    sent: dict[str, list[list[tuple[str, int, int]]]] = {}
    for result in results:
        data = (sweeps.sweep / "cells" / result.cell / "requests.parquet").read_bytes()
        rows = sorted(pq.read_table(io.BytesIO(data)).to_pylist(), key=lambda row: row["user"])
        first = rows[0]["scheduled"]
        assert all(row["dispatched"] >= row["scheduled"] for row in rows)
        arrivals = [(row["conversation"], row["epoch"], row["scheduled"] - first) for row in rows]
        sent.setdefault(result.load, []).append(arrivals)
    for arms in sent.values():
        assert len(arms) == 3
        assert arms[0] == arms[1] == arms[2]
    assert len(sent["r10"][0]) > len(sent["r5"][0])
