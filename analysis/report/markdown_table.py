"""Tables in Markdown: a section of the analysis, and plain ones."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from analysis.report.markdown_text import prose
from analysis.report.page.tables import Row, table_of
from analysis.section import Section
from analysis.untrusted import markdown
from jobs.nouns import counted

MOST_ROWS = 80
"""Rows of a table of `report.md`: what shows Markdown in a browser stops at half a megabyte."""
Marks = Mapping[str, tuple[str, ...]]
"""Label of an arm -> what has to be said of its figures: `emulated`, `forced acceptance`, ..."""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Iterable[int] = ()) -> list[str]:
    """Return a table's lines.

    Args:
        heads: its headings, as Markdown.
        rows: its cells, as Markdown.
        numbers: places of the columns that are aligned to the right.
    """
    right = set(numbers)
    rule = ["---:" if place in right else "---" for place in range(len(heads))]
    return [f"| {' | '.join(cells)} |" for cells in (heads, rule, *rows)]


def section_lines(section: Section, marks: Marks, *, sweep: str, level: int) -> Iterator[str]:
    """Yield a section: heading, table or why there is none, notes, and what the columns mean.

    Args:
        section: what to show.
        marks: what has to be said of each arm by label (`arm_marks`).
        sweep: folder of the sweep as a command takes it.
        level: of the heading.
    """
    yield from (f"{'#' * level} {markdown(section.title)}", "")
    if section.frame.empty:
        yield from (prose(section.missing), "")
        return
    found = table_of(section, marks)
    yield from table(
        [markdown(column.heading) for column in found.columns],
        (_row(row, found.marked) for row in found.rows[:MOST_ROWS]),
        numbers=[place for place, column in enumerate(found.columns) if column.kind == "number"],
    )
    yield ""
    if found.count > MOST_ROWS:
        more = counted(found.count - MOST_ROWS, "more row")
        more += f": `specload analyse {sweep} {section.name}` has them."
        yield from (prose(more), "")
    if section.notes:
        yield from (*(f"- {prose(note)}" for note in section.notes), "")
    told = [f"- **{markdown(column.heading)}**: {prose(column.definition)}" for column in found.columns]
    yield from folded("What the columns mean", told)


def folded(summary: str, lines: Sequence[str]) -> Iterator[str]:
    """Yield lines that a reader opens, below our own words: the only HTML of the report in Markdown."""
    kept = lines if lines[-1] else lines[:-1]
    yield from (f"<details><summary>{summary}</summary>", "", *kept, "", "</details>", "")


def _row(row: Row, marked: int) -> list[str]:
    """Return the cells of a row, with what has to be said of its figures in one of them."""
    words = [
        f"{markdown(cell.text)} ({markdown(cell.interval)})" if cell.interval else markdown(cell.text)
        for cell in row.cells
    ]
    if row.marks:
        words[marked] = f"{words[marked]} *({markdown(', '.join(row.marks))})*"
    return words
