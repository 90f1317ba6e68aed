"""`specload stop`: have the driver of a submitted sweep end its engines, record what it has, and go."""

from collections.abc import Sequence

from orchestrator.commands.as_json import add_json, print_json
from orchestrator.commands.cluster import add_address, located
from orchestrator.commands.parser import Parser
from orchestrator.secrecy import redacted
from orchestrator.tables import console

SUMMARY = "Stop a submitted sweep: what is measured stays, and `specload submit` with the same words goes on."
_LAST_LINES = 4


def run(arguments: Sequence[str]) -> int:
    """Stop the sweep and say what is left of it."""
    parser = Parser(prog="specload stop", description=SUMMARY)
    parser.add_argument("sweep", help="name of the sweep, digits of its digest, or a submission id")
    add_address(parser)
    add_json(parser)
    options = parser.parse_args(arguments)
    server, found = located(options.address, options.sweep)
    out = console()
    lived = found.lives and server.stop(found.id)
    if not lived:
        said = [f"{found.id} has ended already ({found.state.lower()})"]
        ended = found
    else:
        if not options.json:
            out.print(f"{found.id} is asked to stop; it ends its engines and records what it has")
        ended = server.wait(found.id)
        last = [line for line in redacted(server.logs(found.id)).splitlines() if line.strip()]
        goes_on = "`specload submit` with the same words goes on from here"
        said = [*last[-_LAST_LINES:], f"{found.id} is {ended.state.lower()}; {goes_on}"]
    if options.json:
        print_json({"submission": ended.id, "sweep": ended.sweep, "state": ended.state, "stopped": lived})
    else:
        out.print("\n".join(said))
    return 0
