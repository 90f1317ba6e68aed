"""Outcomes and gates of a sweep in Markdown."""

from collections.abc import Iterator

from analysis.report.context import Page
from analysis.report.format import number
from analysis.report.markdown_table import folded, table
from analysis.report.markdown_text import code, prose
from analysis.untrusted import fenced, markdown
from jobs.result import TREATMENT, CellResult, Gate

MOST = 20
"""Cells without a measurement whose reason and last lines are shown, and gates that failed."""


def outcome_lines(page: Page) -> Iterator[str]:
    """Yield what became of the cells that do not count, what was refused, and the gates."""
    yield from ("## Outcomes and gates", "")
    if page.troubles:
        yield from ("### Cells without a measurement that counts", "")
        if page.retry:
            yield from (
                f"{code(page.retry)} measures them again; these outcomes stay beside the new ones.",
                "",
            )
        for label, cell in page.troubles[:MOST]:
            yield from _trouble(page, label, cell)
        yield from _more(len(page.troubles), "such cells")
    else:
        yield from ("Every cell was measured." if page.cells else "No cell was measured yet.", "")
    if page.refused:
        yield from ("### Refused by rule before anything started", "")
        rows = [(markdown(name), code(rule), prose(reason)) for name, rule, reason in page.refused]
        yield from (*table(("arm", "rule", "reason"), rows), "")
    if page.failed_gates:
        yield from ("### Failed gates", "")
        shown = [_gate(page, label, cell, gate) for label, cell, gate in page.failed_gates[:MOST]]
        heads = ("gate", "cell", "found", "limit", "what was found")
        yield from (*table(heads, shown, numbers=(2, 3)), "")
        yield from _more(len(page.failed_gates), "failed gates")
    if page.gates:
        counts = [(code(name), *(f"{count:,}" for count in found)) for name, *found in page.gates]
        lines = table(("gate", "passed", "failed", "not checked"), counts, numbers=(1, 2, 3))
        yield from folded("All gates by name", lines)


def _trouble(page: Page, label: str, cell: CellResult) -> Iterator[str]:
    cause = f", {code(cell.cause)}" if cell.cause else ""
    yield f"- **{markdown(cell.outcome)}**{cause}: {_place(page, label, cell)}"
    if cell.reason:
        yield f"  {prose(cell.reason)}"
    yield ""
    if cell.log_tail:
        yield from folded("The engine's last lines", fenced(cell.log_tail).split("\n"))


def _gate(page: Page, label: str, cell: CellResult, gate: Gate) -> tuple[str, ...]:
    found, limit = (markdown(number(value, 4)) for value in (gate.value, gate.limit))
    return code(gate.name), _place(page, label, cell), found, limit, prose(gate.message)


def _place(page: Page, label: str, cell: CellResult) -> str:
    role = "" if cell.role == TREATMENT else f" ({cell.role} baseline)"
    return markdown(f"{label}, {page.axis.at(cell.level)}, block {cell.block}{role}")


def _more(count: int, what: str) -> Iterator[str]:
    if count > MOST:
        yield from (f"{count - MOST:,} more {what}: `report.html` has them all.", "")
