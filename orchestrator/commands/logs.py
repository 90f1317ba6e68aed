"""`specload logs`: what the driver of a submitted sweep has printed."""

from collections.abc import Sequence

from orchestrator.commands.cluster import add_address, attach, located, show
from orchestrator.commands.parser import Parser

SUMMARY = "Print what the driver of a submitted sweep has printed."


def run(arguments: Sequence[str]) -> int:
    """Print the log, and go on with --follow."""
    parser = Parser(prog="specload logs", description=SUMMARY)
    parser.add_argument("sweep", help="name of the sweep, digits of its digest, or a submission id")
    parser.add_argument("--follow", action="store_true", help="go on until the sweep ends")
    add_address(parser)
    options = parser.parse_args(arguments)
    server, found = located(options.address, options.sweep)
    if options.follow and found.lives:
        return attach(server, found.id)
    show(server.logs(found.id))
    return 0
