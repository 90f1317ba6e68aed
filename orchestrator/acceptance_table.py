"""The table of `specload acceptance`: known acceptance against what the engine counted."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from analysis.acceptance import (
    AGREES,
    DIFFERS,
    ENOUGH_STEPS,
    SHARE,
    STANDARD_ERRORS,
    AcceptanceRow,
)

_STYLES = {AGREES: "green", DIFFERS: "bold red"}
_NOTE = (
    f"agrees: an asked-for length within {STANDARD_ERRORS:g} standard errors (few steps: below "
    f"{ENOUGH_STEPS:,}, where chance hides more), a built-in one within {SHARE:.0%}"
)


def acceptance_table(rows: Sequence[AcceptanceRow]) -> RenderableType:
    """Return one row an arm, under it what the words mean."""
    if not rows:
        return Text("No arm with a drafter has a result yet.")
    table = Table(title="Mean acceptance length: tokens a verification step, the verifier's own included")
    for name in ("arm", "K", "known", "expected", "realised", "steps", "difference", "in s.e.", "verdict"):
        table.add_column(name, justify="left" if name in ("arm", "known", "verdict") else "right")
    for row in rows:
        verdict = Text(row.verdict, style=_STYLES.get(row.verdict, ""))
        if row.few_steps:
            verdict.append(" (few steps)", style="yellow")
        table.add_row(
            Text(row.label),
            str(row.k),
            row.source or "-",
            _number(row.expected, ".4f"),
            _number(row.realised, ".4f"),
            f"{row.steps:,}",
            _number(row.share, "+.2%"),
            _number(row.errors, "+.1f"),
            verdict,
        )
    return Group(table, Text(_NOTE))


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
