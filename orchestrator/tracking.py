"""The MLflow view of a sweep. The driver is its only writer, and the results folder stays the truth.

An experiment is a study, its parent run a sweep, each child run a cell. Everything is found again by tags, so
that recording twice changes nothing: a run is replaced only where the cell's result has changed since.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from jobs.result import CellResult
from orchestrator import tracking_fields as fields
from orchestrator.errors import TrackingError
from orchestrator.plan import Plan
from orchestrator.tracking_store import ARTIFACTS, first_line, open_store, store_errors, store_uri

log = logging.getLogger(__name__)

RETRY_SECONDS = 60.0
"""After a failure the store is left alone for so long: a try can take its time-out, and the sweep waits."""
LOG_TAIL = "engine_log_tail.txt"
PARENT_FILES = ("plan.json", "provenance.json", "summary.json")
"""Files of a sweep's folder that hang on its parent run, where they exist."""


class Recorder(Protocol):
    """Where the driver shows a sweep while it runs."""

    def open(self, plan: Plan, directory: Path) -> None:
        """Begin or go on with `plan`, whose results folder is `directory`.

        Raises:
            TrackingError: the store cannot be used.
        """

    def record(self, result: CellResult, directory: Path | None) -> None:
        """Show one cell, with the files of its folder; the same result again changes nothing."""

    def sync(self, results: Iterable[tuple[CellResult, Path | None]]) -> int:
        """Show every cell that is missing or outdated, and return how many there were."""

    def ratios(self, rows: Iterable[tuple[str, Mapping[str, float | None]]]) -> None:
        """Show (cell id, ratios to the cell's own baseline) on the cells' runs."""

    def close(self, report: Path | None, status: str) -> None:
        """End the sweep's run as `FINISHED`, `FAILED` or `KILLED`, with its report."""


def recorder_for(plan: Plan, results: Path) -> "Recorder":
    """Return the recorder that `plan.tracking` asks for; sweeps lie under `results`."""
    uri = store_uri(plan.tracking, results)
    return MlflowRecorder(uri) if uri else NullRecorder()


class NullRecorder:
    """Shows nothing: tracking is disabled."""

    def open(self, plan: Plan, directory: Path) -> None:
        """Do nothing."""

    def record(self, result: CellResult, directory: Path | None) -> None:
        """Do nothing."""

    def sync(self, results: Iterable[tuple[CellResult, Path | None]]) -> int:  # noqa: ARG002  a Recorder's
        """Do nothing."""
        return 0

    def ratios(self, rows: Iterable[tuple[str, Mapping[str, float | None]]]) -> None:
        """Do nothing."""

    def close(self, report: Path | None, status: str) -> None:
        """Do nothing."""


