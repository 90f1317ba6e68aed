"""The manifest of a cell's folder: whose it is, and the SHA-256 of every file in it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engines.digest import digest
from orchestrator.durable import to_json

MANIFEST = "manifest.json"
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a look at a cell's folder found."""

    problem: str | None = None
    """Why it is no cell that can be counted; None for one that is as it was written."""
    strangers: tuple[str, ...] = ()
    """Names in the folder that the manifest does not know: somebody else put them there."""


def make_manifest(files: Mapping[str, bytes], *, sweep: str, plan: str, cell: str) -> bytes:
    """Return the content of `manifest.json` for a cell's files.

    Args:
        files: content by name, `result.json` included.
        sweep: name of the sweep.
        plan: digest of its plan.
        cell: id of the cell.
    """
    content: dict[str, Any] = {
        "sweep": sweep,
        "plan": plan,
        "cell": cell,
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    }
    return to_json({**content, "seal": digest(content)})


def examine(folder: Path, *, plan: str, cell: str) -> Finding:
    """Compare a cell's folder with its manifest.

    Args:
        folder: usually `cells/<cell>`.
        plan: digest of the plan that the cell has to belong to.
        cell: id of the cell that it has to be.
    """
    if folder.is_symlink() or not folder.is_dir():
        return Finding(problem="it is no folder of a cell")
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        files = {str(name): str(value) for name, value in manifest["files"].items()}
        problem = _belonging(manifest, plan=plan, cell=cell) or _damage(folder, files)
    except FileNotFoundError:
        return Finding(problem=f"it has no {MANIFEST}: not written by this version, or not whole")
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        return Finding(problem=f"its {MANIFEST} cannot be read ({error})")
    if problem is not None:
        return Finding(problem=problem)
    strangers = {item.name for item in folder.iterdir()} - {MANIFEST, *files}
    return Finding(strangers=tuple(sorted(strangers)))


def _belonging(manifest: Mapping[str, Any], *, plan: str, cell: str) -> str | None:
    """Return why the manifest is not that of this cell of this plan."""
    if manifest["seal"] != digest({key: value for key, value in manifest.items() if key != "seal"}):
        return f"its {MANIFEST} was altered"
    if manifest["plan"] != plan:
        return f"it belongs to another plan (sweep {manifest['sweep']})"
    if manifest["cell"] != cell:
        return f"it is cell {manifest['cell']} under another name"
    return None


def _damage(folder: Path, files: Mapping[str, str]) -> str | None:
    """Return which file is not as it was written."""
    for name, expected in files.items():
        if Path(name).name != name:
            return f"its {MANIFEST} names a file elsewhere ({name})"
        try:
            if _sha256(folder / name) != expected:
                return f"its {name} is truncated or altered"
        except OSError as error:
            return f"its {name} cannot be read ({error.strerror})"
    return None


def _sha256(path: Path) -> str:
    total = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            total.update(chunk)
    return total.hexdigest()
