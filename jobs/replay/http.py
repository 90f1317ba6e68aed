"""Keep-alive HTTP/1.1 connections that carry one streamed answer at a time."""

import asyncio
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import cast
from urllib.parse import urlsplit

import httptools

from jobs.replay.answer import Answer
from jobs.replay.chunked import whole_event
from jobs.replay.inbox import Inbox

_now = time.monotonic_ns
_POLL_SECONDS = 0.001
_BATCH = 32
"""Arrivals of one stream that are taken in together."""
_BLANK_LINE = b"\r\n\r\n"
"""How a response in chunked encoding ends: a next request may depend on it, so it is taken in at once."""
_LINE_END = b"\r\n"
_SHORT = 3
"""Bytes of a piece that may be the end of such a blank line, and is taken in at once for it."""


class Connection:
    """One user's way to one replica: a TCP connection, and the next one when the server closed it."""

    def __init__(
        self,
        url: str,
        *,
        inbox: Inbox,
        ca_file: str | None = None,
        headers: Mapping[str, str] | None = None,
        rank_header: str | None = None,
    ) -> None:
        self.url = url
        """Base URL of the replica."""
        self._rank_header = rank_header
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            message = f"replica URL {url!r}: the load process speaks http://HOST:PORT and https://HOST:PORT"
            raise ValueError(message)
        secure = parts.scheme == "https"
        self._tls = _tls(ca_file) if secure else None
        self._host = parts.hostname
        self._port = parts.port or (443 if secure else 80)
        own = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        self._head = (
            f"POST {parts.path.rstrip('/')}/v1/completions HTTP/1.1\r\nHost: {parts.netloc}\r\n{own}"
            "Content-Type: application/json\r\nContent-Length: "
        )
        self._inbox = inbox
        self._link: _Link | None = None

    @property
    def answer(self) -> Answer | None:
        """The answer in flight; what has been read of it is not all taken in."""
        return self._link.answer if self._link is not None else None

    def take_in(self) -> None:
        """Take in what has been read of the answer; it may be over then."""
        if self._link is not None:
            self._link.take_in()

    async def open(self) -> None:
        """Connect if there is no connection.

        Raises:
            OSError: nobody listens, or no route.
        """
        if self._link is None or not self._link.usable:
            loop = asyncio.get_running_loop()
            _, link = await loop.create_connection(lambda: _Link(self._inbox), self._host, self._port)
            if self._tls is not None:
                await link.secure(self._tls, self._host)
            self._link = link

    def send(self, body: bytes, answer: Answer, *, rank: int | None = None) -> None:
        """Post `body` on the open connection, to a data-parallel rank; the response goes to `answer`."""
        assert self._link is not None
        pinned = "" if rank is None else f"{self._rank_header}: {rank}\r\n"
        self._link.send(f"{self._head}{len(body)}\r\n{pinned}\r\n".encode() + body, answer)

    def abort(self) -> None:
        """Close at once, throwing away what is in flight."""
        if self._link is not None:
            self._link.abort()
            self._link = None


