"""What lies in a sweep's folder and cannot be counted: moved aside, said by name, never deleted."""

import json
import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.durable import sync_folder

ASIDE = "aside"
REASONS = "reasons.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """One file or folder that was moved out of the way."""

    name: str
    """Where it lay, below the sweep's folder."""
    kept: str
    """Where it lies now, below the sweep's folder."""
    reason: str

    def __str__(self) -> str:
        return f"set aside {self.name}: {self.reason}. It is kept as {self.kept}"


def set_aside(path: Path, sweep: Path, reason: str) -> SetAside:
    """Move `path` into the `aside` folder of the sweep's folder, and note why.

    Raises:
        OSError: it cannot be moved.
    """
    folder = sweep / ASIDE
    folder.mkdir(exist_ok=True)
    name = path.name.lstrip(".") or "nameless"
    target, number = folder / name, 1
    while os.path.lexists(target):
        number += 1
        target = folder / f"{name}.{number}"
    path.rename(target)
    moved = SetAside(name=str(path.relative_to(sweep)), kept=str(target.relative_to(sweep)), reason=reason)
    with (folder / REASONS).open("a") as stream:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        stream.write(json.dumps({**asdict(moved), "time": now}) + "\n")
    sync_folder(folder)
    sync_folder(path.parent)
    return moved
