"""Starting an engine until it is proven ready, and what a caller then holds."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import httpx

from engines.base import Engine, Server, Site
from engines.errors import (
    BadFlagError,
    EngineDiedError,
    EngineHungError,
    EngineMemoryError,
    EngineOutOfMemoryError,
    EngineStartError,
    MissingModelError,
    PortInUseError,
    StartTimeoutError,
    WrongServerError,
)
from engines.log_words import last_words
from engines.ports import is_free, listeners
from engines.process import EngineProcess, StopReport
from engines.spec import EngineConfig
from engines.vllm_http import control_client

LOG_NAME = "engine.log"
POLL_SECONDS = 0.1
STOP_GRACE = 10.0
"""Seconds an engine that did not become ready gets to end by itself."""
DYING_SECONDS = 15.0
"""Seconds an engine that broke answers off gets to end, or to be healthy again."""
PROBE_TOKENS = 4
START_ERRORS: dict[str, type[EngineStartError]] = {
    error.cause: error
    for error in (EngineMemoryError, BadFlagError, MissingModelError, PortInUseError, EngineStartError)
}
"""Cause word of an ended engine (`Engine.classify`) -> error; any other word is an EngineStartError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningEngine:
    """An engine that is ready, until `stop`."""

    engine: Engine
    server: Server
    process: EngineProcess
    start_seconds: float
    """From the start of the process to its first completion."""
    resolved: Mapping[str, Any] = field(default_factory=dict)
    """The engine's own resolved configuration: flat keys."""

    def check(self) -> None:
        """Raise EngineDiedError (EngineOutOfMemoryError), with the log's tail, if the engine has ended."""
        code = self.process.returncode()
        if code is None:
            return
        tail = self.process.log_tail()
        cause = self.engine.classify(tail, code)
        ending = f"{_ending(code)}, {cause}"
        message = f"engine {self.server.config.label} ended while in use ({ending}){last_words(tail)}"
        died = EngineOutOfMemoryError if cause == EngineOutOfMemoryError.cause else EngineDiedError
        raise died(message, tail)

    def check_service(self) -> None:
        """Raise EngineDiedError or EngineHungError unless the engine lives and is healthy.

        An engine that is dying breaks its answers off before its process is gone: it gets a while to go.
        """
        deadline = time.monotonic() + DYING_SECONDS
        with control_client() as client:
            while not _healthy(client, self.server.url):
                self.check()
                if time.monotonic() > deadline:
                    message = (
                        f"engine {self.server.config.label} lives, but is not healthy "
                        f"after {DYING_SECONDS:g} s of asking"
                    )
                    raise EngineHungError(message, self.process.log_tail())
                time.sleep(POLL_SECONDS)
        self.check()

    def log_tail(self) -> str:
        """Return the last lines of its log."""
        return self.process.log_tail()

    def stop(self, grace: float) -> StopReport:
        """End the engine: SIGTERM, `grace` seconds, SIGKILL."""
        return self.process.stop(grace)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(STOP_GRACE)


def start_engine(engine: Engine, config: EngineConfig, site: Site, *, ready_seconds: float) -> RunningEngine:
    """Start `config` at `site` and wait until it is ready, `ready_seconds` at most.

    Ready means: `/health` answers 200, only processes that we started listen on the port, `/v1/models` lists
    the model, one real completion came back, and the engine's own resolved configuration is the ordered one.
    Its output goes to `engine.log` in the site's folder.

    Raises:
        EngineConfigError: a setting this engine does not know.
        EngineStartError: it did not become ready; the subclass and `cause` say why, `log_tail` has its last
            lines. Nothing of it is left.
    """
    if not is_free(site.port, site.host):
        message = f"port {site.port} on {site.host} is taken by another process; lease another one"
        raise PortInUseError(message)
    site.directory.mkdir(parents=True, exist_ok=True)
    command = engine.command(config, site)
    for name, text in command.files.items():
        (command.cwd / name).write_text(text, encoding="utf-8")
    began = time.monotonic()
    process = EngineProcess.start(command, site.directory / LOG_NAME, cpus=site.start_cpus or site.cpus)
    server = Server(url=f"http://{site.host}:{site.port}", config=config, pid=process.pid)
    try:
        _Start(engine, server, process, site, ready_seconds).wait()
        seconds = time.monotonic() - began
        resolved = _confirmed(engine, server, process)
        process.bind(site.cpus)
    except BaseException:
        process.stop(STOP_GRACE)
        raise
    return RunningEngine(
        engine=engine, server=server, process=process, start_seconds=seconds, resolved=resolved
    )


