"""Acceptance as another cell measured it: its rates by position, read when a sweep is planned."""

import hashlib
import itertools
import json
import math
from dataclasses import dataclass
from pathlib import Path

from engines.acceptance import Acceptance, Source
from engines.digest import digest
from jobs.result import MEASURED, CellResult
from jobs.workload.conversation import HASHED
from orchestrator.errors import ConfigError
from orchestrator.ledger import CELLS, RESULT

_KEY = "drafter.acceptance.from"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    result: CellResult
    digest: str
    """SHA-256 of its result.json."""
    rates: tuple[float, ...]
    """Unconditional acceptance by position; empty where it drafted nothing."""
    drafts: float
    """Verification steps the rates are means over."""


def cell_acceptance(name: str, *, results: str) -> Acceptance:
    """Return the acceptance by position of a measured cell, or of the one drafter of a finished sweep.

    The cells of a sweep are pooled, each weighted with its drafts.

    Args:
        name: a cell's id, its folder, a sweep's name, or its folder.
        results: folder of the sweeps in which ids and names are looked up.

    Raises:
        ConfigError: there is no such cell or sweep, or it has no acceptance of one drafter to take.
    """
    folder = _folder(name, Path(results).expanduser())
    if (folder / RESULT).is_file():
        cells = [_read(folder / RESULT)]
        _check(cells[0], name)
    else:
        cells = _of_one_drafter(folder, name)
    longest = max(len(cell.rates) for cell in cells)
    total = math.fsum(cell.drafts for cell in cells)
    rates = tuple(
        math.fsum(cell.rates[position] * cell.drafts for cell in cells) / total for position in range(longest)
    )
    # The sums are rounded one by one; equal rates may come out rising by the last bit.
    rates = tuple(itertools.accumulate(rates, min))
    one = len(cells) == 1
    return Acceptance(
        positions=rates,
        source=Source(
            kind="cell" if one else "sweep",
            name=cells[0].result.cell if one else folder.name,
            digest=cells[0].digest if one else digest(sorted(cell.digest for cell in cells)),
            note=_note(cells, total),
        ),
    )


def _folder(name: str, root: Path) -> Path:
    given = Path(name).expanduser()
    places = [given.parent if given.name == RESULT else given, root / name]
    for place in places:
        if (place / RESULT).is_file() or (place / CELLS).is_dir():
            return place
    found = [path for sweep in sorted(root.glob("*")) if (path := sweep / CELLS / given.name).is_dir()]
    if len(found) == 1 and len(given.parts) == 1:
        return found[0]
    if found:
        sweeps = ", ".join(path.parent.parent.name for path in found)
        message = f"{_KEY}={name} is a cell of {sweeps}; give its folder"
    else:
        message = (
            f"{_KEY}={name} is no cell and no sweep in {root}; give a cell's id or folder, or the "
            "folder of a finished sweep on this machine"
        )
    raise ConfigError(message)


def _read(path: Path) -> _Cell:
    try:
        content = path.read_bytes()
        result = CellResult.from_dict(json.loads(content))
    except (OSError, ValueError, TypeError, KeyError) as error:
        message = f"{_KEY}: {path} is no cell's result that this version reads: {error}"
        raise ConfigError(message) from error
    metrics = result.metrics
    rates = itertools.takewhile(
        lambda rate: rate is not None,
        (metrics.get(f"spec/acceptance_pos_{position}") for position in range(1, result.k + 1)),
    )
    return _Cell(
        result=result,
        digest=hashlib.sha256(content).hexdigest(),
        rates=tuple(float(rate) for rate in rates if rate is not None),
        drafts=metrics.get("spec/drafts") or 0.0,
    )


def _check(cell: _Cell, name: str) -> None:
    result = cell.result
    if result.outcome != MEASURED:
        message = f"{_KEY}={name} is {result.outcome}: it has no acceptance to take; name a measured cell"
        raise ConfigError(message)
    if not cell.rates or not cell.drafts:
        message = (
            f"{_KEY}={name} ({result.arm_label}) has no acceptance by position: nothing was drafted "
            "there, or its engine does not count positions; name a cell with a drafter"
        )
        raise ConfigError(message)


def _of_one_drafter(folder: Path, name: str) -> list[_Cell]:
    read = [_read(path) for path in sorted((folder / CELLS).glob(f"[!.]*/{RESULT}"))]
    cells = [
        cell
        for cell in read
        if cell.result.outcome == MEASURED and not cell.result.synthetic and cell.rates and cell.drafts
    ]
    drafters = {(cell.result.arm, cell.result.arm_label): cell for cell in cells}
    if len(drafters) == 1:
        return cells
    if not drafters:
        message = f"{_KEY}={name}: no cell of this sweep has a real acceptance by position; name another"
    else:
        ids = ", ".join(f"{label} ({cell.result.cell})" for (_, label), cell in drafters.items())
        message = f"{_KEY}={name} has several drafters: {ids}; name one of the cells"
    raise ConfigError(message)


def _note(cells: list[_Cell], drafts: float) -> str:
    first = cells[0].result
    told = f"measured over {drafts:,.0f} drafts of {first.arm_label} at K={first.k}"
    if first.emulated:
        return f"{told} by an emulated engine"
    if any(cell.result.identity.get("validity") == HASHED for cell in cells):
        return f"{told} on made-up text, so it says nothing of real text"
    return told
