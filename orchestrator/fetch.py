"""Bringing a sweep's results to this machine, from the results URL or from MLflow, and checking them."""

import json
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from jobs.result import CellResult
from orchestrator.errors import FetchError
from orchestrator.ledger import CELLS, PLAN, RESULT, put_beside
from orchestrator.manifest import MANIFEST, examine
from orchestrator.mirror_files import LOCK, bring, files_of_sweep, unreadable
from orchestrator.plan import Plan
from orchestrator.remote import RemoteFolder
from orchestrator.saved import read_plan
from orchestrator.secrecy import redacted
from orchestrator.tracking_fields import CELL_ID, KIND, SWEEP_ID
from orchestrator.tracking_store import open_store, store_errors
from orchestrator.tries import replaced_among

TRIES = 2
"""How often a cell is brought that does not match its checksums: the first copy may have been cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What came."""

    folder: Path
    """The sweep's folder on this machine."""
    cells: int
    """Cells in it that match their checksums, those that were here before included."""
    files: int
    """Files that came now."""
    unfinished: int
    """Cells whose copy at the source is not complete yet."""


def fetch_url(remote: RemoteFolder, to: Path) -> Fetched:
    """Bring the sweep's folder at a URL into `to`.

    Raises:
        ConfigError: the URL cannot be read, or holds no sweep.
        FetchError: cells at the source do not match their checksums.
    """
    try:
        names = files_of_sweep(remote)
        content = remote.read(PLAN) if PLAN in names else None
    except Exception as error:
        raise unreadable(remote, error) from error
    if content is None:
        message = f"there is no sweep at {remote.url}: it has no {PLAN}"
        raise FetchError(message)
    plan = _plan_in(content)
    folder = to / plan.sweep
    whole = {PurePosixPath(name).parts[1] for name in names if name.endswith(f"/{MANIFEST}")}
    cells = {PurePosixPath(name).parts[1] for name in names if name.startswith(f"{CELLS}/")}
    cells = {cell for cell in cells if not cell.startswith(".")}
    wanted = [
        name for name in names if not name.startswith(f"{CELLS}/") or PurePosixPath(name).parts[1] in whole
    ]
    # What is no cell changes while a sweep runs: it is taken as it is now, unless this is the folder of the
    # driver itself, which is newer than any copy.
    refresh = not (folder / LOCK).exists()

    def get() -> int:
        try:
            return bring(remote, folder, wanted, refresh=refresh)
        except Exception as error:
            raise unreadable(remote, error) from error

    files = _get_checked(get, folder, plan, str(remote.url))
    return Fetched(folder=folder, cells=_count(folder), files=files, unfinished=len(cells - whole))


def fetch_mlflow(uri: str, sweep: str, to: Path) -> Fetched:
    """Bring a sweep's artifacts on an MLflow server into `to`: plan, cells, report, profiles; no logs.

    Raises:
        TrackingError: the server does not answer.
        FetchError: it does not have the sweep, or cells do not match their checksums.
    """
    client = open_store(uri, ours=False)
    where = f"MLflow at {redacted(uri)}"
    try:
        runs = _runs(client, sweep)
        parent = next((run for run in runs if run.data.tags.get(KIND) == "sweep"), None)
        if parent is None:
            message = f"{where} has no sweep {sweep!r}"
            raise FetchError(message)
        with tempfile.TemporaryDirectory(prefix="specload-fetch-") as name:
            top = Path(client.download_artifacts(parent.info.run_id, "", name))
            plan = _plan_in((top / PLAN).read_bytes())
            folder = to / plan.sweep
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copytree(top, folder, dirs_exist_ok=True)  # folders too: figures, profiles
            files = sum(1 for item in top.rglob("*") if item.is_file())
        cells = {run.data.tags[CELL_ID]: run.info.run_id for run in runs if run.data.tags.get(KIND) == "cell"}
        files += _get_checked(lambda: _cells(client, cells, folder, plan), folder, plan, where)
    except store_errors() as error:
        message = f"{where} does not hand out the results of {sweep}: {redacted(str(error))[:500]}"
        raise FetchError(message) from error
    return Fetched(folder=folder, cells=_count(folder), files=files, unfinished=0)


def _get_checked(get: Callable[[], int], folder: Path, plan: Plan, source: str) -> int:
    """Get the files and check every cell; what is damaged is got again, and then left out.

    Raises:
        FetchError: names the cells that are damaged at the source.
    """
    files = 0
    problems: dict[str, str] = {}
    for _ in range(TRIES):
        files += get()
        problems = {}
        for path in sorted((folder / CELLS).glob("[!.]*")):
            found = examine(path, plan=plan.digest, cell=path.name)
            if found.problem is not None:
                problems[path.name] = found.problem
                shutil.rmtree(path)  # a copy; the source has it still
        if not problems:
            if not (folder / LOCK).exists():
                _put_replaced_beside(folder / CELLS)
            return files
    named = "; ".join(f"{cell}: {problem}" for cell, problem in list(problems.items())[:5])
    message = (
        f"damaged cells at {source} were left out, {len(problems)} in all ({named}). The others are in "
        f"{folder}; `specload submit` with the sweep's words measures them again"
    )
    raise FetchError(message)


def _count(folder: Path) -> int:
    return sum(1 for _ in (folder / CELLS).glob(f"[!.]*/{MANIFEST}"))


def _put_replaced_beside(cells: Path) -> None:
    """Let of each cell's tries the last count: an earlier fetch may have brought one, this fetch the next."""
    found: list[CellResult] = []
    for path in cells.glob(f"[!.]*/{RESULT}"):
        # one of another version stays as it is: who reads it says so
        with suppress(ValueError, TypeError, KeyError, RecursionError):
            found.append(CellResult.from_dict(json.loads(path.read_bytes())))
    for cell, number in replaced_among(found).items():
        if not put_beside(cells / cell, number):
            shutil.rmtree(cells / cell)  # the source had it under both names


def _cells(client: Any, cells: dict[str, str], folder: Path, plan: Plan) -> int:
    brought = 0
    (folder / CELLS).mkdir(parents=True, exist_ok=True)
    for cell, run in cells.items():
        final = folder / CELLS / cell
        if Path(cell).name != cell or final.exists():
            continue
        with tempfile.TemporaryDirectory(prefix=".tmp-fetch-", dir=folder / CELLS) as name:
            got = Path(client.download_artifacts(run, "", name))
            for stranger in examine(got, plan=plan.digest, cell=cell).strangers:
                (got / stranger).unlink()  # what only the view has
            shutil.copytree(got, final.with_name(f".tmp-{cell}"))
        final.with_name(f".tmp-{cell}").replace(final)
        brought += sum(1 for _ in final.iterdir())
    return brought


def _runs(client: Any, sweep: str) -> list[Any]:
    experiments = [found.experiment_id for found in client.search_experiments()]
    quoted = sweep.replace("'", "")
    runs: list[Any] = []
    token: str | None = None
    while True:
        page = client.search_runs(
            experiments, f"tags.`{SWEEP_ID}` = '{quoted}'", max_results=1000, page_token=token
        )
        runs += page
        token = page.token
        if not token:
            return runs


def _plan_in(content: bytes) -> Plan:
    with tempfile.TemporaryDirectory(prefix="specload-fetch-") as name:
        path = Path(name) / PLAN
        path.write_bytes(content)
        return read_plan(path)
