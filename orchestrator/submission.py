"""A submitted sweep as a cluster's job server knows it: ids, attempts, and finding one by a word."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from engines.digest import digest
from jobs.nouns import some
from orchestrator.errors import SubmitError
from orchestrator.plan import Plan

DIGITS = 10
"""Digits of a plan's digest in the names of its sweep and of its submissions."""
WAITING, RUNNING, DONE, STOPPED, FAILED = "PENDING", "RUNNING", "SUCCEEDED", "STOPPED", "FAILED"
LIVE = (WAITING, RUNNING)
_ID = re.compile(r"sweep-([0-9a-f]{10})-([1-9][0-9]*)")
_PREFIX = "specload."


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One attempt of a sweep on a cluster."""

    id: str
    """`sweep-<digest>-<attempt>`."""
    state: str
    """Ray's word: PENDING, RUNNING, SUCCEEDED, STOPPED or FAILED."""
    sweep: str = ""
    """Name of the sweep; empty for a job that was not submitted by this program."""
    results: str = ""
    """Results root as the driver was told it: a folder of its node, or a URL."""
    tracking: str = ""
    """MLflow server of the sweep; empty where there is none that others could reach."""
    content: str = ""
    """Digest of everything the driver was told: what may be changed in a sweep is part of it."""
    started: float | None = None
    """Unix time in seconds."""
    ended: float | None = None
    """Unix time in seconds; None while it runs."""
    message: str = ""
    """Ray's words on how it goes."""

    @property
    def digest(self) -> str:
        """First digits of the plan's digest."""
        return _parts(self.id)[0]

    @property
    def attempt(self) -> int:
        """Number of the attempt, from 1."""
        return _parts(self.id)[1]

    @property
    def lives(self) -> bool:
        """Whether its driver runs, or is about to."""
        return self.state in LIVE

    @classmethod
    def of(cls, details: Any) -> Self | None:
        """Return the submission in one of Ray's `JobDetails`; None for a job that is no sweep."""
        if details.submission_id is None or _ID.fullmatch(details.submission_id) is None:
            return None
        told: Mapping[str, str] = details.metadata or {}
        return cls(
            id=details.submission_id,
            state=str(getattr(details.status, "value", details.status)),
            sweep=told.get(f"{_PREFIX}sweep", ""),
            results=told.get(f"{_PREFIX}results", ""),
            tracking=told.get(f"{_PREFIX}tracking", ""),
            content=told.get(f"{_PREFIX}content", ""),
            started=None if details.start_time is None else details.start_time / 1000,
            ended=None if details.end_time is None else details.end_time / 1000,
            message=details.message or "",
        )


def submission_id(plan: Plan, attempt: int) -> str:
    """Return the id of an attempt: the job server refuses a second job of one id, and so it is a lock."""
    return f"sweep-{plan.digest[:DIGITS]}-{attempt}"


def metadata(plan: Plan, *, results: str, content: str) -> dict[str, str]:
    """Return what a job tells about itself to `status`, `fetch` and the next `submit`."""
    uri = str(plan.tracking.get("uri") or "")
    told = {
        "sweep": plan.sweep,
        "results": results,
        "tracking": uri if uri.startswith(("http://", "https://")) else "",
        "content": content,
    }
    return {f"{_PREFIX}{key}": value for key, value in told.items()}


def content_of(plan: Plan, results: str) -> str:
    """Return the digest of all a driver is told, its words for people left out."""
    told = {key: value for key, value in plan.to_dict().items() if key not in ("overrides", "notes")}
    return digest([told, results])


def attempts(found: Iterable[Submission], plan: Plan) -> list[Submission]:
    """Return the attempts of this plan's sweep, oldest first."""
    ours = [submission for submission in found if submission.digest == plan.digest[:DIGITS]]
    return sorted(ours, key=lambda submission: submission.attempt)


def find(found: Sequence[Submission], word: str) -> Submission:
    """Return what `word` means: a submission by its id, or a sweep's latest attempt by its name or digest.

    Raises:
        SubmitError: none, or several sweeps.
    """
    for submission in found:
        if submission.id == word:
            return submission
    prefix = word.removeprefix("sweep-")
    matching = [
        submission
        for submission in found
        if word and (word == submission.sweep or submission.digest.startswith(prefix))
    ] or [submission for submission in found if word and submission.sweep.startswith(word)]
    digests = {submission.digest for submission in matching}
    if len(digests) == 1:
        return max(matching, key=lambda submission: submission.attempt)
    known = sorted({submission.sweep or submission.id for submission in matching or found})
    listed = some(known, 8)
    if matching:
        message = f"{word!r} may be any of {listed}; give more of the name"
    elif known:
        message = f"no sweep {word!r} was submitted to this cluster since it started; it knows {listed}"
    else:
        message = f"no sweep {word!r}: none was submitted to this cluster since it started"
    raise SubmitError(message)


def _parts(job: str) -> tuple[str, int]:
    match = _ID.fullmatch(job)
    assert match is not None, f"{job!r} is no submission of a sweep"
    return match[1], int(match[2])
