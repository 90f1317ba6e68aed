"""A sweep in an MLflow store.

An experiment is a study, its parent run a sweep, each child run a cell; the arms' curves stand beside it.
Everything is found again by tags, so that recording twice changes nothing: a run is replaced only where the
cell's result has changed since.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.untrusted import plain
from jobs.result import CellResult
from orchestrator import tracking_fields as fields
from orchestrator.errors import TrackingError, TrackingUnreachableError
from orchestrator.names import folder_name
from orchestrator.plan import Plan
from orchestrator.tracking_curves import CURVE, Curve, curve_tags, curves
from orchestrator.tracking_note import sweep_note
from orchestrator.tracking_store import ARTIFACTS, first_line, is_server, open_store, store_errors, store_uri
from orchestrator.tracking_views import KIND, chart, study_note

if TYPE_CHECKING:  # pandas and scipy take a second to load, and a sweep begins without them
    from analysis.summary import Summary

log = logging.getLogger(__name__)

RETRY_SECONDS = 60.0
"""After a failure the store is left alone for so long: a try can take its time-out."""
LOG_TAIL = "engine_log_tail.txt"
BATCH = 1000
"""Metric values that MLflow takes in one request."""
VERDICTS = "verdicts.md"
"""Artifact of the sweep's run with its description: the UI's page of a run may not show that."""
PARENT_FILES = ("plan.json", "provenance.json", "summary.json")
"""Files of a sweep's folder that hang on its parent run, where they exist."""
FIGURES = "figures"
"""Folder beside a report, with its figures as pictures and as plotly's JSON."""


@dataclass(slots=True, kw_only=True)
class _Shown:
    """The run of one cell."""

    run: str
    """Run id."""
    content: str = ""
    """Digest of the result it shows; empty while it is half-written."""
    metrics: dict[str, float] = field(default_factory=dict)
    """What was added to it later: ratios."""


