"""The MLflow view of a sweep. The driver is its only writer, and the results folder stays the truth."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from jobs.result import CellResult
from orchestrator.plan import Plan
from orchestrator.tracking_mlflow import MlflowRecorder
from orchestrator.tracking_store import store_uri
from orchestrator.tracking_writer import BackgroundRecorder

if TYPE_CHECKING:  # pandas and scipy take a second to load, and a sweep begins without them
    from analysis.summary import Summary


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

    def summary(self, summary: "Summary") -> None:
        """Show what the sweep says: the curve of each arm, and the verdicts in the sweep's description."""

    def close(self, report: Path | None, status: str) -> None:
        """End the sweep's run as `FINISHED`, `FAILED` or `KILLED`.

        Args:
            report: the page of the report, which is shown with what lies beside it: the same as Markdown, and
                the figures.
            status: of the run.
        """


def recorder_for(plan: Plan, results: Path) -> "Recorder":
    """Return the recorder of a driver, as `plan.tracking` asks for; sweeps lie under `results`."""
    recorder = direct_recorder_for(plan, results)
    if recorder is None:
        return NullRecorder()
    return BackgroundRecorder(recorder, required=bool(plan.tracking.get("required")))


def direct_recorder_for(plan: Plan, results: Path) -> MlflowRecorder | None:
    """Return what writes to the store of `plan.tracking` at once; None where there is none."""
    uri = store_uri(plan.tracking, results)
    return MlflowRecorder(uri) if uri else None


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

    def summary(self, summary: "Summary") -> None:
        """Do nothing."""

    def close(self, report: Path | None, status: str) -> None:
        """Do nothing."""
