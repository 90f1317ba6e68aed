"""Results as one tidy table: a row a cell, and a whole sweep read from its folder.

Columns of `cells_frame`, before the metrics (which keep their names of `jobs.metric_names`):

    cell, arm             id of the cell; digest of the arm
    label                 name of the arm, unique within the table (swept keys are added where labels repeat)
    pair                  what an arm shares with its baseline
    kv_of                 of a baseline with matched KV: digest of the arm whose KV cache it gets
    layout, drafter, k    of the arm
    axis, level           what the load level is a number of, and the number (one axis in a sweep)
    block, segment, round, role, outcome, cause, reason
    emulated, synthetic, counterfactual, oversubscribed, devices, replicas
    seconds, start_seconds
    factor:<key>          value of each swept key, as text
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from jobs.metric_names import METRICS
from jobs.result import CellResult

KEY = ["arm", "level", "block", "segment", "role"]
"""What identifies a cell within a sweep."""
_COPIED = [
    "layout",
    "drafter",
    "k",
    "axis",
    "level",
    "block",
    "segment",
    "round",
    "role",
    "outcome",
    "cause",
    "reason",
    "emulated",
    "synthetic",
    "counterfactual",
    "oversubscribed",
    "devices",
    "replicas",
    "seconds",
    "start_seconds",
]
COLUMNS = ["cell", "arm", "label", "pair", "kv_of", *_COPIED]


class ResultsError(ValueError):
    """A results folder that cannot be read; the message names the files and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """One sweep as its folder tells it."""

    directory: Path
    plan: dict[str, Any]
    """Content of `plan.json`."""
    cells: pd.DataFrame
    """`cells_frame` of the results."""
    results: list[CellResult]


def as_results(results: Iterable[CellResult | Mapping[str, Any]]) -> list[CellResult]:
    """Return results as objects, whichever of the two forms each has."""
    return [item if isinstance(item, CellResult) else CellResult.from_dict(item) for item in results]


def arm_labels(results: Iterable[CellResult]) -> dict[str, str]:
    """Return each arm's name by digest: its label, and the swept keys that tell arms of one label apart."""
    factors: dict[str, dict[str, dict[str, str]]] = defaultdict(dict)
    for result in results:
        factors[result.arm_label].setdefault(result.arm, dict(result.factors))
    labels: dict[str, str] = {}
    for label, arms in factors.items():
        keys = sorted({key for values in arms.values() for key in values})
        varying = [key for key in keys if len({values.get(key) for values in arms.values()}) > 1]
        for arm, values in arms.items():
            told = ", ".join(f"{key}={values[key]}" for key in varying if key in values)
            labels[arm] = label if len(arms) == 1 else f"{label} [{told or arm[:8]}]"
    return labels


def cells_frame(results: Iterable[CellResult | Mapping[str, Any]]) -> pd.DataFrame:
    """Return the tidy table of a sweep's cells, in the order given.

    Raises:
        ValueError: two cells claim the same arm, level, block, segment and role; or levels are of two kinds.
    """
    cells = as_results(results)
    axes = sorted({cell.axis for cell in cells})
    if len(axes) > 1:
        message = (
            f"the cells have levels of {' and '.join(axes)}: they are not of one sweep; analyse them apart"
        )
        raise ValueError(message)
    labels = arm_labels(cells)
    rows = []
    for cell in cells:
        row: dict[str, Any] = {name: getattr(cell, name) for name in _COPIED}
        row |= {"cell": cell.cell, "arm": cell.arm, "label": labels[cell.arm]}
        row["pair"] = str(cell.identity.get("pair_key") or cell.layout)
        row["kv_of"] = str(cell.identity.get("kv_of") or "")
        row |= {f"factor:{key}": value for key, value in cell.factors.items()}
        row |= {name: float("nan") if value is None else float(value) for name, value in cell.metrics.items()}
        rows.append(row)
    extra = sorted({name for row in rows for name in row} - {*COLUMNS, *METRICS})
    frame = pd.concat(
        [
            pd.DataFrame(rows, columns=COLUMNS),
            pd.DataFrame(rows, columns=list(METRICS), dtype=float),
            pd.DataFrame(rows, columns=extra),
        ],
        axis=1,
    )
    repeated = frame[frame.duplicated(KEY, keep=False)]
    if not repeated.empty:
        names = ", ".join(sorted(repeated["cell"].astype(str))[:6])
        message = f"cells {names} claim the same arm, level, block, segment and role; keep one of them"
        raise ValueError(message)
    return frame


def load_sweep(directory: str | Path) -> Sweep:
    """Read a sweep's folder: `plan.json` and `cells/*/result.json`.

    Folders whose name starts with a dot are no cells: they are being written, or hold an earlier outcome of a
    cell that was measured again.

    Raises:
        ResultsError: no such sweep, or a file that is damaged; every damaged file is named.
    """
    root = Path(directory)
    if not (root / "plan.json").is_file():
        message = f"{root} is not a sweep: it has no plan.json; give the folder results/<sweep>"
        raise ResultsError(message)
    plan: dict[str, Any] = {}
    results: list[CellResult] = []
    damaged: list[str] = []
    for path in [root / "plan.json", *sorted((root / "cells").glob("[!.]*/result.json"))]:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if path.name == "plan.json":
                plan = dict(content)
            else:
                results.append(CellResult.from_dict(content))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            damaged.append(f"{path.relative_to(root)} ({error})")
    if damaged:
        message = (
            f"{root} has damaged files: {'; '.join(damaged)}. Restore them, or run the sweep again: it sets "
            "such cells aside and measures only them anew"
        )
        raise ResultsError(message)
    return Sweep(directory=root, plan=plan, cells=cells_frame(results), results=results)