class MlflowRecorder:
    """Shows a sweep in an MLflow store, and goes on without it when it fails."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self._failed_at: float | None = None
        self._warned = False
        self._parent = ""
        """Run id of the sweep; empty until it is open."""
        self._parent_metrics: dict[str, float] = {}
        self._note = ""
        """Description of the sweep's run."""
        self._runs: dict[str, _Shown] = {}
        """Cell id -> its run."""

    def open(self, plan: Plan, directory: Path) -> None:
        """Create the store and the experiment where missing, and find or create the sweep's run.

        Raises:
            TrackingUnreachableError: its server does not answer now.
            TrackingError: the store cannot be used.
        """
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
            message = f"MLflow store {self.uri} cannot be used: {first_line(error)}"
            raise (TrackingUnreachableError if is_server(self.uri) else TrackingError)(message) from error

    def record(self, result: CellResult, directory: Path | None) -> None:
        """Show one cell; a failing store costs a warning."""
        if not self._is_shown(result):
            self._attempt(partial(self._record, result, directory))

    def sync(self, results: Iterable[tuple[CellResult, Path | None]]) -> int:
        """Show exactly these cells, and return how many were missing or outdated and are shown now."""
        pairs = list(results)
        missing = [(result, directory) for result, directory in pairs if not self._is_shown(result)]
        self.wake()
        self.prune({result.cell for result, _ in pairs})
        for result, directory in missing:
            self.record(result, directory)
        return sum(self._is_shown(result) for result, _ in missing)

    def prune(self, cells: Collection[str]) -> None:
        """Remove the runs of other cells: of tries that later ones replaced, of what was set aside."""
        for cell in sorted(self._runs.keys() - set(cells)):
            self._attempt(partial(self._remove, cell))

    def wake(self) -> None:
        """Try again at once, however short ago the store failed."""
        self._failed_at = None

    def unshown(self, results: Iterable[CellResult]) -> int:
        """Return how many of the cells the store lacks, or shows as they were."""
        return sum(not self._is_shown(result) for result in results)

    def ratios(self, rows: Iterable[tuple[str, Mapping[str, float | None]]]) -> None:
        """Show ratios on the runs of the cells that have one; what is shown already stays as it is."""
        for cell, ratios in rows:
            if cell in self._runs and (metrics := fields.finite(ratios)):
                self._attempt(partial(self._add, self._runs[cell], metrics))

    def summary(self, summary: "Summary") -> None:
        """Show the curve of each arm on a run of its own, and the verdicts in the sweep's description."""
        self._attempt(partial(self._show, summary))

    def close(self, report: Path | None, status: str) -> None:
        """End the sweep's run, if it was opened."""
        if self._parent:
            self._attempt(partial(self._close, report, status))

    def _close(self, report: Path | None, status: str) -> None:
        for name in PARENT_FILES:
            self._attach(self._parent, self._directory / name)
        if report is not None:
            self._attach(self._parent, report)
            self._attach(self._parent, report.with_suffix(".md"))
            if (figures := report.with_name(FIGURES)).is_dir():
                self._client.log_artifacts(self._parent, str(figures), artifact_path=FIGURES)
        shown = {"cells/shown": float(len(self._runs))}
        if self._parent_metrics != shown:
            self._log(self._parent, shown)
            self._parent_metrics = shown
        self._client.set_terminated(self._parent, status)

    def _show(self, summary: "Summary") -> None:
        found = curves(self._plan, summary)
        wanted = {curve.content for curve in found}
        shown: set[str] = set()
        for run in self._search(CURVE):
            content = run.data.tags.get(fields.CONTENT, "")
            if run.info.status == "FINISHED" and content in wanted - shown:
                shown.add(content)
            else:  # of results that have changed since, or half-written
                self._client.delete_run(run.info.run_id)
        for curve in reversed(found):  # the UI shows the latest first
            if curve.content not in shown:
                self._draw(curve)
        self._describe(sweep_note(self._plan, summary, chart(self._experiment, self._plan.sweep)))

    def _draw(self, curve: Curve) -> None:
        from mlflow.entities import Metric, Param  # noqa: PLC0415  loads for seconds

        now = int(time.time() * 1000)
        run = self._create(curve.name, curve_tags(self._plan, curve))
        metrics = [Metric(point.name, point.value, now, point.step) for point in curve.points]
        params = [Param(key, value) for key, value in fields.shown(curve.params).items()]
        for start in range(0, len(metrics), BATCH):
            self._client.log_batch(run, metrics=metrics[start : start + BATCH])
        self._client.log_batch(run, params=params)
        self._client.set_terminated(run, "FINISHED")

    def _describe(self, note: str) -> None:
        if note != self._note:
            self._client.set_tag(self._parent, fields.NOTE, note)
            self._client.log_text(self._parent, note, VERDICTS)
            self._note = note

    def _attempt(self, action: Callable[[], None]) -> None:
        if self._failed_at is not None and time.monotonic() - self._failed_at < RETRY_SECONDS:
            return
        try:
            action()
        except self._errors as error:
            if not self._warned:
                log.warning(
                    "MLflow store %s fails (%s); measuring goes on, and `specload sync %s` catches up",
                    self.uri,
                    first_line(error),
                    self._directory,
                )
            self._warned = True
            self._failed_at = time.monotonic()

    def _is_shown(self, result: CellResult) -> bool:
        shown = self._runs.get(result.cell)
        return shown is not None and shown.content == fields.content(result)

    def _record(self, result: CellResult, directory: Path | None) -> None:
        if result.cell in self._runs:  # a new result for an old cell: a retry, or a gate that was added later
            self._remove(result.cell)
        started = fields.started_ms(result)
        tags = fields.cell_tags(self._plan, result, self._parent)
        run = self._create(fields.cell_name(result), tags, started)
        shown = self._runs[result.cell] = _Shown(run=run)
        self._log(run, fields.cell_metrics(result), fields.cell_params(self._plan, result))
        if directory is not None:
            self._client.log_artifacts(run, str(directory))
        if result.log_tail:
            self._client.log_text(run, plain(result.log_tail, lines=True), LOG_TAIL)
        ended = started + int(result.seconds * 1000) if started is not None else None
        self._client.set_terminated(run, fields.status(result), end_time=ended)
        shown.content = fields.content(result)

    def _remove(self, cell: str) -> None:
        self._client.delete_run(self._runs[cell].run)
        del self._runs[cell]

    def _add(self, shown: _Shown, metrics: Mapping[str, float]) -> None:
        """Add metrics to a run: one that it has is not logged again, or it would have a history."""
        news = {name: value for name, value in metrics.items() if shown.metrics.get(name) != value}
        if news:
            self._log(shown.run, news)
            shown.metrics |= news

    def _create(self, name: str, tags: Mapping[str, str], started: int | None = None) -> str:
        """Create a run and return its id."""
        made = self._client.create_run(
            self._experiment, run_name=fields.shown_name(name), start_time=started, tags=fields.shown(tags)
        )
        return str(made.info.run_id)

    def _log(self, run: str, metrics: Mapping[str, float], params: Mapping[str, str] | None = None) -> None:
        from mlflow.entities import Metric, Param  # noqa: PLC0415  loads for seconds

        now = int(time.time() * 1000)
        self._client.log_batch(
            run,
            metrics=[Metric(key, value, now, 0) for key, value in metrics.items()],
            params=[Param(key, value) for key, value in fields.shown(params or {}).items()],
        )

    def _attach(self, run: str, file: Path) -> None:
        if file.is_file():
            self._client.log_artifact(run, str(file))

    def _experiment_id(self, artifacts: Path | None) -> str:
        name = fields.experiment(self._plan)
        found = self._client.get_experiment_by_name(name)
        if found is None:
            location = (artifacts / folder_name(name)).as_uri() if artifacts else None
            try:
                made = str(self._client.create_experiment(name, artifact_location=location, tags=KIND))
            except self._errors:  # another driver of the same study may have been faster
                found = self._client.get_experiment_by_name(name)
                if found is None:
                    raise
            else:
                self._client.set_experiment_tag(made, fields.NOTE, study_note(made))
                return made
        if found.lifecycle_stage != "active":
            self._client.restore_experiment(found.experiment_id)
        return str(found.experiment_id)

    def _parent_run(self) -> str:
        found = self._search("sweep")
        if found:
            run = str(found[0].info.run_id)
            self._client.update_run(run, status="RUNNING")
            self._parent_metrics = dict(found[0].data.metrics)
            self._note = found[0].data.tags.get(fields.NOTE, "")
            return run
        run = self._create(self._plan.sweep, fields.sweep_tags(self._plan))
        note = sweep_note(self._plan, chart=chart(self._experiment, self._plan.sweep))
        self._log(run, {}, fields.sweep_params(self._plan))
        self._client.set_tag(run, fields.NOTE, note)
        self._note = note
        return run

    def _known_runs(self) -> dict[str, _Shown]:
        """Return the finished cells' runs; one that a killed driver left half-written is thrown away."""
        known: dict[str, _Shown] = {}
        for run in self._search("cell"):
            tags = run.data.tags
            if run.info.status == "RUNNING" or tags[fields.CELL_ID] in known:
                self._client.delete_run(run.info.run_id)
            else:
                known[tags[fields.CELL_ID]] = _Shown(
                    run=run.info.run_id,
                    content=tags.get(fields.CONTENT, ""),
                    metrics=dict(run.data.metrics),
                )
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
