"""A server that does nothing but stream: what the load process is measured against.

Run as `python -m jobs.replay.null_server INTERVAL FIRST TOKENS TRUTH`. It answers each completion request
with a chunk of TOKENS tokens every INTERVAL seconds, the first one FIRST seconds after the request arrived,
in the form in which vLLM streams (continuous usage, HTTP chunked encoding). It has no model: text and timing
are made up.

It prints its port. When its standard input closes it writes what really happened to the file TRUTH (`-` for
none) and ends. The truth is an array of 64-bit integers, for each request: the prompt's first token id, when
the request had arrived, how many chunks follow, and when each was handed to the socket; times are nanoseconds
of CLOCK_MONOTONIC, which the load process on the same machine uses too.
"""

import asyncio
import gc
import os
import re
import sys
import time
from array import array
from collections import deque
from functools import lru_cache
from pathlib import Path
from typing import cast

import msgspec
import uvloop

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_MAX_TOKENS = re.compile(rb'"max_tokens": *(\d+)')
_PROMPT = re.compile(rb'"prompt": *\[([\d, ]*)\]')
_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
)
_LIST = b'{"object":"list","data":[{"id":"null","object":"model"}]}'
_MODELS = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
    len(_LIST),
    _LIST,
)


class _Stream:
    """One answer being streamed."""

    __slots__ = ("chunks", "due", "key", "next", "received", "sent", "transport")

    def __init__(
        self, transport: asyncio.Transport, chunks: tuple[bytes, ...], key: int, received: int, due: int
    ) -> None:
        self.transport = transport
        self.chunks = chunks
        self.key = key
        self.received = received
        self.due = due
        self.next = 0
        self.sent = array("q")


class NullServer:
    """Paces all streams from one queue: they share one interval, so it is in order of time by itself."""

    def __init__(self, *, interval: float, first: float, tokens: int) -> None:
        self._interval = int(interval * 1e9)
        self._first = int(first * 1e9)
        self._tokens = tokens
        self._queue: deque[_Stream] = deque()
        self._starting: deque[_Stream] = deque()
        self._armed = False
        self._arrived: list[tuple[_Client, bytes, int]] = []
        self.done: list[_Stream] = []
        """Streams that are over."""

    def protocol(self) -> "_Client":
        """Return the protocol of a new connection."""
        return _Client(self)

    def arrive(self, client: "_Client", data: bytes, now: int) -> None:
        """Keep what a client sent until everything that waits in the sockets is read.

        Arrivals are stamped by this alone: a burst of requests waits for no other one's answer.
        """
        if not self._arrived:
            asyncio.get_running_loop().call_soon(self._take_arrived)
        self._arrived.append((client, data, now))

    def _take_arrived(self) -> None:
        arrived, self._arrived = self._arrived, []
        for client, data, now in arrived:
            client.take(data, now)

    def begin(self, transport: asyncio.Transport, body: bytes, received: int) -> None:
        """Answer a request that had arrived whole at `received` (ns)."""
        match = _PROMPT.search(body)
        prompt = match.group(1).split(b",") if match else []
        limit = _MAX_TOKENS.search(body)
        chunks = _chunks(len(prompt), int(limit.group(1)) if limit else 16, self._tokens)
        key = int(prompt[0]) if prompt else -1
        transport.write(_HEAD)
        self._starting.append(_Stream(transport, chunks, key, received, received + self._first))
        self._arm()

    def truth(self) -> bytes:
        """Return what happened."""
        flat = array("q")
        for stream in self.done:
            flat.extend((stream.key, stream.received, len(stream.sent)))
            flat.extend(stream.sent)
        return flat.tobytes()

    def _arm(self) -> None:
        """Wake when the next chunk is due."""
        if self._armed:
            return
        dues = [queue[0].due for queue in (self._queue, self._starting) if queue]
        if dues:
            self._armed = True
            delay = max(0, min(dues) - time.monotonic_ns()) / 1e9
            asyncio.get_running_loop().call_later(delay, self._send_due)

    def _send_due(self) -> None:
        now = time.monotonic_ns()
        for queue in (self._starting, self._queue):
            while queue and queue[0].due <= now:
                self._send(queue.popleft())
        self._armed = False
        self._arm()

    def _send(self, stream: _Stream) -> None:
        if stream.transport.is_closing():
            self.done.append(stream)
            return
        stream.transport.write(stream.chunks[stream.next])
        stream.sent.append(time.monotonic_ns())
        stream.next += 1
        if stream.next == len(stream.chunks):
            self.done.append(stream)
        else:
            stream.due += self._interval
            self._queue.append(stream)


