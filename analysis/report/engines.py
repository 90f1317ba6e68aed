"""What a sweep's folder keeps of its engines: command lines, and the configuration each engine resolved.

Layout: `engines/<run>/r<replica>-command.json` (with `argv`) and `engines/<run>/resolved.json` (flat keys);
a cell's identity names its `run`. A server that somebody else runs has `r<replica>-remote.json` (with `url`)
instead of a command line. An engine that never started left no configuration.
"""

import json
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jobs.result import CLOSING, OPENING, TREATMENT, CellResult

Difference = tuple[str, Any, Any]
"""Key, value of the baseline, value of the arm."""


def differences(
    directory: Path, cells: Iterable[CellResult], labels: Mapping[str, str]
) -> list[tuple[str, list[Difference]]]:
    """Return, an arm each, what its engine resolved differently from its baseline's, drafter included.

    Args:
        directory: the sweep's folder.
        cells: its results.
        labels: name of each arm by digest.
    """
    baselines: dict[str, Mapping[str, Any]] = {}
    arms: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for cell in cells:
        pair = str(cell.identity.get("pair_key") or cell.layout)
        known = baselines if cell.role in (OPENING, CLOSING) else arms
        key = pair if cell.role in (OPENING, CLOSING) else labels[cell.arm]
        if key in known:
            continue
        resolved = _read(_folder(directory, cell) / "resolved.json")
        if isinstance(resolved, dict) and cell.role == TREATMENT:
            arms[key] = (pair, resolved)
        elif isinstance(resolved, dict):
            baselines[key] = resolved
    return [
        (label, _compare(baselines[pair], resolved))
        for label, (pair, resolved) in sorted(arms.items())
        if pair in baselines
    ]


def command_lines(
    directory: Path, cells: Iterable[CellResult], labels: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Return the command line of the first engine of each arm (or whose server it is), by the arm's name."""
    found: dict[str, str] = {}
    for cell in cells:
        if labels[cell.arm] not in found:
            folder = _folder(directory, cell)
            content = _read(folder / "r0-command.json")
            if isinstance(content, dict) and isinstance(content.get("argv"), list):
                found[labels[cell.arm]] = shlex.join(map(str, content["argv"]))
            elif isinstance(remote := _read(folder / "r0-remote.json"), dict):
                found[labels[cell.arm]] = f"a server that somebody else runs, at {remote.get('url')}"
    return sorted(found.items())


def _compare(base: Mapping[str, Any], own: Mapping[str, Any]) -> list[Difference]:
    return [
        (key, base.get(key), own.get(key)) for key in sorted({*own, *base}) if own.get(key) != base.get(key)
    ]


def _folder(directory: Path, cell: CellResult) -> Path:
    return directory / "engines" / str(cell.identity.get("run", ""))


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # an engine that never started, or a sweep whose engines' folders were not kept
