"""The folder of a sweep as a user names it, a path or its name; and which sweeps there are instead."""

from pathlib import Path

from engines.nearest import did_you_mean
from jobs.nouns import some
from orchestrator.errors import ConfigError
from orchestrator.ledger import PLAN
from orchestrator.status import FILE

ROOT = Path("results")
"""Where sweeps are kept unless the words of one say otherwise."""
NAMED = 5
"""Sweeps that are named in an error."""


def sweep_folder(path: Path) -> Path:
    """Return the folder of a sweep: `path`, or where there is none, the sweep of that name in `results`.

    Raises:
        ConfigError: it is no folder of a sweep; the message names those that are there.
    """
    if _is_sweep(path):
        return path
    if path.name == str(path) and _is_sweep(ROOT / path):
        return ROOT / path
    raise ConfigError(no_sweep(path))


def no_sweep(path: Path) -> str:
    """Return what is said where `path` is no sweep: what it is, and which sweeps there are."""
    what = "is not there"
    if path.exists():
        what = "is a folder without a plan.json" if path.is_dir() else "is no folder"
    for root in dict.fromkeys((path, path.parent, ROOT)):
        names = newest(root)
        if names:
            guess = did_you_mean(path.name, names)
            return f"{path} {what}{guess}; sweeps in {root}, the newest first: {some(names, NAMED)}"
    return f"{path} {what}; give the folder of a sweep, results/SWEEP, which `specload sweep` makes"


def newest(root: Path) -> list[str]:
    """Return the names of the sweeps in a folder, the one that ran last first."""
    found = [plan.parent for plan in root.glob(f"*/{PLAN}")] if root.is_dir() else []
    return [folder.name for folder in sorted(found, key=_last_run, reverse=True)]


def _is_sweep(path: Path) -> bool:
    return (path / PLAN).exists()  # damaged or no file at all: whoever reads it says what is wrong


def _last_run(folder: Path) -> tuple[float, str]:
    times = [path.stat().st_mtime for path in (folder / PLAN, folder / FILE) if path.exists()]
    return max(times, default=0.0), folder.name
