"""`specload capacity`: what the KV caches of a sweep's arms hold, and what a drafter took of them."""

from collections.abc import Sequence

from orchestrator.capacity_tables import capacity_tables
from orchestrator.commands.as_json import add_json, print_json
from orchestrator.commands.parser import Parser
from orchestrator.saved import read_plan
from orchestrator.tables import console

SUMMARY = (
    "Print the KV capacity of every arm of a sweep in tokens and in conversations of its workload, what each "
    "drafter took of the baseline's, the load from which requests wait, and, with drafter.kv=matched, what "
    "the drafter's memory costs."
)


def run(arguments: Sequence[str]) -> int:
    """Print the tables of one sweep."""
    parser = Parser(prog="specload capacity", description=SUMMARY)
    parser.add_sweep("sweep", help="results/SWEEP, or SWEEP alone")
    add_json(parser)
    options = parser.parse_args(arguments)
    # Late: pandas and scipy take a second to load, and `--help` should not wait for them.
    from analysis.capacity import capacity_rows, memory_costs  # noqa: PLC0415 - see above
    from analysis.frame import load_sweep  # noqa: PLC0415 - see above

    read_plan(options.sweep)  # what was changed by hand is told before it is counted
    results = load_sweep(options.sweep).results
    rows, costs = capacity_rows(results), memory_costs(results)
    if options.json:
        print_json({"capacity": rows, "memory_costs": costs})
    else:
        console().print(capacity_tables(rows, costs))
    return 0
