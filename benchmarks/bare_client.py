"""The least a client can do: uvloop and httptools, a time a chunk, nothing parsed and nothing checked.

A yardstick for the machine, run as the peer of the client's benchmark:

    python benchmarks/client_cost.py --peer 'python benchmarks/bare_client.py {url} {streams} {chunks}'
"""

import asyncio
import gc
import json
import sys
import time
from typing import cast
from urllib.parse import urlsplit

import httptools
import uvloop


class Stream(asyncio.Protocol):
    """One connection with one answer."""

    def __init__(self, ended: "asyncio.Queue[None]") -> None:
        self.times: list[int] = []
        self._ended = ended
        self._now = 0
        self._parser = httptools.HttpResponseParser(self)
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass of it

    def data_received(self, data: bytes) -> None:
        """Stamp, and cut into chunks."""
        self._now = time.monotonic_ns()
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:  # noqa: ARG002  what the parser calls
        """Keep the time."""
        self.times.append(self._now)

    def on_message_complete(self) -> None:
        """Tell that it is over."""
        self._ended.put_nowait(None)


async def pour(url: str, streams: int, chunks: int) -> None:
    """Ask for all streams at once and wait for their ends."""
    server = urlsplit(url)
    assert server.hostname is not None
    assert server.port is not None
    host, port = server.hostname, server.port
    ended: asyncio.Queue[None] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    links = [(await loop.create_connection(lambda: Stream(ended), host, port))[1] for _ in range(streams)]
    gc.disable()
    for number, link in enumerate(links):
        body = json.dumps({"prompt": [number, 1, 2], "max_tokens": chunks}).encode()
        assert link.transport is not None
        link.transport.write(
            b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b"
            % (len(body), body)
        )
    for _ in links:
        await ended.get()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(pour(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
