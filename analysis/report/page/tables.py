"""A section as a table of the page: each cell with its text, its interval and the value it is sorted by."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis.report.section import cell_text, heading
from analysis.section import Section

MOST_ROWS = 300
"""Rows of one table on the page; the others are told how to be had."""
LONG_ROWS = 150
"""Rows from which a table stays folded on paper."""
OPEN_ROWS, FEW_ROWS = 24, 8
"""The first table of a chapter stands open up to so many rows, and any other up to these."""
WIDE, LONG = 36, 100
"""Characters from which a column of text is wide, and from which it stands below its row."""
CHIPS = ("verdict", "verdict_a", "verdict_b", "status", "outcome")
"""Columns whose words come from a fixed set, and are shown as chips."""
MARKS = {
    "emulated": "emulated",
    "synthetic": "forced acceptance",
    "oversubscribed": "shared cores",
    "counterfactual": "counterfactual",
}
"""Column that a section may have -> mark of a row in which it holds."""
_NAMES = ("arm", "label", "recommended", "runner_up")
"""Columns that may hold an arm's label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column."""

    name: str
    heading: str
    definition: str
    kind: str
    """`number`, `word`, `wide`, `long` (text below its row) or `state`: its class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One figure or word."""

    text: str
    interval: str
    value: str
    """What it is sorted by where the text does not do; empty else."""
    chip: str
    """Class of its chip: its word with dashes; empty where it is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row."""

    cells: tuple[Cell, ...]
    marks: tuple[str, ...]
    """What has to be said of all its figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One section as the template takes it."""

    section: Section
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    count: int
    """Rows of the section; more than `rows` where some were left out."""
    marked: int
    """Index of the column that the marks stand in."""


def arm_marks(cells: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """Return the marks of each arm by label."""
    found: dict[str, tuple[str, ...]] = {}
    if cells.empty:
        return found
    for label, own in cells.groupby("label", sort=False):
        held = {
            "emulated": bool(own["emulated"].any()),
            "synthetic": bool(own["synthetic"].any()),
            "counterfactual": bool(own["counterfactual"].ne("").any()),
        }
        found[str(label)] = tuple(MARKS[name] for name, holds in held.items() if holds)
    return found


def table_of(section: Section, marks: Mapping[str, tuple[str, ...]]) -> Table:
    """Return a section as a table.

    Args:
        section: what is shown.
        marks: those of each arm by label, for sections without columns of their own for that.
    """
    names = section.visible if len(section.frame) else ()
    values = section.rows()[:MOST_ROWS]
    columns = tuple(_column(section, name, values) for name in names)
    kinds = [column.kind for column in columns]
    return Table(
        section=section,
        columns=columns,
        rows=tuple(
            Row(
                cells=tuple(_cell(row, column) for column in columns),
                marks=tuple(dict.fromkeys(_marks(row, marks))),
            )
            for row in values
        ),
        count=len(section.frame),
        marked=next((kinds.index(kind) for kind in ("word", "wide") if kind in kinds), 0),
    )


def _column(section: Section, name: str, rows: Sequence[Mapping[str, Any]]) -> Column:
    if section.frame[name].dtype.kind in "ifu":
        kind = "number"
    elif name in CHIPS:
        kind = "state"
    else:
        longest = max((len(row[name]) for row in rows if isinstance(row[name], str)), default=0)
        kind = "word" if longest <= WIDE else "wide" if longest <= LONG else "long"
    return Column(name=name, heading=heading(name), definition=section.columns.get(name, ""), kind=kind)


def _cell(row: Mapping[str, Any], column: Column) -> Cell:
    text, interval = cell_text(row, column.name)
    value = row.get(column.name)
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    sort = f"{value:.9g}" if number else ""
    return Cell(
        text=text,
        interval=interval,
        value="" if sort == text else sort,
        chip=text.replace(" ", "-") if column.kind == "state" else "",
    )


def _marks(row: Mapping[str, Any], known: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    yield from (word for name, word in MARKS.items() if row.get(name))
    for name in _NAMES:
        if name in row:
            yield from known.get(str(row[name]), ())
            return
