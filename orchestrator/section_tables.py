"""Tables for the terminal: the sections of an analysis."""

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from analysis.report.section import heading, table_rows
from analysis.section import Section


def section_tables(sections: Iterable[Section], *, explain: bool = False) -> RenderableType:
    """Return every section's table and notes, with the definition of each column where `explain` says so."""
    parts: list[RenderableType] = []
    for section in sections:
        parts += [*_one(section), *(_definitions(section) if explain else []), Text("")]
    return Group(*parts)


def _one(section: Section) -> list[RenderableType]:
    if section.frame.empty:
        return [Text(section.title, style="italic"), Text(section.missing)]
    table = Table(title=section.title)
    for column in section.visible:
        numeric = section.frame[column].dtype.kind in "if"
        table.add_column(heading(column), justify="right" if numeric else "left")
    for row in table_rows(section):
        table.add_row(*(Text(f"{value} [{interval}]" if interval else value) for value, interval in row))
    return [table, *(Text(note) for note in section.notes)]


def _definitions(section: Section) -> list[RenderableType]:
    return [Text(f"  {heading(name)}: {section.columns.get(name, '')}") for name in section.visible]
