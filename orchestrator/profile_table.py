"""A profile as a table for the terminal."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from jobs.profile.estimate import ESTIMATED_PARTS
from jobs.profile.parts import PARTS
from orchestrator.profile import TRACE, Profiled, ProfileResult
from orchestrator.profile_files import NOT_THROUGHPUT, heading
from orchestrator.profile_plan import ProfilePlan


def profile_table(profile: ProfilePlan, result: ProfileResult) -> RenderableType:
    """Return a row a part and a column an engine, the step's length below, and what a reader must know."""
    table = Table(title=heading(profile, result), title_justify="left")
    table.add_column("part of a step")
    for entry in result.engines:
        table.add_column(Text(f"{entry.engine.label} ms"), justify="right")
        table.add_column("share", justify="right")
    known = PARTS if result.source == TRACE else ESTIMATED_PARTS
    for name in known:
        if any(part.name == name for entry in result.engines for part in entry.breakdown.parts):
            table.add_row(name, *(cell for entry in result.engines for cell in _cells(entry, name)))
    table.add_section()
    table.add_row(
        "whole step",
        *(cell for entry in result.engines for cell in (f"{entry.breakdown.step_ms:.2f}", "100.0 %")),
    )
    if result.source == TRACE:
        table.add_row(
            "the same step without the profiler",
            *(cell for entry in result.engines for cell in _plain(entry)),
        )
    notes = [Text(note, style="yellow") for note in result.notes]
    return Group(table, *notes, Text(NOT_THROUGHPUT))


def _cells(entry: Profiled, name: str) -> tuple[str, str]:
    found = [part for part in entry.breakdown.parts if part.name == name]
    if not found:
        return "-", "-"
    return f"{found[0].ms:.2f}", f"{100 * found[0].share:.1f} %"


def _plain(entry: Profiled) -> tuple[str, str]:
    step = entry.engine.step_ms
    return f"{step:.2f}", f"{100 * step / entry.breakdown.step_ms:.1f} %"
