"""One request in flight: from the bytes of its response to a judged answer."""

import asyncio

from jobs.replay.sse import EventSplitter
from jobs.replay.stream import StreamReader

BODY_LIMIT = 65536
"""Bytes kept of a response that is no event stream."""
_DONE_LINES = (b"data: [DONE]", b"data:[DONE]")


class Answer:
    """The response to one request; `finished` resolves when it is over, whichever way."""

    __slots__ = (
        "_body",
        "_splitter",
        "_status",
        "decided",
        "dispatched",
        "ended",
        "expected",
        "finished",
        "heard",
        "reader",
        "sent",
        "streaming",
    )

    def __init__(self, expected_tokens: int, now: int) -> None:
        self.expected = expected_tokens
        self.reader = StreamReader()
        self.decided = now
        """The decision to send (ns)."""
        self.dispatched = now
        """The request's last byte was handed to the socket; until then the time it was begun (ns)."""
        self.sent = False
        """Whether the request has left."""
        self.heard = now
        """Last sign of life of the connection (ns)."""
        self.ended = now
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._splitter = EventSplitter()
        self._status = 0
        self.streaming = False
        """Whether the response is an event stream."""
        self._body = b""

    @property
    def send_lag(self) -> int | None:
        """Nanoseconds from the decision to send to the last byte handed over; None if it never left."""
        return self.dispatched - self.decided if self.sent else None

    def left(self, now: int) -> None:
        """Note that the request's last byte was handed to the socket at `now` (ns)."""
        self.sent = True
        self.dispatched = self.heard = now

    def take_head(self, status: int, content_type: str) -> None:
        """Take status and content type of the response."""
        self._status = status
        self.streaming = status == 200 and content_type.startswith("text/event-stream")

    def take_body(self, data: bytes) -> None:
        """Take a piece of the response's body, which arrived when the connection was last `heard`."""
        if self.streaming:
            for payload in self._splitter.feed(data):
                self.reader.feed(payload, self.heard)
        elif len(self._body) < BODY_LIMIT:
            self._body += data

    def take_event(self, payload: bytes, now: int) -> None:
        """Take one whole event of the stream, which arrived at `now` (ns), while `between_events`."""
        self.heard = now
        self.reader.feed(payload, now)

    @property
    def between_events(self) -> bool:
        """Whether the stream stands between two events, so that a whole one can come."""
        return self.streaming and self._splitter.is_empty

    def complete(self, now: int) -> None:
        """Judge a response that came to its end."""
        if self.streaming:
            self._end_stream()
        else:
            body = self._body.decode(errors="replace").strip()
            cause = "error_body" if self._status == 200 else f"http_{self._status}"
            self.reader.fail(cause, body or "(empty body)")
        self._finish(now)

    def _end_stream(self) -> None:
        """Look at what came after the last whole event."""
        rest = self._splitter.rest.strip()
        if rest in _DONE_LINES:
            self.reader.done = True  # some servers forget the empty line at the very end
        elif rest.startswith(b"{"):
            self.reader.fail("error_body", rest.decode(errors="replace"))
        elif rest:
            self.reader.fail("cut", f"the stream ended inside an event: {rest.decode(errors='replace')}")

    def break_off(self, error: str, detail: str, now: int) -> None:
        """End an answer that will not come to its end."""
        if not self.finished.done():
            self.reader.fail(error, detail)
            self._finish(now)

    def _finish(self, now: int) -> None:
        self.ended = now
        self.reader.settle(self.expected)
        if not self.finished.done():
            self.finished.set_result(None)
