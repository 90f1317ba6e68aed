"""The job server of a Ray cluster, at its dashboard's address: submit, list, read logs, stop.

Only this module speaks to it. Its errors become one paragraph; a token never appears in them.
"""

import asyncio
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from orchestrator.errors import SubmitError
from orchestrator.secrecy import check_url, redacted
from orchestrator.submission import Submission

ADDRESSES = ("RAY_API_SERVER_ADDRESS", "RAY_ADDRESS")
"""Variables that name the job server where `--address` does not, in this order, as Ray itself reads them."""
STOP_SECONDS = 120
"""How long a driver may take to end its engines and record what it has, once it is asked to stop."""
_CONNECT_SECONDS = 10.0
_POLL_SECONDS = 0.5
_TOKEN_FILE = Path("~/.ray/auth_token")


class JobServer:
    """One cluster's job server."""

    def __init__(self, address: str, client: Any) -> None:
        self.address = address
        self._client = client

    @classmethod
    def at(cls, address: str | None) -> Self:
        """Connect to the job server at `address`, or at the one that the environment names.

        Raises:
            SubmitError: no address, nobody there, or the token is missing or refused.
        """
        found = server_address(address)
        has_token = prepare_authentication()
        _check_reachable(found)
        # Ray reads this before its own argument: a RAY_ADDRESS of another cluster would win over --address
        os.environ[ADDRESSES[0]] = found
        # Late: Ray reads the mode of authentication when it is loaded, and takes a second to load
        from ray.job_submission import JobSubmissionClient  # noqa: PLC0415 - see above

        # else a line about every package that was uploaded before
        logging.getLogger("ray.dashboard.modules.dashboard_sdk").setLevel(logging.WARNING)
        with _sentences(found, has_token=has_token):
            return cls(found, JobSubmissionClient(found))

    def submissions(self) -> list[Submission]:
        """Return every sweep that was submitted since the cluster started."""
        with self._sentences():
            jobs = self._client.list_jobs()
        return [found for details in jobs if (found := Submission.of(details)) is not None]

    def submission(self, job: str) -> Submission:
        """Return one submission as it is now."""
        with self._sentences():
            found = Submission.of(self._client.get_job_info(job))
        assert found is not None
        return found

    def submit(self, job: str, *, entrypoint: str, package: Path | None, metadata: Mapping[str, str]) -> bool:
        """Submit a job; False when one of this id is there already."""
        env = {"RAY_JOB_STOP_WAIT_TIME_S": str(STOP_SECONDS)}  # Ray's own three seconds are a kill
        runtime_env: dict[str, Any] = {"env_vars": env}
        if package is not None:
            runtime_env["working_dir"] = str(package)
        try:
            with self._sentences():
                self._client.submit_job(
                    entrypoint=entrypoint,
                    submission_id=job,
                    runtime_env=runtime_env,
                    metadata=dict(metadata),
                )
        except SubmitError:
            if any(found.id == job for found in self.submissions()):
                return False
            raise
        return True

    def logs(self, job: str) -> str:
        """Return all that the driver has printed."""
        with self._sentences():
            return str(self._client.get_job_logs(job))

    def follow(self, job: str, say: Callable[[str], None]) -> Submission:
        """Hand on what the driver prints until it ends, and return how it ended."""
        with self._sentences():
            asyncio.run(_tail(self._client.tail_job_logs(job), say))
        return self.wait(job)

    def stop(self, job: str) -> bool:
        """Ask a driver to stop; False when it had ended already."""
        with self._sentences():
            return bool(self._client.stop_job(job))

    def wait(self, job: str, *, seconds: float = STOP_SECONDS + 30.0) -> Submission:
        """Wait until the job has ended, and return how.

        Raises:
            SubmitError: it still runs after so long.
        """
        deadline = time.monotonic() + seconds
        while (found := self.submission(job)).lives:
            if time.monotonic() > deadline:
                message = f"{job} still runs after {seconds:.0f} s; `specload status {job}` tells more"
                raise SubmitError(message)
            time.sleep(_POLL_SECONDS)
        return found

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        with _sentences(self.address, has_token=True):
            yield