class MlflowRecorder:
    """Shows a sweep in an MLflow store, and goes on without it when it fails."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self._failed_at: float | None = None
        self._warned = False
        self._parent = ""
        """Run id of the sweep; empty until it is open."""
        self._runs: dict[str, tuple[str, str]] = {}
        """Cell id -> (run id, digest of the result it shows; empty while it is half-written)."""

    def open(self, plan: Plan, directory: Path) -> None:
        """Create the store and the experiment where missing, and find or create the sweep's run."""
        self._plan = plan
        self._directory = directory
        results = directory.resolve().parent
        ours = self.uri == store_uri({}, results)
        self._client = open_store(self.uri, ours=ours)
        self._errors = store_errors()
        try:
            self._experiment = self._experiment_id(results / ARTIFACTS if ours else None)
            self._parent = self._parent_run()
            self._runs = self._known_runs()
            for name in PARENT_FILES:
                self._attach(self._parent, directory / name)
        except self._errors as error:
            message = f"MLflow store {self.uri} cannot be used: {error}"
            raise TrackingError(message) from error

    def record(self, result: CellResult, directory: Path | None) -> None:
        """Show one cell; a failing store costs a warning."""
        if not self._is_shown(result):
            self._attempt(partial(self._record, result, directory))

    def sync(self, results: Iterable[tuple[CellResult, Path | None]]) -> int:
        """Show every cell that is missing or outdated, and return how many there were."""
        missing = [(result, directory) for result, directory in results if not self._is_shown(result)]
        if missing:
            self._failed_at = None  # being asked is reason enough to try at once
        for result, directory in missing:
            self.record(result, directory)
        return sum(self._is_shown(result) for result, _ in missing)

    def ratios(self, rows: Iterable[tuple[str, Mapping[str, float | None]]]) -> None:
        """Show ratios on the runs of the cells that have one."""
        for cell, ratios in rows:
            if cell in self._runs and (metrics := fields.finite(ratios)):
                self._attempt(partial(self._log, self._runs[cell][0], metrics))

    def close(self, report: Path | None, status: str) -> None:
        """End the sweep's run, if it was opened."""
        if self._parent:
            self._attempt(partial(self._close, report, status))

    def _close(self, report: Path | None, status: str) -> None:
        for file in (report, *(self._directory / name for name in PARENT_FILES)):
            if file is not None:
                self._attach(self._parent, file)
        self._log(self._parent, {"cells/shown": float(len(self._runs))})
        self._client.set_terminated(self._parent, status)

    def _attempt(self, action: Callable[[], None]) -> None:
        if self._failed_at is not None and time.monotonic() - self._failed_at < RETRY_SECONDS:
            return
        try:
            action()
        except self._errors as error:
            if not self._warned:
                log.warning(
                    "MLflow store %s fails (%s); the sweep goes on, and its command run again catches up",
                    self.uri,
                    first_line(error),
                )
            self._warned = True
            self._failed_at = time.monotonic()

    def _is_shown(self, result: CellResult) -> bool:
        return self._runs.get(result.cell, ("", ""))[1] == fields.content(result)

    def _record(self, result: CellResult, directory: Path | None) -> None:
        if result.cell in self._runs:  # a new result for an old cell: a retry, or a gate that was added later
            self._client.delete_run(self._runs.pop(result.cell)[0])
        started = fields.started_ms(result)
        run = self._client.create_run(
            self._experiment,
            run_name=fields.cell_name(result),
            start_time=started,
            tags=fields.cell_tags(self._plan, result, self._parent),
        ).info.run_id
        self._runs[result.cell] = (run, "")
        self._log(run, fields.cell_metrics(result), fields.cell_params(self._plan, result))
        if directory is not None:
            self._client.log_artifacts(run, str(directory))
        if result.log_tail:
            self._client.log_text(run, result.log_tail, LOG_TAIL)
        ended = started + int(result.seconds * 1000) if started is not None else None
        self._client.set_terminated(run, fields.status(result), end_time=ended)
        self._runs[result.cell] = (run, fields.content(result))

    def _log(self, run: str, metrics: Mapping[str, float], params: Mapping[str, str] | None = None) -> None:
        from mlflow.entities import Metric, Param  # noqa: PLC0415  loads for seconds

        now = int(time.time() * 1000)
        self._client.log_batch(
            run,
            metrics=[Metric(key, value, now, 0) for key, value in metrics.items()],
            params=[Param(key, value) for key, value in (params or {}).items()],
        )

    def _attach(self, run: str, file: Path) -> None:
        if file.is_file():
            self._client.log_artifact(run, str(file))

    def _experiment_id(self, artifacts: Path | None) -> str:
        name = str(self._plan.tracking.get("experiment") or self._plan.name)
        found = self._client.get_experiment_by_name(name)
        if found is None:
            location = (artifacts / name).as_uri() if artifacts else None
            return str(self._client.create_experiment(name, artifact_location=location))
        if found.lifecycle_stage != "active":
            self._client.restore_experiment(found.experiment_id)
        return str(found.experiment_id)

    def _parent_run(self) -> str:
        found = self._search("sweep")
        if found:
            run = str(found[0].info.run_id)
            self._client.update_run(run, status="RUNNING")
            return run
        created = self._client.create_run(
            self._experiment, run_name=self._plan.sweep, tags=fields.sweep_tags(self._plan)
        )
        run = str(created.info.run_id)
        self._log(run, {}, fields.sweep_params(self._plan))
        return run

    def _known_runs(self) -> dict[str, tuple[str, str]]:
        """Return the finished cells' runs; one that a killed driver left half-written is thrown away."""
        known: dict[str, tuple[str, str]] = {}
        for run in self._search("cell"):
            tags = run.data.tags
            if run.info.status == "RUNNING" or tags[fields.CELL_ID] in known:
                self._client.delete_run(run.info.run_id)
            else:
                known[tags[fields.CELL_ID]] = (run.info.run_id, tags.get(fields.CONTENT, ""))
        return known

    def _search(self, kind: str) -> list[Any]:
        query = f"tags.`{fields.SWEEP_ID}` = '{self._plan.sweep}' AND tags.`{fields.KIND}` = '{kind}'"
        runs: list[Any] = []
        token: str | None = None
        while True:
            page = self._client.search_runs([self._experiment], query, max_results=1000, page_token=token)
            runs += page
            token = page.token
            if not token:
                return runs
