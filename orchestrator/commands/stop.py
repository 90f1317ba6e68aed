"""`specload stop`: have the driver of a submitted sweep end its engines, record what it has, and go."""

import argparse
from collections.abc import Sequence

from orchestrator.commands.cluster import add_address, located
from orchestrator.secrecy import redacted
from orchestrator.tables import console

SUMMARY = "Stop a submitted sweep: what is measured stays, and `specload submit` with the same words goes on."
_LAST_LINES = 4


def run(arguments: Sequence[str]) -> int:
    """Stop the sweep and say what is left of it."""
    parser = argparse.ArgumentParser(prog="specload stop", description=SUMMARY)
    parser.add_argument("sweep", help="name of the sweep, digits of its digest, or a submission id")
    add_address(parser)
    options = parser.parse_args(arguments)
    server, found = located(options.address, options.sweep)
    out = console()
    if not found.lives or not server.stop(found.id):
        out.print(f"{found.id} has ended already ({found.state.lower()})", markup=False)
        return 0
    out.print(f"{found.id} is asked to stop; it ends its engines and records what it has", markup=False)
    ended = server.wait(found.id)
    said = [line for line in redacted(server.logs(found.id)).splitlines() if line.strip()]
    out.print("\n".join(said[-_LAST_LINES:]), markup=False)
    out.print(
        f"{found.id} is {ended.state.lower()}; `specload submit` with the same words goes on from here",
        markup=False,
    )
    return 0
