"""Submitting a sweep to a cluster: the plan and its workload travel, a driver there runs them.

The submission's id is the lock: a sweep that runs is attached to, one that stopped gets the next attempt,
which goes on from the results of those before.
"""

import json
import shlex
import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jobs.workload.token_file import write
from jobs.workload.tokens import TokenWorkload
from orchestrator.errors import SubmitError
from orchestrator.job_server import JobServer
from orchestrator.ledger import PLAN, WORKLOAD
from orchestrator.plan import Plan
from orchestrator.remote import RemoteFolder
from orchestrator.results_root import ResultsRoot
from orchestrator.secrecy import redacted
from orchestrator.submission import (
    DONE,
    Submission,
    attempts,
    content_of,
    metadata,
    submission_id,
)

CLUSTER = "auto"
"""Address of Ray for a driver that runs inside the cluster."""
HOME = "~/specload/results"
"""Where a driver keeps sweeps on its node, when the user named no place that the node can have."""
UPLOAD_LIMIT = 90 * 2**20
"""Bytes that a job server takes: its requests are limited to 100 MiB."""
_EPOCH = (1980, 1, 1, 0, 0, 0)

NEW, ATTACHED, FINISHED = "new", "attached", "finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """What submitting a sweep came to."""

    what: str
    """`new`: an attempt was started; `attached`: one runs already; `finished`: one has done it all."""
    id: str
    """Submission that runs, or did."""
    before: Submission | None = None
    """The attempt before it, whose results it goes on from."""


def submit(
    server: JobServer,
    plan: Plan,
    workload: TokenWorkload,
    root: ResultsRoot,
    *,
    retry: Sequence[str] = (),
    take_over: bool = False,
) -> Submitted:
    """Have the cluster run what is left of the plan, or attach to the driver that does.

    Raises:
        SubmitError: the server refuses, or the workload is too large to travel.
    """
    plan = for_cluster(plan)
    results = results_there(root)
    content = content_of(plan, results)
    while True:
        known = attempts(server.submissions(), plan)
        last = known[-1] if known else None
        if last is not None and last.lives:
            return Submitted(what=ATTACHED, id=last.id)
        if last is not None and last.state == DONE and last.content == content and not retry:
            return Submitted(what=FINISHED, id=last.id)
        job = submission_id(plan, last.attempt + 1 if last is not None else 1)
        with tempfile.TemporaryDirectory(prefix="specload-submit-") as name:
            package: Path | None = pack(plan, workload, Path(name))
            where = PLAN
            if package is not None and package.stat().st_size > UPLOAD_LIMIT:
                if root.url is None:
                    raise _too_large(package)
                where = _leave_at_url(plan, root.url, package)
                package = None
            started = server.submit(
                job,
                entrypoint=entrypoint(
                    where,
                    results=results,
                    url=root.url is not None,
                    retry=retry,
                    take_over=take_over,
                ),
                package=package,
                metadata=metadata(plan, results=results, content=content),
            )
        if started:
            return Submitted(what=NEW, id=job, before=last)
        # somebody submitted the same sweep in this moment: attach to theirs


def stage(plan: Plan, workload: TokenWorkload, root: ResultsRoot) -> str:
    """Put plan and workload at the results URL, and return the command line of a driver that runs them.

    Raises:
        SubmitError: results are not at a URL, or it cannot be written.
    """
    if root.url is None:
        message = "--stage leaves the plan at the results URL: set results to one, such as s3://BUCKET/FOLDER"
        raise SubmitError(message)
    plan = for_cluster(plan)
    with tempfile.TemporaryDirectory(prefix="specload-submit-") as name:
        where = _leave_at_url(plan, root.url, pack(plan, workload, Path(name)))
    return entrypoint(where, results=root.url, url=True)


def for_cluster(plan: Plan) -> Plan:
    """Return the plan for a driver inside the cluster; it is the same sweep, as places are no content."""
    return replace(plan, cluster=replace(plan.cluster, address=CLUSTER, slots=None))


def results_there(root: ResultsRoot) -> str:
    """Return the results root as the driver is told it: the URL, an absolute folder, or one in its home."""
    if root.url is not None:
        return root.url
    return str(root.folder) if root.folder.is_absolute() else HOME


def entrypoint(
    plan: str, *, results: str, url: bool, retry: Sequence[str] = (), take_over: bool = False
) -> str:
    """Return the command line of the driver."""
    words = ["specload", "sweep", "--from", plan, "--results", results]
    if url:
        words += ["--work", HOME]
    if retry:
        words += ["--retry", ",".join(retry)]
    if take_over:
        words.append("--take-over")
    return "exec " + shlex.join(words)  # no shell between Ray's signals and the driver


def pack(plan: Plan, workload: TokenWorkload, folder: Path) -> Path:
    """Write plan and workload into one archive; the same ones give the same bytes."""
    tokens = folder / WORKLOAD
    write(workload, tokens)
    archive = folder / "sweep.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        text = json.dumps(plan.to_dict(), indent=1, sort_keys=True)
        file.writestr(_entry(PLAN), text)
        with tokens.open("rb") as source, file.open(_entry(WORKLOAD), "w", force_zip64=True) as target:
            shutil.copyfileobj(source, target)
    return archive


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


def _too_large(package: Path) -> SubmitError:
    mib = package.stat().st_size / 2**20
    return SubmitError(
        f"plan and workload take {mib:.0f} MiB packed, and a job server takes {UPLOAD_LIMIT >> 20} MiB: set "
        "results to a URL that this machine and the cluster can use (s3://BUCKET/FOLDER), and they travel "
        "that way; or take a share of the workload with workload.limit or workload.sample"
    )


def _leave_at_url(plan: Plan, url: str, package: Path) -> str:
    """Put plan and workload where the driver finds its results too, and return the plan's URL."""
    remote = RemoteFolder.at(url).child(plan.sweep)
    with zipfile.ZipFile(package) as archive:
        for name in (WORKLOAD, PLAN):
            archive.extract(name, package.parent)
            try:
                remote.put(package.parent / name, name)
            except Exception as error:
                message = (
                    f"{remote.url} cannot be written ({redacted(str(error))}); check your credentials for it"
                )
                raise SubmitError(message) from error
    return f"{remote.url}/{PLAN}"
