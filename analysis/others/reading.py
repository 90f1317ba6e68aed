"""Files and folders of other tools, as their user names them."""

from collections.abc import Iterable, Iterator
from glob import glob
from pathlib import Path

from analysis.others.formats import FORMATS, read_file
from analysis.others.run import OtherResultsError, OtherRun, Reading


def read_runs(paths: Iterable[str | Path]) -> Reading:
    """Return the runs of files, folders and patterns, each file once, in the order of their names.

    In a folder, files under the names that a tool gives its results are taken; where there are none, every
    `.json` file is.

    Raises:
        OtherResultsError: nothing there, or a file that is of no known format.
    """
    runs: list[OtherRun] = []
    notes: list[str] = []
    for path in _files(paths):
        reading = read_file(path)
        runs += reading.runs
        notes += reading.notes
    return Reading(runs=tuple(runs), notes=tuple(notes))


def _files(paths: Iterable[str | Path]) -> list[Path]:
    found: dict[Path, Path] = {}
    for given in paths:
        here = [Path(given)] if Path(given).exists() else [Path(name) for name in sorted(glob(str(given)))]  # noqa: PTH207 - patterns may be absolute
        files = [file for path in here for file in _of(path)]
        if not files:
            message = f"{given}: no such file or folder, or no result in it"
            raise OtherResultsError(message)
        for file in files:
            found.setdefault(file.resolve(), file)
    return list(found.values())


def _of(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    if (path / "plan.json").is_file():
        message = f"{path} is a sweep of specload; `specload report {path}` judges it, in pairs"
        raise OtherResultsError(message)
    named = sorted(
        {
            file
            for entry in FORMATS
            for pattern in entry.files
            for file in path.rglob(pattern)
            if file.is_file() and entry.part(file) is None
        }
    )
    yield from named or sorted(path.rglob("*.json"))
