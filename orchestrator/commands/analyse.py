"""`specload analyse`: the parts of a sweep's analysis as tables, or as JSON."""

from collections.abc import Sequence

from engines.nearest import did_you_mean
from orchestrator.commands.as_json import add_json, print_json
from orchestrator.commands.parser import Parser
from orchestrator.errors import ConfigError
from orchestrator.saved import read_plan
from orchestrator.tables import console

SUMMARY = (
    "Print what the numbers of a sweep mean: a table for each part of the analysis, with what has to be said "
    "about it. Without names every part; the names are listed by `specload analyse results/SWEEP --list`."
)


def run(arguments: Sequence[str]) -> int:
    """Print the sections of one sweep."""
    parser = Parser(
        prog="specload analyse",
        description=SUMMARY,
    )
    parser.add_sweep("sweep", help="results/SWEEP, or SWEEP alone")
    parser.add_argument("section", nargs="*", help="names of parts")
    parser.add_argument("--list", action="store_true", help="print the names of the parts only")
    parser.add_argument("--explain", action="store_true", help="define every column below its table")
    add_json(parser)
    options = parser.parse_args(arguments)
    # Late: pandas and scipy take a second to load, and `--help` should not wait for them.
    from analysis.frame import load_sweep  # noqa: PLC0415 - see above
    from analysis.sections import SECTIONS  # noqa: PLC0415 - see above
    from orchestrator.section_tables import section_tables  # noqa: PLC0415 - see above

    out = console()
    if options.list and options.json:
        print_json({"sections": list(SECTIONS)})
        return 0
    if options.list:
        out.print("\n".join(SECTIONS))
        return 0
    unknown = [name for name in options.section if name not in SECTIONS]
    if unknown:
        named = ", ".join(f"{name}{did_you_mean(name, SECTIONS)}" for name in unknown)
        message = f"there is no part {named}; parts are {', '.join(SECTIONS)}"
        raise ConfigError(message)
    read_plan(options.sweep)  # what was changed by hand is told before it is counted
    sweep = load_sweep(options.sweep)
    found = [sweep.once(SECTIONS[name]) for name in (options.section or SECTIONS)]
    if options.json:
        print_json({"sections": [section.to_dict() for section in found]})
    else:
        out.print(section_tables(found, explain=options.explain))
    return 0