class _Link(asyncio.Protocol):
    """One TCP connection."""

    __slots__ = (
        "_arrivals",
        "_between",
        "_chunk_ended",
        "_chunked",
        "_content_type",
        "_due",
        "_inbox",
        "_parser",
        "_patient",
        "_times",
        "_transport",
        "_until_close",
        "_wire",
        "answer",
        "on_body",
    )

    def __init__(self, inbox: Inbox) -> None:
        self.answer: Answer | None = None
        self._inbox = inbox
        self._arrivals: list[bytes] = []
        """What has been read and not been taken in."""
        self._times: list[int] = []
        """When each of them was read, ns."""
        self._due = False
        """Whether the inbox knows of them."""
        self._patient = False
        """Whether they can wait for others: only those of an event stream, whose end shows unparsed."""
        self._chunk_ended = False
        """Whether the last that the parser told of was the end of a chunk."""
        self._between = False
        """Whether a chunk with a whole event can come: parser and answer stand between two of theirs."""
        self._transport: asyncio.Transport | None = None
        self._wire: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._content_type = ""
        self._chunked = False
        self._until_close = True
        self.on_body: Callable[[bytes], None] | None = None
        """Where the parser takes a piece of a body to."""

    @property
    def usable(self) -> bool:
        """Whether another request can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    async def secure(self, context: ssl.SSLContext, host: str) -> None:
        """Speak TLS from now on.

        Raises:
            OSError: the handshake failed, or the certificate is not to be trusted.
        """
        assert self._wire is not None
        loop = asyncio.get_running_loop()
        self._transport = await loop.start_tls(self._wire, self, context, server_hostname=host)

    def send(self, request: bytes, answer: Answer) -> None:
        """Write a request and give what comes back to `answer`."""
        assert self._transport is not None
        assert self.answer is None, "one answer at a time"
        self.answer = answer
        # The parser looks its callbacks up once: a chunk goes to the answer without a step between.
        self.on_body = answer.take_body
        self._patient = self._between = False
        self._parser = httptools.HttpResponseParser(self)
        self._transport.write(request)
        self._stamp_dispatch()
        if self._transport is not self._wire and not answer.sent:
            self._poll_dispatch(answer)

    def abort(self) -> None:
        """Close at once."""
        self.answer = None
        if self._transport is not None:
            self._transport.abort()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = self._wire = cast("asyncio.Transport", transport)
        # No buffer of ours: a write goes to the socket at once; `resume_writing` says when the rest has gone.
        self._transport.set_write_buffer_limits(high=0)
        # The kernel would acknowledge each chunk by a packet of its own until a request follows an answer
        # closely; this asks for every second one from the start: a third of the cost of a chunk.
        wire = self._transport.get_extra_info("socket")
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)

    def resume_writing(self) -> None:
        """Note that a large request has left."""
        self._stamp_dispatch()

    def data_received(self, data: bytes) -> None:
        """Stamp the arrival; parse it later."""
        self._times.append(_now())
        arrivals = self._arrivals
        arrivals.append(data)
        if self._patient and len(arrivals) < _BATCH and len(data) > _SHORT and not data.endswith(_BLANK_LINE):
            return
        if not self._due:
            self._due = True
            self._inbox.put(self)

    def take_in(self) -> None:
        """Parse what has been read."""
        arrivals, times = self._arrivals, self._times
        self._arrivals, self._times, self._due = [], [], False
        for data, now in zip(arrivals, times, strict=True):
            # The parser need not see such a chunk: after it, it stands where it stood before.
            payload = whole_event(data) if self._between else None
            if payload is None:
                self._take(data, now)
            elif self.answer is not None:
                self.answer.take_event(payload, now)

    def _take(self, data: bytes, now: int) -> None:
        answer = self.answer
        if answer is None or self._parser is None:
            self.abort()  # bytes that nobody asked for: the connection cannot be trusted any more
            return
        answer.heard = now
        self._chunk_ended = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.abort()
            answer.break_off("bad_http", str(error), now)
        # After the end of a chunk may come a part of the size of the next, which the parser says nothing of.
        ended = self._chunk_ended and self._patient and data.endswith(_LINE_END)
        self._between = ended and self.answer is answer and answer.between_events

    def connection_lost(self, exc: Exception | None) -> None:
        """Judge the answer in flight, if there is one."""
        self.take_in()  # the answer may have ended with the last that was read
        answer, self.answer = self.answer, None
        # The parser refers to this link: with the collector off, a closed connection would stay for ever.
        self._parser = None
        if answer is None:
            return
        now = time.monotonic_ns()
        if exc is None and self._content_type and self._until_close:
            answer.complete(now)  # a response without length ends with its connection
            return
        when = "after" if answer.reader.times else "before"
        answer.break_off(
            "cut", f"the connection was closed {when} the first token ({exc or 'end of file'})", now
        )

    # What the parser calls.

    def on_message_begin(self) -> None:
        """Forget the headers of the response before."""
        self._content_type = ""
        self._chunked = False
        self._until_close = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep the headers that matter."""
        name = name.lower()
        if name == b"content-type":
            self._content_type = value.decode("latin-1").strip().lower()
        elif name == b"content-length":
            self._until_close = False
        elif name == b"transfer-encoding":
            self._until_close = False
            self._chunked = value.strip().lower() == b"chunked"

    def on_headers_complete(self) -> None:
        """Hand over the head."""
        if self.answer is not None and self._parser is not None:
            self.answer.take_head(self._parser.get_status_code(), self._content_type)
            self._patient = self._chunked and self.answer.streaming

    def on_chunk_header(self) -> None:
        """Note that a chunk begins."""
        self._chunk_ended = False

    def on_chunk_complete(self) -> None:
        """Note that a chunk has ended."""
        self._chunk_ended = True

    def on_message_complete(self) -> None:
        """Free the connection for the next request, then finish the answer."""
        if self._parser is not None and self._parser.get_status_code() < 200:
            return  # an interim response: the real one follows
        answer, self.answer = self.answer, None
        if self._parser is not None and not self._parser.should_keep_alive() and self._transport is not None:
            self._transport.close()
        if answer is not None:
            answer.complete(answer.heard)

    def _stamp_dispatch(self) -> None:
        """Note that the request has left, if the wire has taken all of it."""
        answer, wire = self.answer, self._wire
        if answer is not None and not answer.sent and wire is not None and not wire.get_write_buffer_size():
            answer.left(time.monotonic_ns())

    def _poll_dispatch(self, answer: Answer) -> None:
        """Look again and again: a TLS transport does not say when the wire below it has taken everything."""
        if self.answer is answer and not answer.sent:
            self._stamp_dispatch()
            asyncio.get_running_loop().call_later(_POLL_SECONDS, self._poll_dispatch, answer)


@lru_cache(maxsize=1)
def _tls(ca_file: str | None) -> ssl.SSLContext:
    """Return what all connections check certificates with: the system's authorities, or those of a file."""
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        message = f"CA file {ca_file}: {error}; it has to be a PEM file with the authority's certificate"
        raise ValueError(message) from error
