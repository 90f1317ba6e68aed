"""The ledger: one folder a sweep, written atomically by one driver. It is the truth; MLflow is a view of it.

```
<results>/<sweep>/plan.json                what was to be measured
                  workload.tokens          the frozen tokens that every arm replays
                  provenance.json          where and with what it was run
                  cells/<cell>/result.json + requests.parquet + ... + manifest.json
                  engines/<run>/...        command line, resolved configuration and log of each engine
                  aside/...                what could not be counted, with the reasons
                  driver.lock              held by the living driver
```
A cell's folder is filled under a temporary name, brought to the disk and renamed, so it is there whole or not
at all. `cells/.earlier-<number>-<cell>` is the outcome of an earlier try. Cells are read once, when the
ledger is opened; then the driver has them in memory.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from jobs.result import TREATMENT, CellResult
from orchestrator.aside import SetAside, set_aside
from orchestrator.durable import replace_bytes, sync_folder, to_json, write_bytes
from orchestrator.errors import LedgerError
from orchestrator.lock import DriverLock
from orchestrator.manifest import MANIFEST, examine, make_manifest
from orchestrator.plan import Plan
from orchestrator.tries import replaced_among, replaced_by

PLAN = "plan.json"
WORKLOAD = "workload.tokens"
RESULT = "result.json"
CELLS = "cells"
ENGINES = "engines"
_STAGING = ".tmp-"
EARLIER = ".earlier-"
"""Begins the name of a cell that a later one took the place of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A cell as it is in the ledger now."""

    result: CellResult
    directory: Path


class Ledger:
    """The results folder of one sweep, opened for writing by the only driver that may.

    Args:
        root: folder that keeps the sweeps.
        plan: what the sweep is.
        take_over: take the folder over from a driver on another machine that is dead.
    """

    def __init__(self, root: Path, plan: Plan, *, take_over: bool = False) -> None:
        self.plan = plan
        self.directory = root / plan.sweep
        self.aside: list[SetAside] = []
        """What opening it found that cannot be counted."""
        self._lock = DriverLock(self.directory, take_over=take_over)
        self._blocks: dict[int, dict[str, CellResult]] = {}
        """Block -> cell -> its outcome: each write looks at its own block, however long the sweep is."""
        self._earlier: list[CellResult] = []
        self._sequence = 0

    def __enter__(self) -> Self:
        """Create or reopen the folder, take its lock, and read what is recorded.

        Raises:
            LedgerError: another driver holds it, the folder belongs to another plan, or it cannot be written.
        """
        try:
            for folder in (CELLS, ENGINES):
                (self.directory / folder).mkdir(parents=True, exist_ok=True)
            self._lock.__enter__()
            try:
                self._check_plan()
                self._read_cells()
            except BaseException:
                self._lock.__exit__(None, None, None)
                raise
        except OSError as error:
            message = (
                f"results folder {self.directory} cannot be written ({error}); "
                "set results=FOLDER to one that can"
            )
            raise LedgerError(message) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.__exit__(kind, error, trace)

    def results(self) -> list[CellResult]:
        """Return every recorded cell in the order of recording; of a cell's tries, the last."""
        return sorted((cell for cells in self._blocks.values() for cell in cells.values()), key=_order)

    def results_in(self, block: int) -> list[CellResult]:
        """Return the recorded cells of a block, in no order; of a cell's tries, the last."""
        return list(self._blocks.get(block, {}).values())

    def earlier(self) -> list[CellResult]:
        """Return the outcomes of tries that a later one replaced."""
        return list(self._earlier)

    def last_try(self, result: CellResult) -> CellResult | None:
        """Return the try of a treatment that `result` would replace, if there is one."""
        known = self._blocks.get(result.block, {})
        former = [known[cell] for cell in replaced_by(result, known.values())]
        return next((each for each in former if each.role == TREATMENT), None)

    def record(self, result: CellResult, files: Mapping[str, bytes]) -> Recorded:
        """Write one cell, whole or not at all; what it replaces is kept beside it.

        Raises:
            LockLostError: another driver took the sweep over.
            OSError: it cannot be written; nothing of it is counted then.
        """
        self._lock.check()
        numbered = replace(result, sequence=self._sequence + 1)
        final = self.cell_directory(result.cell)
        staging = final.with_name(f"{_STAGING}{result.cell}")
        content = {**files, RESULT: to_json(numbered.to_dict())}
        manifest = make_manifest(content, sweep=self.plan.sweep, plan=self.plan.digest, cell=result.cell)
        try:
            shutil.rmtree(staging, ignore_errors=True)
            staging.mkdir()
            for name, data in {**content, MANIFEST: manifest}.items():
                write_bytes(staging / name, data)
            sync_folder(staging)
            self._lock.check()
            self._make_room(numbered)
            staging.rename(final)
            sync_folder(final.parent)
        except OSError:
            shutil.rmtree(staging, ignore_errors=True)
            raise
        self._sequence += 1
        self._keep(numbered)
        return Recorded(result=numbered, directory=final)

    def record_engine(self, run: str, files: Mapping[str, bytes]) -> None:
        """Keep what an engine left: command line, resolved configuration, log.

        Raises:
            LockLostError: another driver took the sweep over.
            OSError: it cannot be written.
        """
        self._lock.check()
        folder = self.directory / ENGINES / run
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            replace_bytes(folder / name, content)

    def set_aside(self, path: Path, reason: str) -> None:
        """Move a file or folder of the sweep that cannot be used out of the way, and remember why."""
        self.aside.append(set_aside(path, self.directory, reason))

    def cell_directory(self, cell: str) -> Path:
        """Return the folder of a cell, recorded or not."""
        return self.directory / CELLS / cell

    def check(self) -> None:
        """Make sure that the sweep is still this driver's to write.

        Raises:
            LockLostError: another driver took it over.
        """
        self._lock.check()

    def _make_room(self, result: CellResult) -> None:
        """Put what a new cell replaces beside it: their folders no longer count."""
        known = self._blocks.get(result.block, {})
        for cell in sorted(replaced_by(result, known.values())):
            self._retire(known.pop(cell), result.sequence)

    def _retire(self, former: CellResult, number: int) -> None:
        """Let a try count no more, which the cell of that sequence number replaced."""
        folder = self.cell_directory(former.cell)
        if put_beside(folder, number):
            self._earlier.append(former)
        else:  # a copy at a URL had it under both names, and the other one was read
            self.set_aside(folder, "it is a second copy of a replaced try")

    def _keep(self, result: CellResult) -> None:
        self._blocks.setdefault(result.block, {})[result.cell] = result

    def _read_cells(self) -> None:
        """Read every cell once; what is not as it was written is set aside."""
        tried: list[CellResult] = []
        for path in sorted((self.directory / CELLS).iterdir()):
            if path.name.startswith(_STAGING):
                shutil.rmtree(path)  # what a kill left half-written was never counted
            elif path.name.startswith(EARLIER):
                earlier = self._read(path, cell=replaced_cell(path.name))
                self._earlier += [earlier] if earlier else []
            elif (result := self._read(path, cell=path.name)) is not None:
                tried.append(result)
        replaced = replaced_among(tried)  # a copy at a URL can have a try and the one after it
        for result in tried:
            if result.cell in replaced:
                self._retire(result, replaced[result.cell])
            else:
                self._keep(result)
        numbers = [result.sequence for result in (*tried, *self._earlier)]
        self._sequence = max(numbers, default=0)

    def _read(self, path: Path, *, cell: str) -> CellResult | None:
        finding = examine(path, plan=self.plan.digest, cell=cell)
        problem = finding.problem
        if problem is None:
            try:
                result = CellResult.from_dict(json.loads((path / RESULT).read_bytes()))
            except (OSError, ValueError, TypeError, KeyError) as error:
                problem = f"its {RESULT} cannot be read ({error})"
        if problem is not None:
            self.set_aside(path, f"{problem}; it counts as not measured")
            return None
        for name in finding.strangers:
            self.set_aside(path / name, "it is no file of that cell, which stays")
        return result

    def _check_plan(self) -> None:
        path = self.directory / PLAN
        ours = to_json(self.plan.to_dict())
        if path.exists():
            found = path.read_bytes()
            if found == ours:
                return
            try:
                digest = str(json.loads(found)["digest"])
            except (ValueError, TypeError, KeyError) as error:
                self.set_aside(path, f"it is no plan ({error})")
            else:
                if digest != self.plan.digest:
                    message = (
                        f"{path} belongs to another sweep; move the folder away or choose another with "
                        "results=FOLDER"
                    )
                    raise LedgerError(message)
        replace_bytes(path, ours)  # also for the same sweep on another cluster, or recorded elsewhere


def put_beside(folder: Path, number: int) -> bool:
    """Rename a cell's folder: the cell of that sequence number replaced it. False if that was done before."""
    target = folder.with_name(f"{EARLIER}{number:06d}-{folder.name}")
    if target.exists():
        return False
    folder.rename(target)
    return True


def replaced_cell(name: str) -> str:
    """Return the id of the cell whose folder `put_beside` gave this name."""
    return name.removeprefix(EARLIER).partition("-")[2]


def _order(result: CellResult) -> tuple[int, str]:
    return (result.sequence, result.cell)
