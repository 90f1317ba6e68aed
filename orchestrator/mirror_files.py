"""Which files of a sweep's folder are mirrored, and bringing them back."""

import os
import shutil
import stat
from pathlib import Path, PurePosixPath

from orchestrator.errors import ConfigError
from orchestrator.remote import RemoteFolder
from orchestrator.secrecy import redacted

CELLS = "cells"
OWNER = "mirror-owner.json"
"""Who writes to the URL; a file of the mirror alone."""
_LOCAL = ("driver.lock", OWNER)
LAST = frozenset({"result.json", "manifest.json"})
"""Files of a cell that make it count."""


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    """Return every file to mirror below `folder`: relative path to (size, modification time in ns)."""
    found: dict[str, tuple[int, int]] = {}
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not _is_passing(name)]
        for name in files:
            if _is_passing(name) or name.startswith(_LOCAL):
                continue
            path = Path(parent, name)
            about = path.lstat()
            if stat.S_ISREG(about.st_mode):
                found[path.relative_to(folder).as_posix()] = (about.st_size, about.st_mtime_ns)
    return found


def restore(remote: RemoteFolder, folder: Path) -> int:
    """Bring what is at the URL and not here, cell folders whole, and return the number of files.

    What is here already is left alone: it is at least as new. A cell that is at the URL in part comes in
    part, and the ledger sets it aside.

    Raises:
        ConfigError: the URL cannot be read.
    """
    try:
        wanted = {name: size for name, size in remote.files().items() if _is_safe(name) and name != OWNER}
        return _bring(remote, folder, sorted(wanted))
    except Exception as error:
        message = (
            f"results at {remote.url} cannot be read ({redacted(str(error) or type(error).__name__)}); check "
            "the address and this machine's credentials for it"
        )
        raise ConfigError(message) from error


def _bring(remote: RemoteFolder, folder: Path, names: list[str]) -> int:
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
        if not target.exists():
            staging = target.with_name(f"{target.name}.{os.getpid()}.tmp")
            remote.get(name, staging)
            staging.replace(target)
            brought += 1
    for cell, files in cells.items():
        final = folder / CELLS / cell
        if final.exists():
            continue
        staging = final.with_name(f".tmp-restore-{os.getpid()}-{cell}")
        shutil.rmtree(staging, ignore_errors=True)
        for name in files:
            remote.get(name, staging / PurePosixPath(name).relative_to(f"{CELLS}/{cell}"))
        staging.replace(final)
        brought += len(files)
    return brought


def _is_passing(name: str) -> bool:
    """Whether a name is that of something that is still being written."""
    return name.startswith((".tmp", "tmp-")) or name.endswith(".tmp")


def _is_safe(name: str) -> bool:
    """Whether a remote name stays inside the folder: a store can hold any key."""
    parts = PurePosixPath(name).parts
    return bool(parts) and not name.startswith("/") and ".." not in parts and "\0" not in name
