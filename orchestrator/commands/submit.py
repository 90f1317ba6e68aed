"""`specload submit`: have a Ray cluster run a sweep, or go on with it."""

import sys
from collections.abc import Sequence
from urllib.parse import urlsplit

from orchestrator.commands.as_json import print_json
from orchestrator.commands.cluster import attach, when
from orchestrator.commands.grid import Asked, asked, parse
from orchestrator.job_server import JobServer
from orchestrator.results_root import ResultsRoot
from orchestrator.submit import ATTACHED, FINISHED, HOME, results_there, stage, submit
from orchestrator.tables import console

SUMMARY = "Plan here, run on a Ray cluster. A sweep that runs is attached to; one that stopped goes on."
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def run(arguments: Sequence[str]) -> int:
    """Submit the sweep that the words ask for."""
    options, words = parse("submit", SUMMARY, arguments)
    if options.saved is None and not any(word.startswith("cluster.address=") for word in words):
        words = [*words, "cluster.address=auto"]  # what the cluster offers is not known by this machine
    found = asked("submit", options, words)
    if found is None:
        return 0
    out = console(stderr=options.json)  # what is said on the way is no JSON
    if options.stage:
        command = stage(found.plan, found.workload, found.root)
        if options.json:
            print_json({"sweep": found.plan.sweep, "command": command})
        else:
            out.print(command, soft_wrap=True)
        return 0
    server = JobServer.at(options.address)
    for line in _advice(found, server.address):
        out.print(line)
    done = submit(
        server,
        found.plan,
        found.workload,
        found.root,
        retry=found.retry,
        take_over=found.take_over,
    )
    sweep = found.plan.sweep
    if options.json:
        print_json({"sweep": sweep, "submission": done.id, "what": done.what})
        return 0 if done.what == FINISHED or not options.follow else attach(server, done.id, sys.stderr)
    if done.what == FINISHED:
        out.print(
            f"{sweep} is finished on this cluster ({done.id}); `specload fetch {sweep}` brings its results, "
            "--retry failed,invalid measures such cells again"
        )
        return 0
    if done.what == ATTACHED:
        out.print(f"{sweep} runs already as {done.id}: attached to it")
    elif done.before is not None:
        before = f"{done.before.id} ({done.before.state.lower()}{when(done.before.ended)})"
        out.print(f"submitted {sweep} as {done.id}; it goes on after {before}")
    else:
        out.print(f"submitted {sweep} as {done.id}")
    if options.follow:
        return attach(server, done.id)
    out.print(f"specload status {sweep} | specload logs --follow {sweep} | specload stop {sweep}")
    return 0


def _advice(found: Asked, address: str) -> list[str]:
    """Return what the user should know before results land where they cannot be reached."""
    lines = []
    uri = str(found.plan.tracking.get("uri") or "")
    served = uri.startswith(("http://", "https://"))
    local = urlsplit(address).hostname in _LOOPBACK
    if served and urlsplit(uri).hostname in _LOOPBACK and not local:
        lines.append(f"note: tracking.uri is {uri}, which for the driver is the cluster's head")
    if found.root.url is None and not served:
        lines.append(_stays(found.root))
    return lines


def _stays(root: ResultsRoot) -> str:
    there = results_there(root)
    why = f" (results={root.folder} is relative to this folder)" if there == HOME else ""
    return (
        f"note: results are kept in {there} on the driver's node{why}; `specload fetch` brings them only "
        "where that folder is shared with this machine: results=URL or tracking=server makes them reachable"
    )
