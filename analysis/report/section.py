"""A section as text, cell by cell: the same words in the report and in the terminal."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from analysis import axis
from analysis.report.format import ABSENT, number, text
from analysis.section import Section

LEVEL = "level"
"""Column of a section that has the load level's number."""


def gathered(sections: Iterable[Section], told: Collection[str] = ()) -> tuple[Section, ...]:
    """Return sections, with those that are empty for one and the same reason gathered in the first of them.

    Args:
        sections: in the order in which they are shown.
        told: reasons that stand beside them already: what is empty for one of these is left out.
    """
    found: list[Section] = []
    empty: dict[str, int] = {}
    for section in sections:
        if not section.frame.empty:
            found.append(section)
        elif section.missing in empty:
            place = empty[section.missing]
            found[place] = replace(found[place], title=f"{found[place].title}; {section.title}")
        elif section.missing not in told:
            empty[section.missing] = len(found)
            found.append(section)
    return tuple(found)


def heading(column: str) -> str:
    """Return a column's name for people."""
    return column.replace("factor:", "").replace("_", " ")


def table_rows(section: Section) -> list[list[tuple[str, str]]]:
    """Return a row of (figure, its interval) for every row of the frame, in the order of `section.visible`.

    The interval is empty where a figure has none.
    """
    return [[cell_text(row, column) for column in section.visible] for row in section.rows()]


def cell_text(row: Mapping[str, Any], column: str) -> tuple[str, str]:
    """Return one figure and its interval as text."""
    low, high = row.get(f"{column}_lo"), row.get(f"{column}_hi")
    known = low is not None or high is not None
    interval = f"{_value(low)} to {_value(high)}" if known else ""
    value = row.get(column)
    if column == LEVEL and isinstance(value, float) and not known:
        return axis.number(value), interval  # a level is a name, too: 16, not 16.00; one searched for is not
    return _value(value), interval


def _value(value: Any) -> str:
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return number(value, 4) if isinstance(value, float) else text(value)