def server_address(address: str | None) -> str:
    """Return the job server's address: the argument's, or the environment's.

    Raises:
        SubmitError: there is none, or it is not the address of a job server.
    """
    named = next(((name, os.environ[name]) for name in ADDRESSES if os.environ.get(name)), ("", ""))
    source, found = ("--address", address) if address else named
    if not found:
        message = (
            "which cluster? Give --address http://HEAD:8265 (the address of its Ray dashboard), or set "
            f"{ADDRESSES[0]}"
        )
        raise SubmitError(message)
    check_url(source, found)
    try:
        parts = urlsplit(found)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        message = (
            f"{source} is {redacted(found)!r}; jobs are submitted to a cluster's dashboard: give "
            "http://HEAD:8265"
        )
        raise SubmitError(message)
    return found.rstrip("/")


def prepare_authentication() -> bool:
    """Have Ray use a token where there is one, and return whether there is; call it before Ray is loaded.

    Raises:
        SubmitError: Ray was told to use a token, and there is none.
    """
    path = os.environ.get("RAY_AUTH_TOKEN_PATH")
    if not os.environ.get("RAY_AUTH_TOKEN") and path and not _has_text(Path(path)):
        message = f"RAY_AUTH_TOKEN_PATH names {path}, which is missing, unreadable or empty"
        raise SubmitError(message)
    found = bool(os.environ.get("RAY_AUTH_TOKEN") or path) or _has_text(_TOKEN_FILE.expanduser())
    mode = os.environ.get("RAY_AUTH_MODE", "").lower()
    if mode == "token" and not found:
        message = (
            "RAY_AUTH_MODE is token, and there is no token: set RAY_AUTH_TOKEN_PATH to a file with the "
            f"cluster's token, or put it into {_TOKEN_FILE} (`ray get-auth-token` prints it on the head)"
        )
        raise SubmitError(message)
    if found:
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    return found and os.environ["RAY_AUTH_MODE"].lower() == "token"


def _has_text(path: Path) -> bool:
    try:
        return bool(path.read_text().strip())
    except (OSError, ValueError):
        return False


def _check_reachable(address: str) -> None:
    parts = urlsplit(address)
    place = (str(parts.hostname), parts.port or (443 if parts.scheme == "https" else 80))
    try:
        socket.create_connection(place, timeout=_CONNECT_SECONDS).close()
    except OSError as error:
        message = (
            f"nobody answers at {address} ({error}); check that the cluster is up, that its dashboard "
            "listens there, and that this machine may reach it"
        )
        raise SubmitError(message) from error


async def _tail(chunks: AsyncIterator[str], say: Callable[[str], None]) -> None:
    async for chunk in chunks:
        say(chunk)


@contextmanager
def _sentences(address: str, *, has_token: bool) -> Iterator[None]:
    """Turn what Ray's client raises into one sentence each."""
    import aiohttp  # noqa: PLC0415 - late, as Ray
    from ray.exceptions import AuthenticationError  # noqa: PLC0415 - see above

    try:
        yield
    except AuthenticationError as error:
        if has_token and "401" not in str(error) and "required" not in str(error).lower():
            message = (
                f"the cluster at {address} refuses the token; use the token that its head was started with"
            )
        else:
            message = (
                f"the cluster at {address} wants a token: set RAY_AUTH_TOKEN_PATH to a file with it, or put "
                f"it into {_TOKEN_FILE} (`ray get-auth-token` prints it on the head)"
            )
        raise SubmitError(message) from error
    except (RuntimeError, OSError, aiohttp.ClientError) as error:
        words = redacted(" ".join(str(error).split()))[-600:]
        message = f"the job server at {address} does not do it: {words}"
        raise SubmitError(message) from error
