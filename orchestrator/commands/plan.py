"""`specload plan`: what would run, what is not allowed and why, and what it takes. Starts nothing."""

from collections.abc import Sequence

from orchestrator.commands.grid import asked, parse
from orchestrator.estimate import estimate, read_timings
from orchestrator.tables import console, plan_tables

SUMMARY = "Print the arms, the refused ones with the reason, the blocks, engine starts, cells and GPU time."


def run(arguments: Sequence[str]) -> int:
    """Print the plan that the words ask for."""
    options, words = parse("plan", SUMMARY, arguments)
    found = asked("plan", options, words)
    if found is not None:
        size = estimate(found.plan, read_timings(found.results))
        console().print(plan_tables(found.plan, size))
    return 0
