"""Using a server that somebody else runs: there is no process of ours to start, to watch or to stop."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from engines.base import Engine, Server
from engines.errors import EngineHungError, StartTimeoutError, WrongServerError
from engines.launch import PROBE_TOKENS
from engines.process import StopReport
from engines.remote_http import server_client

POLL_SECONDS = 0.5
"""Between two looks at a server that is not ready."""
PATIENCE_SECONDS = 15.0
"""How long a server that breaks answers off may take to serve again."""
NOTHING_TO_STOP = StopReport(graceful=True, killed=0, survivors=0, seconds=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedServer:
    """A ready server of somebody else's."""

    server: Server
    start_seconds: float
    """Until its first completion."""
    resolved: Mapping[str, Any] = field(default_factory=dict)
    """Its own resolved configuration: flat keys; empty where it tells none."""

    def check(self) -> None:
        """Do nothing: it has no process of ours that could have ended."""

    def check_service(self) -> None:
        """Raise EngineHungError unless it lists its model within some seconds."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (trouble := _trouble(self.server)) is not None:
            if time.monotonic() > deadline:
                message = (
                    f"the server of {self.server.config.label} at {self.server.url} does not serve after "
                    f"{PATIENCE_SECONDS:g} s of asking: {trouble}"
                )
                raise EngineHungError(message)
            time.sleep(POLL_SECONDS)

    def log_tail(self) -> str:
        """Return nothing: its log is not ours to read."""
        return ""

    def stop(self, grace: float) -> StopReport:  # noqa: ARG002 - there is nothing to wait for
        """Leave it alone."""
        return NOTHING_TO_STOP


def attach_engine(engine: Engine, server: Server, *, ready_seconds: float) -> AttachedServer:
    """Wait until `server` is ready, `ready_seconds` at most, and return it.

    Ready means: `/v1/models` lists the model, one real completion came back, and what it tells of its own
    configuration does not contradict the arm it stands for.

    Raises:
        EngineEnvironmentError: a variable with a header's value is not set.
        StartTimeoutError: it is not ready.
        WrongServerError: it refuses to serve this model, or it is not what the arm says.
    """
    begun = time.monotonic()
    deadline = begun + ready_seconds
    while (trouble := _trouble(server)) is not None:
        if time.monotonic() + POLL_SECONDS > deadline:
            message = (
                f"the server of {server.config.label} at {server.url} is not ready after "
                f"{ready_seconds:g} s: {trouble}"
            )
            raise StartTimeoutError(message)
        time.sleep(POLL_SECONDS)
    _complete(server, deadline)
    seconds = time.monotonic() - begun
    resolved = engine.resolved(server)
    found = engine.contradictions(server.config, resolved)
    if found:
        message = f"the server at {server.url} is not {server.config.label}: {'; '.join(found)}"
        raise WrongServerError(message)
    return AttachedServer(server=server, start_seconds=seconds, resolved=resolved)


def _trouble(server: Server) -> str | None:
    """Return why the server does not list its model; None when it does.

    Raises:
        WrongServerError: it answers, and that will not change by waiting.
    """
    try:
        with server_client(server) as client:
            answer = client.get(f"{server.url}/v1/models")
    except httpx.HTTPError as error:
        return str(error) or type(error).__name__
    if answer.is_client_error:
        message = (
            f"{server.url}/v1/models answers with HTTP status {answer.status_code}: an address or a header "
            "(engine.flags.urls, engine.flags.headers) is wrong"
        )
        raise WrongServerError(message)
    if not answer.is_success:
        return f"/v1/models answers with HTTP status {answer.status_code}"
    try:
        names = [str(model["id"]) for model in answer.json()["data"]]
    except (ValueError, LookupError, TypeError):
        return "/v1/models answers with no list of models"
    if server.config.model.name not in names:
        message = f"{server.url} serves {names}, not {server.config.model.name!r}; set model.name"
        raise WrongServerError(message)
    return None


def _complete(server: Server, deadline: float) -> None:
    body = {
        "model": server.config.model.name,
        "prompt": "Ready?",
        "max_tokens": PROBE_TOKENS,
        "temperature": 0,
    }
    patience = max(1.0, deadline - time.monotonic())
    try:
        with server_client(server) as client:
            answer = client.post(f"{server.url}/v1/completions", json=body, timeout=patience)
    except httpx.HTTPError as error:
        message = f"{server.url}/v1/completions did not answer: {error or type(error).__name__}"
        raise StartTimeoutError(message) from error
    if answer.is_client_error:
        message = (
            f"{server.url}/v1/completions answers a first completion with HTTP status "
            f"{answer.status_code}: {answer.text[:500]}"
        )
        raise WrongServerError(message)
    if not answer.is_success:
        message = f"{server.url}/v1/completions answers with HTTP status {answer.status_code}"
        raise StartTimeoutError(message)
