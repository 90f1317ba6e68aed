"""Results as one tidy table: a row a cell, and a whole sweep read from its folder.

Columns of `cells_frame`: those of `CELL_COLUMNS`, then the metrics under their names of
`jobs.metric_names` (missing: NaN), then `factor:<key>`, the value of each swept key as text.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd

from analysis.errors import ResultsError
from jobs.metric_names import METRICS
from jobs.nouns import some
from jobs.result import CellResult

KEY = ["arm", "level", "block", "segment", "role"]
"""What identifies a cell within a sweep."""
CELL_COLUMNS: dict[str, str] = {
    "cell": "id of the cell, and name of its folder",
    "arm": "digest of the arm",
    "label": "name of the arm, unique within the table (swept keys are added where labels repeat)",
    "pair": "what an arm shares with its baseline",
    "layout": "layout of the arm",
    "drafter": "drafter method of the arm; `none` of a baseline",
    "k": "draft length of the arm, tokens",
    "axis": "what the load level is a number of (one axis in a sweep)",
    "level": "the load level: live conversations, conversations/s, or times the trace's own rate",
    "block": "replicate, from 0",
    "segment": "uninterrupted stretch of the block, from 0",
    "round": "0: planned at first; later ones were appended",
    "kind": "`planned`, `search` or `confirmation` (judged by itself, and counted nowhere else)",
    "role": "`opening`, `closing` (the baselines of a segment) or `treatment`",
    "outcome": "`measured`, `invalid`, `failed` or `infeasible`",
    "cause": "why it is not measured, as a stable word",
    "reason": "the same for people",
    "emulated": "whether an emulated engine made the figures",
    "synthetic": "whether acceptance was forced",
    "counterfactual": "`kv_matched` or `loaded_only` of an engine nobody would serve with; empty of others",
    "kv_of": "of a kv_matched baseline: digest of the arm whose KV cache it has; missing of others",
    "oversubscribed": "whether client and engine shared a core",
    "devices": "devices of the block's slice, replicas included",
    "replicas": "engines that fill the slice",
    "seconds": "wall seconds of the cell, warm-up included",
    "start_seconds": "seconds the engine took to become ready, on the first cell of an arm's engine",
    "caveats": "what has to be said with the cell's figures: a tuple of sentences",
}
"""Column of `cells_frame` -> its unit and definition; for the metrics see `jobs.metric_names.METRICS`."""
COLUMNS = list(CELL_COLUMNS)
_MADE = ("cell", "arm", "label", "pair", "kv_of")
_COPIED = [name for name in COLUMNS if name not in _MADE]
FACTOR = "factor:"
"""Prefix of the columns of swept keys."""


_NAMED = 6
"""Most damaged files that a message names."""
THRESHOLD = 0.02
"""Practical threshold where nothing names one, as a share."""
_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """One sweep as its folder tells it."""

    directory: Path
    plan: dict[str, Any]
    """Content of `plan.json`."""
    cells: pd.DataFrame
    """`cells_frame` of the results."""
    results: list[CellResult]
    _made: dict[tuple[Any, ...], Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What `once` has worked out."""

    def once(self, make: Callable[..., _Made], *words: Hashable) -> _Made:
        """Return `make(self, *words)`, worked out at the first call: several parts of an analysis ask for it.

        Args:
            make: a pure function of a module, whose value nobody changes.
            words: what else it is a function of.
        """
        key = (make, *words)
        if key not in self._made:
            self._made[key] = make(self, *words)
        return cast("_Made", self._made[key])

    @property
    def threshold(self) -> float:
        """Practical threshold of the plan, as a share; 2 % where the plan names none."""
        return float(self.plan.get("threshold", THRESHOLD))

    def requests(
        self, columns: Sequence[str] | None = None, cells: Iterable[str] | None = None
    ) -> pd.DataFrame:
        """Read the requests of cells, a row each; see `analysis.requests.REQUEST_COLUMNS`.

        Args:
            columns: of `REQUEST_COLUMNS`; all where None (about 250 MiB for a million requests).
            cells: ids of cells; every measured one where None.

        Raises:
            ValueError: an unknown column or cell.
            ResultsError: files that are missing or damaged; each is named.
        """
        from analysis import requests  # noqa: PLC0415 - pyarrow is not needed to read cells

        found = requests.replayed(self.cells) if cells is None else requests.chosen(self.cells, cells)
        return requests.requests_frame(self.directory, found, columns)

    def gauges(
        self, columns: Sequence[str] | None = None, cells: Iterable[str] | None = None
    ) -> pd.DataFrame:
        """Read the samples of engine, host and GPUs, a row each; see `analysis.requests.GAUGE_COLUMNS`.

        Arguments and errors are those of `requests`.
        """
        from analysis import requests  # noqa: PLC0415 - pyarrow is not needed to read cells

        found = requests.replayed(self.cells) if cells is None else requests.chosen(self.cells, cells)
        return requests.gauges_frame(self.directory, found, columns)


