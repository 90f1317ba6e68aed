"""`specload fetch`: bring the results of a sweep that ran elsewhere to this machine."""

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path

from jobs.nouns import are, counted
from orchestrator.commands.as_json import add_json, print_json
from orchestrator.commands.cluster import add_address, located
from orchestrator.commands.parser import Parser
from orchestrator.errors import FetchError
from orchestrator.fetch import Fetched, fetch_mlflow, fetch_url
from orchestrator.remote import RemoteFolder
from orchestrator.results_root import is_url
from orchestrator.secrecy import check_url
from orchestrator.submission import Submission
from orchestrator.tables import console

SUMMARY = "Bring a sweep's results here from its results URL or from MLflow, checked against their checksums."


def run(arguments: Sequence[str]) -> int:
    """Bring the results, and say how to look at them."""
    parser = Parser(prog="specload fetch", description=SUMMARY)
    parser.add_argument(
        "sweep", help="name, digits of the digest, or submission id on a cluster; or the URL of its folder"
    )
    parser.add_argument("--to", type=Path, default=Path("results"), metavar="FOLDER", help="default: results")
    parser.add_argument("--uri", help="MLflow server that has it; then no cluster is asked")
    add_address(parser)
    add_json(parser)
    options = parser.parse_args(arguments)
    fetched = _fetch(options)
    if options.json:
        print_json(fetched)
        return 0
    out = console()
    came = counted(fetched.files, "file")
    out.print(f"{counted(fetched.cells, 'cell')} {are(fetched.cells)} in {fetched.folder} ({came} came now)")
    if fetched.unfinished:
        out.print(
            f"{fetched.unfinished} more {are(fetched.unfinished)} being copied there: fetch again later"
        )
    out.print(f"specload report {shlex.quote(str(fetched.folder))}")
    return 0


def _fetch(options: argparse.Namespace) -> Fetched:
    if is_url(options.sweep):
        check_url("the sweep's URL", options.sweep)
        return fetch_url(RemoteFolder.at(options.sweep), options.to)
    if options.uri is not None:
        check_url("tracking.uri", options.uri)
        return fetch_mlflow(options.uri, options.sweep, options.to)
    _, found = located(options.address, options.sweep)
    if is_url(found.results):
        return fetch_url(RemoteFolder.at(found.results).child(found.sweep), options.to)
    if found.tracking:
        return fetch_mlflow(found.tracking, found.sweep, options.to)
    return fetch_url(_shared(found), options.to)


def _shared(found: Submission) -> RemoteFolder:
    """Return the driver's results folder, where it is on this machine too.

    Raises:
        FetchError: it is not.
    """
    folder = (Path(found.results).expanduser() / found.sweep).absolute()
    if not folder.is_dir():
        message = (
            f"the results of {found.sweep} are in {found.results} on the node of its driver, which is not "
            "shared with this machine, and no MLflow server has them: copy that folder, and next time submit "
            "with results=URL or tracking=server"
        )
        raise FetchError(message)
    return RemoteFolder.at(folder.as_uri())
