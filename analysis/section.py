"""One part of the analysis as a table: a tidy frame, what each column means, and what has to be said with it.

The terminal, the report and JSON all show the same sections, so an analysis is one module with a function
from a sweep to a section, and one line in `analysis.sections`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from analysis.plain_json import plain_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One table with its words.

    Three columns `x`, `x_lo` and `x_hi` are a figure with its interval, and are shown as one. The rows are in
    the order in which they are shown.
    """

    name: str
    """Key in `analysis.sections.SECTIONS`."""
    title: str
    frame: pd.DataFrame = field(default_factory=pd.DataFrame)
    """One row a finding; empty where there is none."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Column of the frame -> its unit and definition; `_lo` and `_hi` need no entry of their own."""
    shown: tuple[str, ...] = ()
    """Columns that people see; all where empty. The frame keeps the others for notebooks and JSON."""
    notes: tuple[str, ...] = ()
    """What has to be said with the table: assumptions, misfits, warnings."""
    missing: str = ""
    """Of an empty frame: why there is nothing, and the command that would measure it."""

    def __post_init__(self) -> None:
        """Hold that every column is explained, and that an empty table says why."""
        unknown = [name for name in self.frame.columns if _figure(str(name)) not in self.columns]
        assert not unknown, f"columns of section {self.name} without a definition: {unknown}"
        assert not self.frame.empty or self.missing, f"section {self.name} is empty and does not say why"

    @property
    def visible(self) -> tuple[str, ...]:
        """Columns that people see, an interval's ends left to the figure they belong to."""
        there = [str(name) for name in self.frame.columns]
        names = [name for name in self.shown if name in there] if self.shown else there
        return tuple(name for name in names if _figure(name) == name or _figure(name) not in names)

    def rows(self) -> list[dict[str, Any]]:
        """Return the frame as plain values, None for what is missing."""
        return [
            {
                str(name): plain_json(None if value is pd.NaT or value is pd.NA else value)
                for name, value in row.items()
            }
            for row in self.frame.to_dict("records")
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "columns": dict(self.columns),
            "rows": self.rows(),
            "notes": list(self.notes),
            "missing": self.missing if self.frame.empty else "",
        }


def _figure(name: str) -> str:
    """Return the column that `x_lo` and `x_hi` are the interval of; other names as they are."""
    return name[:-3] if name.endswith(("_lo", "_hi")) else name
