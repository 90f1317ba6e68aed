"""The MLflow view, on real SQLite stores."""

import json
import logging
import math
import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from mlflow.store.tracking.dbmodels.initial_models import Base

from analysis.untrusted import plain
from jobs.result import INVALID, CellResult, Gate
from orchestrator import tracking_fields as fields
from orchestrator import tracking_mlflow
from orchestrator.errors import TrackingError
from orchestrator.plan import Plan
from orchestrator.tracking import NullRecorder, direct_recorder_for, recorder_for
from orchestrator.tracking_mlflow import MlflowRecorder
from orchestrator.tracking_profile import attach_profile
from orchestrator.tracking_store import migrations_folder, open_store, store_uri
from tests.orchestrator.test_tracking_curves import row, said
from tests.untrusted.hostile import HOSTILE, LONG, tainted_cell


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an empty store of the schema before the newest (`old.db`), and of the newest (`new.db`).

    Migrations take seconds: every test works on a copy.
    """
    folder = tmp_path_factory.mktemp("stores")
    open_store(f"sqlite:///{folder / 'new.db'}", ours=True)
    script = ScriptDirectory(str(migrations_folder()))
    newest = script.get_revision(script.get_current_head() or "")
    assert newest is not None
    engine = sqlalchemy.create_engine(f"sqlite:///{folder / 'old.db'}")
    Base.metadata.create_all(engine)  # what MLflow's first migration starts from
    engine.dispose()
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()))
    config.set_main_option("sqlalchemy.url", f"sqlite:///{folder / 'old.db'}")
    command.upgrade(config, str(newest.down_revision))
    return folder


@pytest.fixture
def results(stores: Path, tmp_path: Path) -> Path:
    """A results folder with an empty store."""
    root = tmp_path / "results"
    root.mkdir()
    shutil.copy(stores / "new.db", root / "mlflow.db")
    return root


def direct(plan: Plan, results: Path) -> MlflowRecorder:
    """What writes to the sweep's store at once."""
    made = direct_recorder_for(plan, results)
    assert made is not None
    return made


@pytest.fixture
def recorder(small_plan: Plan, results: Path) -> MlflowRecorder:
    (results / small_plan.sweep).mkdir()
    made = direct(small_plan, results)
    made.open(small_plan, results / small_plan.sweep)
    return made


def cell(plan: Plan, name: str = "cell-1", **changes: Any) -> CellResult:
    arm = plan.arms[1]
    values = {
        "cell": name,
        "arm": arm.digest,
        "arm_label": arm.config.label,
        "layout": "tp1",
        "drafter": "ngram",
        "k": 3,
        "concurrency": 4,
        "block": 0,
        "segment": 0,
        "role": "treatment",
        "outcome": "measured",
        "emulated": True,
        "factors": {"drafter.k": "3", "engine.flags.block_size": "32"},
        "metrics": {"spec/mal": 2.5, "kv/usage_peak": None, "latency/ttft_p50_ms": math.nan},
        "started": "2026-01-02T03:04:05+00:00",
        "seconds": 12.5,
    }
    return CellResult(**{**values, **changes})


def runs(results: Path, plan: Plan, kind: str = "cell") -> list[Any]:
    client = open_store(store_uri({}, results) or "", ours=True)
    experiment = client.get_experiment_by_name(plan.name)
    assert experiment is not None
    return list(client.search_runs([experiment.experiment_id], f"tags.`specload.kind` = '{kind}'"))