def _confirmed(engine: Engine, server: Server, process: EngineProcess) -> Mapping[str, Any]:
    """Return the server's resolved configuration, once it is that of the engine we started."""
    resolved = engine.resolved(server)
    found = engine.contradictions(server.config, resolved)
    if found:
        message = (
            f"the server at {server.url} is not engine {server.config.label} as it was ordered: "
            f"{'; '.join(found)}"
        )
        raise WrongServerError(message, process.log_tail())
    return resolved


class _Start:
    """One wait for readiness."""

    def __init__(
        self, engine: Engine, server: Server, process: EngineProcess, site: Site, seconds: float
    ) -> None:
        self._engine = engine
        self._server = server
        self._process = process
        self._site = site
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._missing = "the first answer of /health"

    def wait(self) -> None:
        with control_client() as client:
            while not self._is_ready(client):
                self._raise_if_ended()
                if time.monotonic() > self._deadline:
                    tail = self._process.log_tail()
                    wait = f"waited {self._seconds:g} s for {self._missing}"
                    message = f"engine {self._label} is not ready: {wait}{last_words(tail)}"
                    raise StartTimeoutError(message, tail)
                time.sleep(POLL_SECONDS)

    @property
    def _label(self) -> str:
        return self._server.config.label

    def _is_ready(self, client: httpx.Client) -> bool:
        try:
            if client.get(f"{self._server.url}/health").status_code != httpx.codes.OK:
                self._missing = "status 200 from /health"
                return False
            self._check_listener()
            self._check_model(client)
            self._missing = "the first completion"
            return self._completes(client)
        except httpx.ReadTimeout:
            self._check_listener()  # who took the connection and is silent may be somebody else
            return False
        except httpx.HTTPError:
            return False

    def _check_listener(self) -> None:
        """Check that processes of ours, and nobody beside them, listen on the port.

        Servers that ask for SO_REUSEPORT, as vLLM does, can share a port: each gets some of the connections.
        """
        port = self._site.port
        listening = listeners(self._site.host, port)
        ours = {process.pid for process in self._process.tree()}
        others = [pid for pid in listening if pid not in ours]
        if listening and not others:
            return
        self._raise_if_ended()
        who = ", ".join("of another user" if pid is None else str(pid) for pid in others) or "unknown"
        beside = "none of its processes listens" if len(others) == len(listening) else "others listen too"
        message = (
            f"something that is not engine {self._label} answers on port {port}: {beside} there (process "
            f"{who}); end the other server or lease another port"
        )
        raise WrongServerError(message, self._process.log_tail())

    def _check_model(self, client: httpx.Client) -> None:
        answer = client.get(f"{self._server.url}/v1/models").raise_for_status()
        try:
            names = [str(model["id"]) for model in answer.json()["data"]]
        except (ValueError, LookupError, TypeError):
            names = []
        wanted = self._server.config.model.name
        if wanted not in names:
            message = f"the server on port {self._site.port} serves {names}, not {wanted!r}"
            raise WrongServerError(message, self._process.log_tail())

    def _completes(self, client: httpx.Client) -> bool:
        """Ask for a few tokens. Some engines come up and die, or compile, on their first request."""
        body = {
            "model": self._server.config.model.name,
            "prompt": "Ready?",
            "max_tokens": PROBE_TOKENS,
            "temperature": 0,
        }
        patience = max(1.0, self._deadline - time.monotonic())
        answer = client.post(f"{self._server.url}/v1/completions", json=body, timeout=patience)
        if answer.is_client_error:
            message = f"engine {self._label} refused its first completion: {answer.text[:500]}"
            raise EngineStartError(message, self._process.log_tail())
        return answer.is_success

    def _raise_if_ended(self) -> None:
        code = self._process.returncode()
        if code is None:
            return
        tail = self._process.log_tail()
        cause = self._engine.classify(tail, code)
        message = f"engine {self._label} ended during start ({_ending(code)}, {cause}){last_words(tail)}"
        raise START_ERRORS.get(cause, EngineStartError)(message, tail)


def _healthy(client: httpx.Client, url: str) -> bool:
    try:
        return client.get(f"{url}/health").status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
