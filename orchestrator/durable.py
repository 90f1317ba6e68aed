"""Writing that survives: a file is there whole or not at all, and on the disk when the call returns."""

import json
import os
from pathlib import Path
from typing import Any


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to a new file and wait until it is on the disk."""
    with path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def replace_bytes(path: Path, content: bytes) -> None:
    """Put `content` in the place of what `path` holds, whole or not at all.

    Raises:
        OSError: it could not be written; `path` holds what it held.
    """
    staging = path.with_name(f".{path.name}.part")
    try:
        write_bytes(staging, content)
        staging.replace(path)
    except OSError:
        staging.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def replace_json(path: Path, data: Any) -> None:
    """Put `data` as JSON in the place of what `path` holds; see `replace_bytes`."""
    replace_bytes(path, to_json(data))


def to_json(data: Any) -> bytes:
    """Return `data` as readable JSON that is the same for the same data."""
    return json.dumps(data, indent=1, sort_keys=True).encode()


def sync_folder(folder: Path) -> None:
    """Wait until what was renamed into `folder` or out of it is on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