def test_a_cell_becomes_a_child_run_with_all_that_is_known(
    recorder: MlflowRecorder, small_plan: Plan, results: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "cell"
    folder.mkdir()
    (folder / "result.json").write_text("{}")
    (folder / "requests.parquet").write_bytes(b"rows")
    recorder.record(cell(small_plan, log_tail="last words"), folder)
    (parent,) = runs(results, small_plan, "sweep")
    (run,) = runs(results, small_plan)
    assert parent.info.run_name == small_plan.sweep
    assert run.info.run_name == "tp1/ngram-k3 c4 block 0.0"
    assert run.info.status == "FINISHED"
    assert (run.info.end_time - run.info.start_time) == 12_500
    assert run.data.tags["mlflow.parentRunId"] == parent.info.run_id
    assert run.data.tags["specload.cell_id"] == "cell-1"
    assert run.data.tags["specload.outcome"] == "measured"
    assert run.data.tags["specload.emulated"] == "true"
    # What is absent or not a number is no metric at all.
    assert run.data.metrics == {"spec/mal": 2.5, "cell/seconds": 12.5}
    params = run.data.params
    assert params["drafter.method"] == "ngram"
    assert params["drafter.k"] == "3"
    assert params["layout"] == "tp1"
    assert params["load.concurrency"] == "4"
    assert params["engine.version"] == "1"
    assert params["workload"] == "w"
    assert params["engine.flags.block_size"] == "32"
    artifacts = results / "mlartifacts" / "study" / run.info.run_id / "artifacts"
    assert (artifacts / "requests.parquet").read_bytes() == b"rows"
    assert (artifacts / "engine_log_tail.txt").read_text() == "last words"


def test_an_open_loop_shows_its_rate(small_plan: Plan) -> None:
    result = cell(small_plan, concurrency=None, rate=2.5)
    params = fields.cell_params(small_plan, result)
    assert (params["load"], params["load.rate"]) == ("r2.5", "2.5")
    assert "load.concurrency" not in params
    assert fields.cell_name(result) == "tp1/ngram-k3 r2.5 block 0.0"


def test_a_result_has_the_same_content_before_and_after_its_file(small_plan: Plan) -> None:
    """Another content would record every cell a second time when the sweep ends."""
    gate = Gate(name="g", passed=True, message="m", value=1.0)
    metrics = {"spec/mal": np.float64(0.1) + 0.2, "kv/usage_peak": None, "requests/total": 4}
    result = cell(small_plan, metrics=metrics, gates=(gate,), identity={"looks": (1, 2)}, rate=None)
    again = CellResult.from_dict(json.loads(json.dumps(result.to_dict())))
    assert fields.content(again) == fields.content(result)
    assert fields.content(replace(again, seconds=1.0)) != fields.content(result)
    changed = replace(again, metrics={**again.metrics, "spec/mal": 0.3})
    assert fields.content(changed) != fields.content(result)


@pytest.mark.parametrize("outcome", [INVALID, "failed", "infeasible"])
def test_what_was_not_measured_is_a_failed_run_with_its_reason(
    recorder: MlflowRecorder, small_plan: Plan, results: Path, outcome: str
) -> None:
    gate = Gate(name="occupancy", passed=False, message="0.80 of 0.95")
    recorder.record(
        cell(small_plan, outcome=outcome, cause="occupancy", reason="too few", gates=(gate,), started=""),
        None,
    )
    (run,) = runs(results, small_plan)
    assert run.info.status == "FAILED"
    assert run.data.tags["specload.cause"] == "occupancy"
    assert "too few" in run.data.tags["mlflow.note.content"]
    assert "gate occupancy: 0.80 of 0.95" in run.data.tags["mlflow.note.content"]


def test_words_of_others_are_plain_and_as_long_as_servers_keep(
    recorder: MlflowRecorder, small_plan: Plan, results: Path
) -> None:
    made = tainted_cell(cell(small_plan, reason="few", log_tail="last"), HOSTILE + LONG)
    made = replace(made, cell="cell-1", layout="=1+1")
    recorder.record(made, None)
    assert recorder.unshown([made]) == 0
    (run,) = runs(results, small_plan)
    assert len(run.info.run_name) == fields.NAME_LIMIT
    assert run.data.params["layout"] == "'=1+1"
    assert max(map(len, (*run.data.params.values(), *run.data.tags.values()))) <= fields.VALUE_LIMIT
    note = run.data.tags["mlflow.note.content"]
    assert "\\<script\\>" in note
    for text in (run.info.run_name, note, *run.data.params, *run.data.params.values()):
        assert text == plain(text, lines=True)


def test_recording_twice_changes_nothing_and_a_new_result_replaces_the_old(
    recorder: MlflowRecorder, small_plan: Plan, results: Path
) -> None:
    first = cell(small_plan, outcome="failed", cause="died")
    recorder.record(first, None)
    recorder.record(first, None)
    again = direct(small_plan, results)
    again.open(small_plan, results / small_plan.sweep)
    again.record(first, None)
    (run,) = runs(results, small_plan)
    assert run.data.tags["specload.outcome"] == "failed"
    again.record(cell(small_plan), None)
    (run,) = runs(results, small_plan)
    assert run.data.tags["specload.outcome"] == "measured"
    assert len(runs(results, small_plan, "sweep")) == 1


def test_a_run_that_a_killed_driver_left_half_written_is_written_again(
    recorder: MlflowRecorder, small_plan: Plan, results: Path
) -> None:
    recorder.record(cell(small_plan), None)
    (run,) = runs(results, small_plan)
    open_store(recorder.uri, ours=True).update_run(run.info.run_id, status="RUNNING")
    again = direct(small_plan, results)
    again.open(small_plan, results / small_plan.sweep)
    assert again.sync([(cell(small_plan), None)]) == 1
    (new,) = runs(results, small_plan)
    assert new.info.run_id != run.info.run_id
    assert new.info.status == "FINISHED"


def test_ratios_land_on_their_own_runs(recorder: MlflowRecorder, small_plan: Plan, results: Path) -> None:
    recorder.record(cell(small_plan), None)
    recorder.record(cell(small_plan, "cell-2", k=7), None)
    recorder.ratios(
        [("cell-1", {"ratio/total": 1.29, "ratio/user_speed": None}), ("unknown", {"ratio/total": 9.0})]
    )
    metrics = {run.data.tags["specload.cell_id"]: run.data.metrics for run in runs(results, small_plan)}
    assert metrics["cell-1"]["ratio/total"] == 1.29
    assert "ratio/user_speed" not in metrics["cell-1"]
    assert "ratio/total" not in metrics["cell-2"]


def test_what_a_sweep_says_is_drawn_once_and_drawn_anew_where_it_changed(
    recorder: MlflowRecorder, small_plan: Plan, results: Path
) -> None:
    client = open_store(recorder.uri, ours=True)
    first, second = said(row("a", 1, 1.5), row("a", 16, 0.9), row("b", 1, 1.2)), said(row("a", 1, 1.4))
    recorder.summary(first)
    again = direct(small_plan, results)
    again.open(small_plan, results / small_plan.sweep)
    again.summary(first)
    drawn = {run.data.params["arm"]: run for run in runs(results, small_plan, "curve")}
    assert set(drawn) == {"a", "b"}
    history = client.get_metric_history(drawn["a"].info.run_id, "at_C/ratio_total")
    assert sorted((point.step, point.value) for point in history) == [(1, 1.5), (16, 0.9)]
    (parent,) = runs(results, small_plan, "sweep")
    assert "mlflow.parentRunId" not in drawn["a"].data.tags, "the charts leave out what is folded up"
    assert "**a**" in parent.data.tags["mlflow.note.content"]
    again.summary(second)
    (only,) = runs(results, small_plan, "curve")
    assert only.data.metrics["at_C/ratio_total"] == 1.4
    experiment = client.get_experiment(parent.info.experiment_id)
    assert experiment.tags["mlflow.experimentKind"] == "custom_model_development"


def test_closing_ends_the_parent_with_its_report(
    recorder: MlflowRecorder, small_plan: Plan, results: Path
) -> None:
    sweep = results / small_plan.sweep
    (sweep / "figures").mkdir()
    for name in ("plan.json", "report.html", "report.md", "figures/cycle.json", "figures/cycle.png"):
        (sweep / name).write_text("1")
    recorder.close(sweep / "report.html", "FINISHED")
    (parent,) = runs(results, small_plan, "sweep")
    assert parent.info.status == "FINISHED"
    artifacts = results / "mlartifacts" / "study" / parent.info.run_id / "artifacts"
    shown = ["figures", "plan.json", "report.html", "report.md"]
    assert sorted(path.name for path in artifacts.iterdir()) == shown
    assert sorted(path.name for path in (artifacts / "figures").iterdir()) == ["cycle.json", "cycle.png"]
    # The same sweep goes on in the same run, and what is new takes the place of what was there.
    again = direct(small_plan, results)
    again.open(small_plan, sweep)
    (parent,) = runs(results, small_plan, "sweep")
    assert parent.info.status == "RUNNING"
    (sweep / "figures" / "cycle.png").write_text("2")
    again.close(sweep / "report.html", "FINISHED")
    assert (artifacts / "figures" / "cycle.png").read_text() == "2"


def test_a_store_that_fails_mid_sweep_costs_one_warning_and_is_caught_up(
    recorder: MlflowRecorder, small_plan: Plan, results: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    monkeypatch.setattr(tracking_mlflow, "RETRY_SECONDS", 0.0)
    cells = [cell(small_plan, f"cell-{index}") for index in range(3)]
    store = results / "mlflow.db"
    with closing(sqlite3.connect(store)) as connection, caplog.at_level(logging.WARNING):
        connection.execute("ALTER TABLE runs RENAME TO gone")
        for result in cells:
            recorder.record(result, None)
        recorder.ratios([("cell-0", {"ratio/total": 1.0})])
        warnings = [record for record in caplog.records if record.name == tracking_mlflow.__name__]
        assert len(warnings) == 1
        assert "measuring goes on" in warnings[0].getMessage()
        connection.execute("ALTER TABLE gone RENAME TO runs")
    assert recorder.sync((result, None) for result in cells) == 3
    assert len(runs(results, small_plan)) == 3
    assert recorder.sync((result, None) for result in cells) == 0


def test_a_store_that_failed_is_left_alone_for_a_while(
    recorder: MlflowRecorder, small_plan: Plan, results: Path
) -> None:
    with closing(sqlite3.connect(results / "mlflow.db")) as connection:
        connection.execute("ALTER TABLE runs RENAME TO gone")
        recorder.record(cell(small_plan, "cell-1"), None)
        connection.execute("ALTER TABLE gone RENAME TO runs")
    recorder.record(cell(small_plan, "cell-2"), None)
    assert runs(results, small_plan) == []


def test_a_store_of_a_newer_schema_is_refused_by_name(small_plan: Plan, results: Path) -> None:
    with closing(sqlite3.connect(results / "mlflow.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'f00dfeedbeef'")
        connection.commit()
    with pytest.raises(TrackingError) as caught:
        recorder_for(small_plan, results).open(small_plan, results / small_plan.sweep)
    assert str(results / "mlflow.db") in str(caught.value)
    assert "newer MLflow" in str(caught.value)
    assert "f00dfeedbeef" in str(caught.value)
    assert "pip install -U mlflow" in str(caught.value)


def test_an_older_store_of_ours_is_upgraded_after_a_copy(
    small_plan: Plan, stores: Path, tmp_path: Path
) -> None:
    shutil.copy(stores / "old.db", tmp_path / "mlflow.db")
    recorder = direct(small_plan, tmp_path)
    recorder.open(small_plan, tmp_path / small_plan.sweep)
    recorder.record(cell(small_plan), None)
    assert len(runs(tmp_path, small_plan)) == 1
    assert len(list(tmp_path.glob("mlflow.db.????????????"))) == 1


def test_an_older_store_of_somebody_else_is_left_to_its_owner(
    small_plan: Plan, stores: Path, tmp_path: Path
) -> None:
    shared = tmp_path / "shared.db"
    shutil.copy(stores / "old.db", shared)
    before = shared.read_bytes()
    with pytest.raises(TrackingError, match="mlflow db upgrade sqlite:///"):
        MlflowRecorder(f"sqlite:///{shared}").open(small_plan, tmp_path / "results" / small_plan.sweep)
    assert shared.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "words"), [(b"no database at all" * 100, "damaged"), (None, "not of MLflow")]
)
def test_a_foreign_file_is_refused(
    small_plan: Plan, tmp_path: Path, content: bytes | None, words: str
) -> None:
    if content is None:
        with closing(sqlite3.connect(tmp_path / "mlflow.db")) as connection:
            connection.execute("CREATE TABLE mine (x)")
    else:
        (tmp_path / "mlflow.db").write_bytes(content)
    with pytest.raises(TrackingError, match=words):
        recorder_for(small_plan, tmp_path).open(small_plan, tmp_path / small_plan.sweep)


def test_a_server_that_is_not_there_is_refused_by_name(
    small_plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(TrackingError, match=r"http://127\.0\.0\.1:9 does not answer.*tracking=disabled"):
        MlflowRecorder("http://127.0.0.1:9").open(small_plan, tmp_path / small_plan.sweep)


def metric_points(recorder: MlflowRecorder, run: Any) -> int:
    """How often anything was logged on a run."""
    client = open_store(recorder.uri, ours=True)
    return sum(len(client.get_metric_history(run.info.run_id, name)) for name in run.data.metrics)


def test_syncing_again_changes_nothing_at_all(
    recorder: MlflowRecorder, small_plan: Plan, results: Path
) -> None:
    pairs = [(cell(small_plan, f"cell-{index}"), None) for index in range(2)]
    seen = []
    for count in (2, 0, 0):
        again = direct(small_plan, results)
        again.open(small_plan, results / small_plan.sweep)
        assert again.sync(pairs) == count
        again.ratios([("cell-0", {"ratio/total": 1.29})])
        again.close(None, "FINISHED")
        found = [*runs(results, small_plan), *runs(results, small_plan, "sweep")]
        seen.append(sorted((run.info.run_id, metric_points(again, run)) for run in found))
    assert seen[0] == seen[1] == seen[2]


def test_a_run_of_what_no_longer_counts_is_removed(
    recorder: MlflowRecorder, small_plan: Plan, results: Path
) -> None:
    """A failed try that a later one replaced, or a cell that was set aside."""
    first, second = cell(small_plan, "cell-1", outcome="failed", cause="died"), cell(small_plan, "cell-2")
    recorder.sync([(first, None), (second, None)])
    assert recorder.sync([(second, None)]) == 0
    assert [run.data.tags["specload.cell_id"] for run in runs(results, small_plan)] == ["cell-2"]
    assert recorder.unshown([first, second]) == 1


def test_tracking_can_be_disabled(small_plan: Plan, tmp_path: Path) -> None:
    plan = replace(small_plan, tracking={"uri": "disabled", "experiment": None})
    recorder = recorder_for(plan, tmp_path)
    assert isinstance(recorder, NullRecorder)
    recorder.open(plan, tmp_path)
    recorder.record(cell(plan), None)
    assert recorder.sync([(cell(plan), None)]) == 0
    recorder.ratios([])
    recorder.close(None, "FINISHED")
    assert list(tmp_path.iterdir()) == []


def test_the_experiment_can_be_named(small_plan: Plan, results: Path) -> None:
    plan = replace(small_plan, tracking={"uri": None, "experiment": "team study"})
    direct(plan, results).open(plan, results / plan.sweep)
    client = open_store(store_uri({}, results) or "", ours=True)
    assert client.get_experiment_by_name("team study") is not None


def test_a_deleted_experiment_is_taken_up_again(
    small_plan: Plan, recorder: MlflowRecorder, results: Path
) -> None:
    client = open_store(recorder.uri, ours=True)
    experiment = client.get_experiment_by_name(small_plan.name)
    assert experiment is not None
    client.delete_experiment(experiment.experiment_id)
    direct(small_plan, results).open(small_plan, results / small_plan.sweep)
    restored = client.get_experiment_by_name(small_plan.name)
    assert restored is not None
    assert restored.lifecycle_stage == "active"


QUIET = """
import pickle, sys
from pathlib import Path
from orchestrator.tracking import recorder_for
plan, result = pickle.loads(Path(sys.argv[1]).read_bytes())
heavy = {"mlflow", "sqlalchemy", "alembic", "pandas"} & set(sys.modules)
assert not heavy, heavy
results = Path(sys.argv[1]).parent
recorder = recorder_for(plan, results)
recorder.open(plan, results / plan.sweep)
recorder.record(result, None)
recorder.close(None, "FINISHED")
"""


def test_it_loads_late_and_says_nothing(small_plan: Plan, results: Path) -> None:
    (results / "input").write_bytes(pickle.dumps((small_plan, cell(small_plan))))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
    done = subprocess.run(
        [sys.executable, "-c", QUIET, str(results / "input")],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(runs(results, small_plan)) == 1


def test_a_profile_hangs_on_the_run_of_its_sweep(
    recorder: MlflowRecorder, small_plan: Plan, results: Path
) -> None:
    recorder.close(None, "FINISHED")
    folder = results / small_plan.sweep / "profiles" / "tp1-ngram-k3" / "c4-n256"
    folder.mkdir(parents=True)
    (folder / "profile.json").write_text("{}")
    assert attach_profile(small_plan, results, folder) == "MLflow: on the sweep's run, under profiles"
    (parent,) = runs(results, small_plan, "sweep")
    client = open_store(store_uri({}, results) or "", ours=True)
    (found,) = client.list_artifacts(parent.info.run_id, "profiles/tp1-ngram-k3/c4-n256")
    assert found.path.endswith("profile.json")
    assert parent.info.status == "FINISHED"
    assert "does not know the sweep" in attach_profile(replace(small_plan, name="other"), results, folder)
    assert "there is no MLflow store" in attach_profile(small_plan, results / "elsewhere", folder)
    disabled = replace(small_plan, tracking={"uri": "disabled"})
    assert "tracking is disabled" in attach_profile(disabled, results, folder)
