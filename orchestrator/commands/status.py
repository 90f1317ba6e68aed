"""`specload status`: how far a sweep is, on a cluster or in a results folder."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from orchestrator.commands.as_json import add_json, print_json
from orchestrator.commands.cluster import add_address, first_line, located, when
from orchestrator.commands.parser import Parser
from orchestrator.errors import ConfigError, SubmitError
from orchestrator.job_server import JobServer
from orchestrator.live import status_view
from orchestrator.remote import RemoteFolder
from orchestrator.results_root import is_url
from orchestrator.secrecy import check_url, redacted
from orchestrator.status import FILE, RUNNING, Status, parse_status, read_status, stopped
from orchestrator.submission import Submission
from orchestrator.sweep_folder import no_sweep, sweep_folder
from orchestrator.tables import console

SUMMARY = "Show how far a sweep is. Without a sweep: what was submitted to the cluster."
_LAST_LINES = 10


def run(arguments: Sequence[str]) -> int:
    """Show the sweep, or the cluster's list."""
    parser = Parser(prog="specload status", description=SUMMARY)
    parser.add_argument(
        "sweep",
        nargs="?",
        help="results/SWEEP or its URL; or a name, digits of the digest, or submission id on a cluster",
    )
    add_address(parser)
    add_json(parser)
    options = parser.parse_args(arguments)
    out = console()
    if options.sweep is None:
        found = sorted(JobServer.at(options.address).submissions(), key=lambda e: (e.started or 0.0, e.id))
        if options.json:
            print_json({"submissions": [_facts(entry) for entry in found]})
        else:
            _list(out, found)
        return 0
    if options.address is None and (folder := _folder(options.sweep)) is not None:
        status = read_status(folder)
        plan = shlex.quote(str(folder / "plan.json"))
        view = status_view(status, go_on=f"specload sweep --from {plan}")
    elif is_url(options.sweep):
        check_url("the sweep's URL", options.sweep)
        status = _at_url(RemoteFolder.at(options.sweep))
        view = status_view(status)
    else:
        server, submission = _submitted(options.address, options.sweep)
        if options.json:
            print_json({"submission": _facts(submission), "status": _status(submission)})
        else:
            _show(out, server, submission)
        return 0
    if options.json:
        print_json(status.to_dict())
    else:
        out.print(view)
    return 0


def _folder(sweep: str) -> Path | None:
    """Return the sweep's folder, or the file, that a word names on this machine; None where it names none."""
    path = Path(sweep)
    if path.is_file():
        return path
    try:
        return sweep_folder(path)
    except ConfigError:
        if path.exists():
            raise
        return None  # a cluster may know the name


def _submitted(address: str | None, sweep: str) -> tuple[JobServer, Submission]:
    try:
        return located(address, sweep)
    except SubmitError as error:
        if address is not None:
            raise
        message = f"{no_sweep(Path(sweep))}; and as for a sweep on a cluster: {error}"
        raise SubmitError(message) from error


def _facts(found: Submission) -> dict[str, object]:
    """Return a submission as JSON: Ray's words may quote what was told to the driver."""
    return {**asdict(found), "results": redacted(found.results), "message": redacted(found.message)}


def _list(out: Console, submissions: Sequence[Submission]) -> None:
    table = Table(show_edge=False)
    for name in ("sweep", "submission", "state", "started", "ended"):
        table.add_column(name, overflow="fold")
    for found in submissions:
        moments = (when(found.started).removeprefix(" at "), when(found.ended).removeprefix(" at "))
        table.add_row(found.sweep, found.id, found.state.lower(), *moments)
    out.print(table)


def _show(out: Console, server: JobServer, found: Submission) -> None:
    since = f"ended{when(found.ended)}" if found.ended else f"started{when(found.started)}"
    out.print(f"{found.id}: {found.state.lower()}, {since}")
    status = _status(found)
    if status is not None:
        out.print(status_view(status, go_on="specload submit with the same words"))
        return
    if found.message:
        out.print(redacted(first_line(found.message)))
    lines = [line for line in redacted(server.logs(found.id)).splitlines() if line.strip()]
    out.print("\n".join(lines[-_LAST_LINES:]))


def _status(found: Submission) -> Status | None:
    """Return the driver's own words where they can be reached from here: at the URL or in a shared folder."""
    try:
        if is_url(found.results):
            status = _at_url(RemoteFolder.at(found.results).child(found.sweep))
        else:
            status = read_status(Path(found.results).expanduser() / found.sweep)
    except ConfigError:
        return None
    # the job server knows better than an old file
    return stopped(status) if not found.lives and status.state == RUNNING else status


def _at_url(remote: RemoteFolder) -> Status:
    return parse_status(remote.wanted(FILE), f"{remote.url}/{FILE}")
