"""What the commands on submitted sweeps share: their options, and following a driver."""

import argparse
import sys
from datetime import UTC, datetime
from functools import partial
from typing import TextIO

from analysis.untrusted import plain
from orchestrator.errors import SubmitError
from orchestrator.job_server import JobServer
from orchestrator.secrecy import redacted
from orchestrator.submission import DONE, Submission, find


def add_address(parser: argparse.ArgumentParser) -> None:
    """Add the option that names a cluster."""
    parser.add_argument(
        "--address",
        metavar="URL",
        help="the cluster's dashboard, http://HEAD:8265; or RAY_API_SERVER_ADDRESS or RAY_ADDRESS",
    )


def located(address: str | None, sweep: str) -> tuple[JobServer, Submission]:
    """Return the job server and the submission that `sweep` means.

    Raises:
        SubmitError: no server there, or it knows no such sweep.
    """
    server = JobServer.at(address)
    return server, find(server.submissions(), sweep)


def attach(server: JobServer, job: str, stream: TextIO | None = None) -> int:
    """Print what a driver prints until it ends; return 0 when its sweep is done.

    Args:
        server: of the cluster.
        job: submission id.
        stream: where to print it; standard output where None.
    """
    try:
        ended = server.follow(job, partial(show, stream=stream))
    except KeyboardInterrupt:
        print(
            f"\nspecload: {job} goes on without you; `specload stop {job}` ends it",
            file=sys.stderr,
            flush=True,
        )
        return 130
    if ended.state == DONE:
        return 0
    message = f"{job} ended as {ended.state}. {redacted(first_line(ended.message))}".strip()
    raise SubmitError(message)


def show(text: str, *, stream: TextIO | None = None) -> None:
    """Print what comes from a driver: without secrets, and without what steers a terminal."""
    print(plain(redacted(text), lines=True), end="", flush=True, file=stream)


def when(seconds: float | None) -> str:
    """Return a moment for people, empty when it is not known."""
    if not seconds:
        return ""
    return f" at {datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def first_line(text: str) -> str:
    """Return the first line of a message."""
    return (text.strip().splitlines() or [""])[0]
