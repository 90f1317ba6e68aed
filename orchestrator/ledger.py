"""The ledger: one folder a sweep, written atomically by one driver. It is the truth; MLflow is a view of it.

```
<results>/<sweep>/plan.json                what was to be measured
                  workload.tokens          the frozen tokens that every arm replays
                  provenance.json          where and with what it was run
                  cells/<cell>/result.json + requests.parquet + gauges.parquet + ...
                  engines/<run>/...        command line, resolved configuration and log of each engine
                  driver.lock              held by the living driver
```
A cell's folder is filled under a temporary name and renamed, so it is there whole or not at all.
"""

import fcntl
import json
import os
import shutil
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from jobs.result import CellResult
from orchestrator.errors import LedgerError
from orchestrator.plan import Plan

PLAN = "plan.json"
WORKLOAD = "workload.tokens"
RESULT = "result.json"


class Ledger:
    """The results folder of one sweep, opened for writing by the only driver that may."""

    def __init__(self, root: Path, plan: Plan) -> None:
        self.plan = plan
        self.directory = root / plan.sweep
        self._lock: int | None = None

    def __enter__(self) -> Self:
        """Create or reopen the folder and take its lock.

        Raises:
            LedgerError: another driver holds it, the folder belongs to another plan, or it cannot be written.
        """
        try:
            for folder in ("cells", "engines"):
                (self.directory / folder).mkdir(parents=True, exist_ok=True)
            self._take_lock()
            self._check_plan()
        except OSError as error:
            message = (
                f"results folder {self.directory} cannot be written ({error}); "
                "set results=FOLDER to one that can"
            )
            raise LedgerError(message) from error
        for leftover in (self.directory / "cells").glob(".tmp-*"):
            shutil.rmtree(leftover)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def results(self) -> list[CellResult]:
        """Return every recorded cell, oldest first.

        Raises:
            LedgerError: a result cannot be read; the message names the file and what to do.
        """
        return sorted(self._read_results(), key=lambda result: (result.started, result.cell))

    def record(self, result: CellResult, files: Mapping[str, bytes]) -> Path:
        """Write one cell, whole or not at all, and return its folder."""
        final = self.cell_directory(result.cell)
        staging = final.with_name(f".tmp-{result.cell}")
        staging.mkdir()
        for name, content in files.items():
            (staging / name).write_bytes(content)
        _write_json(staging / RESULT, result.to_dict())
        if (
            final.exists()
        ):  # a cell that failed and is tried again: the earlier outcome stays beside the new one
            final.rename(final.with_name(f".earlier-{result.cell}-{time.time_ns()}"))
        staging.rename(final)
        return final

    def record_engine(self, run: str, files: Mapping[str, bytes]) -> None:
        """Keep what an engine left: command line, resolved configuration, log."""
        folder = self.directory / "engines" / run
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)

    def cell_directory(self, cell: str) -> Path:
        """Return the folder of a cell, recorded or not."""
        return self.directory / "cells" / cell

    def _read_results(self) -> Iterator[CellResult]:
        for path in sorted((self.directory / "cells").glob("[!.]*/" + RESULT)):
            try:
                yield CellResult.from_dict(json.loads(path.read_text()))
            except (ValueError, TypeError, KeyError) as error:
                message = (
                    f"{path} cannot be read ({error}). Nothing else is touched: move its folder out of "
                    "cells/ to measure that cell again."
                )
                raise LedgerError(message) from error

    def _take_lock(self) -> None:
        # flock, not a pid file: the kernel frees it at any ending of the driver, SIGKILL included
        path = self.directory / "driver.lock"
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = path.read_text().strip() or "another driver"
            os.close(lock)
            message = (
                f"sweep {self.plan.sweep} is being run by {owner}; wait for it, or stop that process first"
            )
            raise LedgerError(message) from None
        os.ftruncate(lock, 0)
        os.write(lock, f"process {os.getpid()} on {socket.gethostname()}".encode())
        self._lock = lock

    def _check_plan(self) -> None:
        path = self.directory / PLAN
        if not path.exists():
            _write_json(path, self.plan.to_dict())
            return
        try:
            found = json.loads(path.read_text()).get("digest")
        except (ValueError, AttributeError) as error:
            message = (
                f"{path} is no plan ({error}); move the folder away or choose another with results=FOLDER"
            )
            raise LedgerError(message) from error
        if found != self.plan.digest:
            message = (
                f"{path} belongs to another sweep; move the folder away or choose another with results=FOLDER"
            )
            raise LedgerError(message)


def _write_json(path: Path, data: Any) -> None:
    staging = path.with_name(f"{path.name}.tmp")
    with staging.open("w") as stream:
        json.dump(data, stream, indent=1, sort_keys=True)
        stream.flush()
        os.fsync(stream.fileno())
    staging.replace(path)
