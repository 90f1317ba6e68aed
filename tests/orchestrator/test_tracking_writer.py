"""The thread that writes to MLflow: measuring never waits for it, and nothing is lost."""

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from analysis.summary import Summary
from jobs.result import CellResult
from orchestrator import tracking_writer
from orchestrator.errors import TrackingUnreachableError
from orchestrator.pending import pending
from orchestrator.plan import Plan
from orchestrator.tracking_mlflow import MlflowRecorder
from orchestrator.tracking_writer import BackgroundRecorder
from tests.orchestrator.conftest import outcomes


@dataclass
class Store:
    """A recorder whose store can be held up, or away; it keeps what it was told."""

    uri: str = "http://store"
    away: bool = False
    free: threading.Event = field(default_factory=threading.Event)
    told: list[str] = field(default_factory=list)
    said: list[Summary] = field(default_factory=list)
    status: str = ""

    def open(self, plan: Plan, directory: Path) -> None:
        if self.away:
            message = "http://store does not answer"
            raise TrackingUnreachableError(message)

    def record(self, result: CellResult, directory: Path | None) -> None:
        self.free.wait(timeout=30)
        if not self.away and result.cell not in self.told:
            self.told.append(result.cell)

    def prune(self, cells: set[str]) -> None:
        self.told = [cell for cell in self.told if cell in cells]

    def ratios(self, rows: Iterable[Any]) -> None:
        pass

    def summary(self, summary: Summary) -> None:
        self.said.append(summary)

    def wake(self) -> None:
        pass

    def unshown(self, results: Iterable[CellResult]) -> int:
        return sum(result.cell not in self.told for result in results)

    def close(self, report: Path | None, status: str) -> None:
        self.status = status


@pytest.fixture
def store() -> Iterator[Store]:
    made = Store()
    yield made
    made.free.set()


def writer(store: Store, **options: Any) -> BackgroundRecorder:
    return BackgroundRecorder(cast("MlflowRecorder", store), **options)


def cells(plan: Plan) -> list[CellResult]:
    return [result for segment in pending(plan, []) for result in outcomes(plan, segment)]


def test_a_slow_store_holds_up_nothing_and_gets_all_in_the_end(
    store: Store, small_plan: Plan, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    results = cells(small_plan)
    recorder = writer(store, waiting=4)
    recorder.open(small_plan, tmp_path)
    for result in results:
        recorder.record(result, None)  # would never return if it waited for the store
    assert store.told == []
    assert caplog.text.count("is slow") == 1
    store.free.set()
    recorder.sync((result, None) for result in results)
    recorder.close(None, "FINISHED")
    assert sorted(store.told) == sorted(result.cell for result in results)
    assert store.status == "FINISHED"
    assert "specload sync" not in caplog.text


def test_a_store_that_hangs_is_left_to_sync(
    store: Store,
    small_plan: Plan,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tracking_writer, "PATIENCE", 0.2)
    recorder = writer(store, waiting=2)
    recorder.open(small_plan, tmp_path)
    recorder.sync((result, None) for result in cells(small_plan))
    recorder.close(None, "FINISHED")
    assert f"`specload sync {tmp_path}` catches up" in caplog.text


def test_a_server_that_is_away_at_the_start_is_taken_up_later(
    store: Store, small_plan: Plan, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store.away = True
    store.free.set()
    results = cells(small_plan)
    recorder = writer(store)
    recorder.open(small_plan, tmp_path)
    assert "does not answer; the sweep goes on" in caplog.text
    recorder.record(results[0], None)
    store.away = False
    recorder.sync((result, None) for result in results)
    recorder.close(None, "FINISHED")
    assert len(store.told) == len(results)


def test_a_server_that_stays_away_is_said_with_the_way_out(
    store: Store, small_plan: Plan, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store.away = True
    recorder = writer(store)
    recorder.open(small_plan, tmp_path)
    recorder.sync((result, None) for result in cells(small_plan))
    recorder.close(None, "FINISHED")
    assert "lacks 16 of 16 cells" in caplog.text
    assert f"`specload sync {tmp_path}`" in caplog.text


def test_a_required_server_has_to_answer(store: Store, small_plan: Plan, tmp_path: Path) -> None:
    store.away = True
    recorder = writer(store, required=True)
    with pytest.raises(TrackingUnreachableError):
        recorder.open(small_plan, tmp_path)
    recorder.close(None, "FAILED")  # what the driver does then: nothing to close


def test_after_a_signal_what_waits_is_dropped_and_the_run_ends_as_killed(
    store: Store, small_plan: Plan, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = writer(store)
    recorder.open(small_plan, tmp_path)
    for result in cells(small_plan):
        recorder.record(result, None)
    threading.Timer(0.2, store.free.set).start()
    recorder.close(None, "KILLED")
    assert store.status == "KILLED"
    assert len(store.told) <= 1
    recorder.close(None, "FAILED")
    assert store.status == "KILLED", "it is closed once"
