"""A fixed number of requests held in decode, for as long as a step is looked at.

The answers are streamed, as a replay's are, so the server does its usual work; nobody reads them, so the
client does none. They fit into the sockets' buffers for far longer than a look takes.
"""

import http.client
import select
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import msgspec

from engines.base import Engine, Server
from engines.digest import seed_of
from engines.headers import header_values
from jobs.errors import ProfileError

CONNECT_SECONDS = 10.0
RANK_HEADER = "X-data-parallel-rank"
"""Pins a request to a data-parallel rank; requests that come at once would not be spread evenly otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What is held: so many requests on one server."""

    engine: Engine
    server: Server
    prompts: Sequence[Sequence[int]]
    """Token ids of each request's prompt; their number is the concurrency."""
    max_tokens: int
    """Most tokens of an answer: more than a look takes."""
    seed: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    """Extra JSON fields of every request."""


class Hold:
    """Requests in flight inside the `with`; at its end they are given up."""

    def __init__(self, holding: Holding) -> None:
        self._holding = holding
        self._connections: list[http.client.HTTPConnection] = []

    def __enter__(self) -> Self:
        server = self._holding.server
        path = f"{urlsplit(server.url).path}/v1/completions"
        headers = {"Content-Type": "application/json", **header_values(server.header_variables)}
        ranks = server.config.layout.dp
        try:
            for number, prompt in enumerate(self._holding.prompts):
                connection = _connection(server)
                self._connections.append(connection)
                rank = {RANK_HEADER: str(number % ranks)} if ranks > 1 else {}
                connection.request("POST", path, self._body(number, prompt), headers | rank)
        except OSError as error:
            self._close()
            message = f"{self._holding.server.url} took no request: {error}"
            raise ProfileError(message) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def check(self) -> None:
        """Look at what has come back so far.

        Raises:
            ProfileError: a request was refused or its connection was cut.
        """
        waiting = {connection.sock: connection for connection in self._connections if connection.sock}
        answered, _, _ = select.select(list(waiting), [], [], 0)
        for sock in answered:
            connection = waiting[sock]
            try:
                answer = connection.getresponse()
                said = None if answer.status == http.client.OK else answer.read(500).decode(errors="replace")
            except http.client.ResponseNotReady:
                continue  # its head was read before
            except (OSError, http.client.HTTPException) as error:
                message = f"{self._holding.server.url} cut a request that was held in decode: {error}"
                raise ProfileError(message) from error
            if said is not None:
                message = f"{self._holding.server.url} refused a request with {answer.status}: {said.strip()}"
                raise ProfileError(message)

    def _body(self, number: int, prompt: Sequence[int]) -> bytes:
        holding = self._holding
        return msgspec.json.encode(
            {
                "model": holding.server.config.model.name,
                "prompt": list(prompt),
                "max_tokens": holding.max_tokens,
                "stream": True,
                "stream_options": {"include_usage": True, "continuous_usage_stats": True},
                "seed": seed_of(holding.seed, "profile", number),
                **holding.engine.capabilities.request_options,
                **holding.options,
            }
        )

    def _close(self) -> None:
        for connection in self._connections:
            connection.close()
        self._connections.clear()


def _connection(server: Server) -> http.client.HTTPConnection:
    place = urlsplit(server.url)
    if place.scheme == "https":
        context = ssl.create_default_context(cafile=server.ca_file)
        return http.client.HTTPSConnection(place.netloc, timeout=CONNECT_SECONDS, context=context)
    return http.client.HTTPConnection(place.netloc, timeout=CONNECT_SECONDS)