def as_results(results: Iterable[CellResult | Mapping[str, Any]]) -> list[CellResult]:
    """Return results as objects, whichever of the two forms each has."""
    return [item if isinstance(item, CellResult) else CellResult.from_dict(item) for item in results]


def arm_labels(results: Iterable[CellResult]) -> dict[str, str]:
    """Return each arm's name by digest: its label, and the swept keys that tell arms of one label apart."""
    factors: dict[str, dict[str, dict[str, str]]] = defaultdict(dict)
    for result in results:
        known = factors[result.arm_label]
        if result.arm not in known:
            known[result.arm] = dict(result.factors)
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
    columns: dict[str, list[Any]] = {name: [getattr(cell, name) for cell in cells] for name in _COPIED}
    columns["cell"] = [cell.cell for cell in cells]
    columns["arm"] = [cell.arm for cell in cells]
    columns["label"] = [labels[cell.arm] for cell in cells]
    columns["pair"] = [str(cell.identity.get("pair_key") or cell.layout) for cell in cells]
    columns["kv_of"] = [cell.identity.get("kv_of") for cell in cells]
    names = [*METRICS, *sorted({name for cell in cells for name in cell.metrics} - set(METRICS))]
    factors = sorted({key for cell in cells for key in cell.factors})
    frame = pd.concat(
        [
            pd.DataFrame({name: columns[name] for name in COLUMNS}, columns=COLUMNS),
            pd.DataFrame(_figures(cells, names), columns=names),
            pd.DataFrame(
                {f"{FACTOR}{key}": [cell.factors.get(key) for cell in cells] for key in factors},
            ),
        ],
        axis=1,
    )
    repeated = frame[frame.duplicated(KEY, keep=False)]
    if not repeated.empty:
        told = ", ".join(sorted(repeated["cell"].astype(str))[:6])
        message = f"cells {told} claim the same arm, level, block, segment and role; keep one of them"
        raise ValueError(message)
    return frame


def load_sweep(directory: str | Path) -> Sweep:
    """Read a sweep's folder: `plan.json` and `cells/*/result.json`.

    Folders whose name starts with a dot are no cells: they are being written, or hold an earlier outcome of a
    cell that was measured again.

    Raises:
        ResultsError: no such sweep, or files that are damaged; the first are named.
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
                plan = _object(content)
            else:
                results.append(_cell(content, path.parent.name))
        except (OSError, ValueError, TypeError, RecursionError) as error:
            if isinstance(error, FileNotFoundError) and path.parent != root:
                continue  # it was there: the running sweep puts a later try in its place in this moment
            why = error.strerror if isinstance(error, OSError) else error
            damaged.append(f"{path.relative_to(root)} ({why})")
    if damaged:
        message = (
            f"{root} has damaged files: {some(damaged, _NAMED, between='; ')}. Restore them, or run the "
            "sweep again: it sets such cells aside and measures only them anew"
        )
        raise ResultsError(message)
    return Sweep(directory=root, plan=plan, cells=cells_frame(results), results=results)


def _object(content: Any) -> dict[str, Any]:
    if not isinstance(content, dict):
        message = "it is no JSON object"
        raise ValueError(message)
    return content


def _cell(content: Any, folder: str) -> CellResult:
    result = CellResult.from_dict(content)
    if result.cell != folder:  # other files of the cell are looked for by its name
        message = f"it is of cell {result.cell[:80]!r}"
        raise ValueError(message)
    return result


def _figures(cells: Sequence[CellResult], names: Sequence[str]) -> np.ndarray:
    """Return the cells' metrics, a row a cell and a column a name; what is absent is NaN."""
    columns = {name: column for column, name in enumerate(names)}
    figures = np.full((len(cells), len(names)), np.nan)
    for row, cell in enumerate(cells):
        places = [columns[name] for name in cell.metrics]
        figures[row, places] = [np.nan if value is None else value for value in cell.metrics.values()]
    return figures
