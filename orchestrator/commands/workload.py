"""`specload workload`: look at a workload, or have a baseline engine write its replies."""

import argparse
import importlib
from collections.abc import Sequence

from orchestrator.commands.parser import Parser

SUMMARY = "Look at a workload's files, or complete a workload that has no replies."
_COMMANDS = {
    "inspect": "print what is in workload files, and draw it",
    "record": "write the replies that a workload lacks with the baseline engine",
}


def run(arguments: Sequence[str]) -> int:
    """Run the command that the first word names."""
    parser = Parser(
        prog="specload workload",
        description=SUMMARY,
        epilog="\n".join(f"  {name:<8} {words}" for name, words in _COMMANDS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=tuple(_COMMANDS), help="what to do; `COMMAND --help` says more")
    # Only the first word is this parser's: all others are the command's, its --help too.
    command = parser.parse_args(arguments[:1]).command
    module = importlib.import_module(f"orchestrator.commands.workload_{command}")
    return int(module.run(arguments[1:]))
