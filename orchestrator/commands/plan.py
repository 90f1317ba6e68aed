"""`specload plan`: what would run, what is not allowed and why, and what it takes. Starts nothing."""

from collections.abc import Sequence

from orchestrator.commands.as_json import print_json
from orchestrator.commands.grid import asked, parse
from orchestrator.estimate import estimate, read_pace
from orchestrator.plan_tables import plan_tables
from orchestrator.tables import console

SUMMARY = (
    "Print the arms, the refused ones with the reason, and per block which arm runs when, and what it takes."
)


def run(arguments: Sequence[str]) -> int:
    """Print the plan that the words ask for."""
    options, words = parse("plan", SUMMARY, arguments)
    found = asked("plan", options, words)
    if found is not None:
        size = estimate(found.plan, read_pace(found.results, found.plan))
        if options.json:
            sizes = {
                "engine_starts": size.engine_starts,
                "cells": size.cells,
                "device_seconds": size.device_seconds,
                "guessed_cells": size.guessed_cells,
            }
            print_json({"sweep": found.plan.sweep, "estimate": sizes, "plan": found.plan.to_dict()})
        else:
            console().print(plan_tables(found.plan, size))
    return 0
