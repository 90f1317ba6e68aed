"""Server-sent events: from bytes, cut anywhere, to the payloads of whole events."""


class EventSplitter:
    """Cuts a byte stream into events and returns the `data` of each.

    Works on bytes, so a character or a JSON text that the network cut in two stays whole, and U+2028, which
    JSON allows inside strings, ends no line. Comments, and fields other than `data`, are dropped.
    """

    __slots__ = ("_after_cr", "_buffer", "_searched")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self._after_cr = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the payloads of the events that `data` completes."""
        if self._after_cr and data[:1] == b"\n":
            data = data[1:]
            self._after_cr = False
        if b"\r" in data:
            # CR and CRLF end lines too. JSON escapes them, so none is part of a payload.
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        elif data:
            self._after_cr = False
        buffer = self._buffer
        buffer += data
        payloads: list[bytes] = []
        begin = 0
        end = buffer.find(b"\n\n", self._searched)
        while end >= 0:
            payload = _payload(bytes(buffer[begin:end]))
            if payload is not None:
                payloads.append(payload)
            begin = end + 2
            end = buffer.find(b"\n\n", begin)
        if begin:
            del buffer[:begin]
        # The next search starts where it has not looked yet: a long event costs no second reading.
        self._searched = max(0, len(buffer) - 1)
        return payloads

    @property
    def is_empty(self) -> bool:
        """Whether it stands between two events, so that a new one can take its place."""
        return not self._buffer and not self._after_cr

    @property
    def rest(self) -> bytes:
        """Bytes of an event that is not complete."""
        return bytes(self._buffer)


def _payload(event: bytes) -> bytes | None:
    if event.startswith(b"data: ") and b"\n" not in event:
        return event[6:]
    lines = [_value(line) for line in event.split(b"\n") if line.startswith(b"data:")]
    return b"\n".join(lines) if lines else None


def _value(line: bytes) -> bytes:
    return line[6:] if line.startswith(b"data: ") else line[5:]
