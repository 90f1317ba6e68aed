"""`specload acceptance`: acceptance that was asked for or built in, against what the engine counted."""

from collections.abc import Sequence

from orchestrator.built_acceptance import built_lengths
from orchestrator.commands.as_json import add_json, print_json
from orchestrator.commands.parser import Parser
from orchestrator.saved import read_plan
from orchestrator.tables import console

SUMMARY = (
    "Compare the mean acceptance length that a sweep asked for (synthetic acceptance), or that a checkpoint "
    "was built to have, with what the engine counted."
)


def run(arguments: Sequence[str]) -> int:
    """Print the table; 1 where an arm differs."""
    parser = Parser(prog="specload acceptance", description=SUMMARY)
    parser.add_sweep("sweep", help="results/SWEEP, or SWEEP alone")
    add_json(parser)
    options = parser.parse_args(arguments)
    # Late: pandas takes a second to load, and `--help` should not wait for it.
    from analysis.acceptance import DIFFERS, acceptance_rows  # noqa: PLC0415 - see above
    from analysis.frame import load_sweep  # noqa: PLC0415 - see above
    from orchestrator.acceptance_table import acceptance_table  # noqa: PLC0415 - see above

    plan = read_plan(options.sweep)
    rows = acceptance_rows(load_sweep(options.sweep).results, built_lengths(plan))
    if options.json:
        print_json({"acceptance": rows})
    else:
        console().print(acceptance_table(rows))
    return int(any(row.verdict == DIFFERS for row in rows))