class _Client(asyncio.Protocol):
    """One connection: whole requests in, streams out."""

    def __init__(self, server: NullServer) -> None:
        self._server = server
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Stamp what arrives."""
        self._server.arrive(self, data, time.monotonic_ns())

    def take(self, data: bytes, now: int) -> None:
        """Answer every request that is complete; its last byte arrived at `now` (ns)."""
        self._buffer += data
        assert self._transport is not None
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            match = _LENGTH.search(self._buffer, 0, end)
            size = end + 4 + (int(match.group(1)) if match else 0)
            if len(self._buffer) < size:
                return
            request, self._buffer = self._buffer[:size], self._buffer[size:]
            if request.startswith(b"POST"):
                self._server.begin(self._transport, request[end + 4 :], now)
            else:
                self._transport.write(_MODELS)


@lru_cache(maxsize=64)
def _chunks(prompt: int, limit: int, tokens: int) -> tuple[bytes, ...]:
    """Return the HTTP chunks of an answer: one a step; usage and the stream's end go with the last one."""
    counts = [*range(tokens, limit, tokens), limit]
    chunks = []
    for count in counts:
        choice = {
            "index": 0,
            "text": " word",
            "logprobs": None,
            "finish_reason": "length" if count == limit else None,
            "stop_reason": None,
            "prompt_token_ids": None,
            "token_ids": None,
        }
        chunks.append(_event(_completion([choice], prompt, count)))
    chunks[-1] += _event(_completion([], prompt, limit)) + _event(b"[DONE]") + b"0\r\n\r\n"
    return tuple(chunks)


def _completion(choices: list[dict[str, object]], prompt: int, completion: int) -> bytes:
    usage = {
        "prompt_tokens": prompt,
        "total_tokens": prompt + completion,
        "completion_tokens": completion,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
    return msgspec.json.encode(
        {
            "id": "cmpl-0123456789abcdef0123456789abcdef-0",
            "object": "text_completion",
            "created": 1_700_000_000,
            "model": "null",
            "choices": choices,
            "usage": usage,
        }
    )


def _event(data: bytes) -> bytes:
    event = b"data: %b\n\n" % data
    return b"%x\r\n%b\r\n" % (len(event), event)


async def _serve(server: NullServer) -> None:
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(server.protocol, "127.0.0.1", 0, backlog=4096)
    closed = loop.create_future()

    def listen() -> None:
        if not os.read(sys.stdin.fileno(), 64) and not closed.done():
            closed.set_result(None)

    loop.add_reader(sys.stdin.fileno(), listen)
    os.write(sys.stdout.fileno(), f"{listener.sockets[0].getsockname()[1]}\n".encode())
    await closed
    loop.remove_reader(sys.stdin.fileno())
    listener.close()


def main() -> None:
    """Serve until standard input closes."""
    interval, first, tokens, truth = sys.argv[1:]
    server = NullServer(interval=float(interval), first=float(first), tokens=int(tokens))
    gc.disable()  # a collection would be a gap in every stream
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(server))
    if truth != "-":
        Path(truth).write_bytes(server.truth())


if __name__ == "__main__":
    main()
