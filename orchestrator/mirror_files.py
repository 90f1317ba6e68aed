"""Which files of a sweep's folder are mirrored, and bringing them back."""

import os
import shutil
import stat
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path, PurePosixPath

from orchestrator.errors import ConfigError
from orchestrator.ledger import CELLS, EARLIER, RESULT, replaced_cell
from orchestrator.manifest import MANIFEST
from orchestrator.remote import RemoteFolder
from orchestrator.secrecy import redacted

OWNER = "mirror-owner.json"
"""Who writes to the URL; a file of the mirror alone."""
LOCK = "driver.lock"
"""Says who writes to the local folder."""
_LOCAL = (LOCK, OWNER)
THREADS = 8
"""Cells that are brought at a time."""
_LAST = (RESULT, MANIFEST)
"""Files of a cell that make it count; with the manifest it is whole."""


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    """Return every file to mirror below `folder`: relative path to (size, modification time in ns)."""
    found: dict[str, tuple[int, int]] = {}
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not _is_passing(name)]
        for name in files:
            if _is_passing(name) or name.startswith(_LOCAL):
                continue
            path = Path(parent, name)
            with suppress(FileNotFoundError):  # renamed or removed in this moment
                about = path.lstat()
                if stat.S_ISREG(about.st_mode):
                    found[path.relative_to(folder).as_posix()] = (about.st_size, about.st_mtime_ns)
    return found


def in_order(names: Iterable[str]) -> list[str]:
    """Return the order of copying: what makes a cell count comes last, so a cell there is whole or none."""

    def place(name: str) -> tuple[int, str]:
        file = name.rpartition("/")[2]
        return (_LAST.index(file) if file in _LAST else -1), name

    return sorted(names, key=place)


def replaced(copied: Iterable[str], present: Collection[str]) -> list[str]:
    """Return the copied files of cells that a later one replaced: they are copied under another name, too.

    Nothing else that is no longer in the local folder is removed from the URL: it may be the only copy. They
    come in the order of removing, which is that of copying from behind: what a failure leaves is no cell.
    """
    beside = {name.split("/")[1] for name in present if name.startswith(f"{CELLS}/{EARLIER}")}
    cells = tuple(f"{CELLS}/{replaced_cell(folder)}/" for folder in beside)
    return in_order(name for name in copied if name not in present and name.startswith(cells))[::-1]


def restore(remote: RemoteFolder, folder: Path) -> int:
    """Bring what is at the URL and not here, cell folders whole, and return the number of files.

    What is here already is left alone: it is at least as new. A cell that is at the URL in part comes in
    part, and the ledger sets it aside.

    Raises:
        ConfigError: the URL cannot be read.
    """
    try:
        return bring(remote, folder, files_of_sweep(remote))
    except Exception as error:
        raise unreadable(remote, error) from error


def files_of_sweep(remote: RemoteFolder) -> list[str]:
    """Return the relative paths of a sweep's files at a URL, those that would leave the folder left out."""
    return sorted(name for name in remote.files() if _is_safe(name) and name != OWNER)


def unreadable(remote: RemoteFolder, error: Exception) -> ConfigError:
    """Return what to raise when a back end fails in reading."""
    why = redacted(str(error) or type(error).__name__)
    return ConfigError(
        f"results at {remote.url} cannot be read ({why}); check the address and this machine's credentials "
        "for it"
    )


def bring(remote: RemoteFolder, folder: Path, names: Iterable[str], *, refresh: bool = False) -> int:
    """Bring these files, as far as they (or the folders of their cells) are not here; return how many.

    With `refresh`, what is no part of a cell is brought even where there is an older one.
    """
    cells: dict[str, list[str]] = {}
    single: list[str] = []
    for name in names:
        parts = PurePosixPath(name).parts
        if len(parts) > 2 and parts[0] == CELLS:
            cells.setdefault(parts[1], []).append(name)
        else:
            single.append(name)
    brought = 0
    for name in single:
        target = folder / name
        if refresh or not target.exists():
            staging = target.with_name(f"{target.name}.{os.getpid()}.tmp")
            remote.get(name, staging)
            staging.replace(target)
            brought += 1
    missing = {cell: files for cell, files in cells.items() if not (folder / CELLS / cell).exists()}
    with ThreadPoolExecutor(THREADS) as threads:  # a request to a store is mostly waiting
        brought += sum(threads.map(lambda cell: _bring_cell(remote, folder, cell, missing[cell]), missing))
    return brought


def _bring_cell(remote: RemoteFolder, folder: Path, cell: str, files: Sequence[str]) -> int:
    final = folder / CELLS / cell
    staging = final.with_name(f".tmp-restore-{os.getpid()}-{cell}")
    shutil.rmtree(staging, ignore_errors=True)
    for name in files:
        remote.get(name, staging / PurePosixPath(name).relative_to(f"{CELLS}/{cell}"))
    staging.replace(final)
    return len(files)


def _is_passing(name: str) -> bool:
    """Whether a name is that of something that is still being written."""
    return name.startswith((".tmp", "tmp-")) or name.endswith((".tmp", ".part"))


def _is_safe(name: str) -> bool:
    """Whether a remote name stays inside the folder: a store can hold any key."""
    parts = PurePosixPath(name).parts
    return bool(parts) and not name.startswith("/") and ".." not in parts and "\0" not in name
