"""Writing to MLflow beside the sweep: a store that is slow or away never holds up measuring."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.result import CellResult
from orchestrator.errors import TrackingError, TrackingUnreachableError
from orchestrator.plan import Plan
from orchestrator.tracking_mlflow import RETRY_SECONDS, MlflowRecorder

if TYPE_CHECKING:  # pandas and scipy take a second to load, and a sweep begins without them
    from analysis.summary import Summary

log = logging.getLogger(__name__)

WAITING = 256
"""Cells that may wait to be written; those beyond are left to the end of the sweep."""
PATIENCE = 75.0
"""Seconds without one finished write after which the end of a sweep waits no more: a little longer than all
tries of one request take."""
KILLED_PATIENCE = 10.0
"""The same after a signal, in seconds."""


class BackgroundRecorder:
    """A recorder whose store is written by a thread of its own.

    Args:
        inner: what writes to the store. Once the sweep is open, nobody else may use it.
        required: whether a server that does not answer stops the sweep before it begins.
    """

    def __init__(self, inner: MlflowRecorder, *, required: bool = False, waiting: int = WAITING) -> None:
        self._inner = inner
        self._required = required
        self._tasks: queue.Queue[Callable[[], object] | None] = queue.Queue(maxsize=waiting)
        self._thread = threading.Thread(target=self._work, name="mlflow", daemon=True)
        self._done = 0
        """Tasks that are finished, whatever came of them."""
        self._open = False
        self._next_try = 0.0
        """Time (`time.monotonic`) before which a store that could not be opened is left alone."""
        self._results: list[CellResult] = []
        """What has to be shown in the end."""
        self._given_up = False
        self._behind = False
        self._closed = False

    def open(self, plan: Plan, directory: Path) -> None:
        """Open the store; a server that does not answer now is tried again later, unless it is required.

        Raises:
            TrackingError: the store cannot be used, or is required and does not answer.
        """
        self._plan = plan
        self._directory = directory
        try:
            self._inner.open(plan, directory)
            self._open = True
        except TrackingUnreachableError as error:
            if self._required:
                raise
            self._next_try = time.monotonic() + RETRY_SECONDS
            log.warning("%s; the sweep goes on, and `specload sync %s` catches up", error, directory)
        self._thread.start()

    def record(self, result: CellResult, directory: Path | None) -> None:
        """Show one cell when its turn comes; where too many wait, at the end of the sweep."""
        try:
            self._tasks.put_nowait(partial(self._inner.record, result, directory))
        except queue.Full:
            if not self._behind:
                log.warning("MLflow store %s is slow; what it lacks is recorded at the end", self._inner.uri)
            self._behind = True

    def sync(self, results: Iterable[tuple[CellResult, Path | None]]) -> int:
        """Have exactly these cells shown; how many were missing is known only when the recorder is closed."""
        pairs = list(results)
        self._results = [result for result, _ in pairs]
        self._next_try = 0.0
        self._put(self._inner.wake)
        self._put(partial(self._inner.prune, {result.cell for result in self._results}))
        for result, directory in pairs:
            self._put(partial(self._inner.record, result, directory))
        return 0

    def ratios(self, rows: Iterable[tuple[str, Mapping[str, float | None]]]) -> None:
        """Have ratios shown on the cells' runs."""
        self._put(partial(self._inner.ratios, list(rows)))

    def summary(self, summary: "Summary") -> None:
        """Have the curves and the verdicts shown."""
        self._put(partial(self._inner.summary, summary))

    def close(self, report: Path | None, status: str) -> None:
        """End the sweep's run, and wait for the store while it gets on with its work."""
        if self._closed or self._thread.ident is None:  # the second time, or never opened
            return
        self._closed = True
        patience = PATIENCE
        if status == "KILLED":
            patience = KILLED_PATIENCE
            self._drop_waiting()
        self._put(partial(self._inner.close, report, status))
        self._put(None)
        self._while_it_works(lambda: not self._thread.is_alive(), self._join, patience)
        if self._thread.is_alive():
            log.warning(
                "MLflow store %s still has not taken all; `specload sync %s` catches up",
                self._inner.uri,
                self._directory,
            )
        elif lacking := self._inner.unshown(self._results):
            log.warning(
                "MLflow store %s lacks %d of %d cells; `specload sync %s` records them once it answers",
                self._inner.uri,
                lacking,
                len(self._results),
                self._directory,
            )

    def _put(self, task: Callable[[], object] | None) -> None:
        """Add a task, and wait for room while the store gets on with its work."""
        added = False

        def try_to_add() -> None:
            nonlocal added
            try:
                self._tasks.put(task, timeout=0.5)
            except queue.Full:
                return
            added = True

        if not self._given_up:
            self._while_it_works(lambda: added, try_to_add, PATIENCE)

    def _while_it_works(self, over: Callable[[], bool], step: Callable[[], None], patience: float) -> None:
        """Repeat `step` until `over`, or until nothing has been finished for `patience` seconds."""
        seen, since = self._done, time.monotonic()
        while not over() and not self._given_up:
            step()
            if self._done != seen:
                seen, since = self._done, time.monotonic()
            self._given_up = not over() and time.monotonic() - since > patience

    def _join(self) -> None:
        self._thread.join(timeout=0.5)

    def _drop_waiting(self) -> None:
        try:
            while True:
                self._tasks.get_nowait()
        except queue.Empty:
            pass

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                if self._opened():
                    task()
            except Exception:  # the view of a sweep must never end it
                log.exception("recording in MLflow store %s failed", self._inner.uri)
            self._done += 1

    def _opened(self) -> bool:
        """Whether the store is open; one that did not answer is tried again now and then."""
        if self._open or time.monotonic() < self._next_try:
            return self._open
        try:
            self._inner.open(self._plan, self._directory)
            self._open = True
            log.warning("MLflow store %s answers now", self._inner.uri)
        except TrackingError:
            self._next_try = time.monotonic() + RETRY_SECONDS
        return self._open
