"""`specload rules`: what the engines refuse, before anything is placed."""

from collections.abc import Sequence

from engines.nearest import did_you_mean
from engines.registry import ENGINES
from orchestrator.commands.as_json import add_json, print_json
from orchestrator.commands.parser import Parser
from orchestrator.rules_table import rules_facts, rules_table
from orchestrator.tables import console

SUMMARY = (
    "List the rules that every arm is held against, by engine: what would be impossible, unfair or "
    "meaningless is refused with its reason, and `specload plan` shows it."
)


def run(arguments: Sequence[str]) -> int:
    """Print one table an engine."""
    parser = Parser(prog="specload rules", description=SUMMARY)
    parser.add_argument("engine", nargs="*", help=f"of {', '.join(sorted(ENGINES))}; all where none is named")
    add_json(parser)
    options = parser.parse_args(arguments)
    unknown = [name for name in options.engine if name not in ENGINES]
    if unknown:
        guess = did_you_mean(unknown[0], ENGINES)
        parser.error(f"there is no engine {unknown[0]!r}{guess}; choose from {', '.join(sorted(ENGINES))}")
    engines = [ENGINES[name] for name in options.engine or sorted(ENGINES)]
    if options.json:
        print_json({"rules": rules_facts(engines)})
    else:
        console().print(rules_table(engines))
    return 0
