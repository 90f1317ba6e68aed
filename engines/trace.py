"""Reading a Chrome trace as torch's profiler writes it: event by event, with the standard library alone.

Such a file is one JSON object whose `traceEvents` can be hundreds of megabytes of text. The events are
decoded one at a time from a sliding piece of it, so memory holds one piece and what the caller keeps.
"""

import gzip
import io
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from engines.errors import EngineError

_PIECE = 1 << 18
"""Characters read at a time."""
_BETWEEN = " \t\r\n,"
_KEY = '"traceEvents"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One finished piece of work in a trace. Times are microseconds."""

    name: str
    category: str
    """`user_annotation`, `cpu_op`, `kernel`, `cuda_runtime`, `gpu_memcpy`, ..."""
    process: int | str
    thread: int | str
    """Thread of the host, or stream of a device."""
    start: float
    duration: float
    correlation: int | None = None
    """Number that a launch on the host shares with the kernels it launched."""

    @property
    def end(self) -> float:
        """When it was over."""
        return self.start + self.duration


def read_events(path: Path) -> Iterator[Event]:
    """Yield every complete event (phase `X`) of the trace, in the file's order.

    Raises:
        EngineError: it cannot be read, or is cut off or damaged.
    """
    try:
        with _opened(path) as text:
            for raw in _objects(text):
                if raw.get("ph") == "X" and "dur" in raw:
                    yield _event(raw)
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
        message = f"trace {path} cannot be read: {error or type(error).__name__}"
        raise EngineError(message) from error


def _opened(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return io.TextIOWrapper(gzip.open(path, "rb"), encoding="utf-8")
    return path.open(encoding="utf-8")


def _objects(text: TextIO) -> Iterator[dict[str, Any]]:
    """Yield the objects of the list `traceEvents`."""
    decode = json.JSONDecoder().raw_decode
    piece = _after_key(text)
    at = 0
    while True:
        while at < len(piece) and piece[at] in _BETWEEN:
            at += 1
        if at < len(piece) and piece[at] == "]":
            return
        try:
            found, at = decode(piece, at)
        except ValueError:
            more = text.read(_PIECE)
            if not more:
                message = "the list of events is cut off"
                raise ValueError(message) from None
            piece, at = piece[at:] + more, 0
        else:
            yield found


def _after_key(text: TextIO) -> str:
    """Return what was read after the bracket that opens the list of events."""
    piece = ""
    while True:
        more = text.read(_PIECE)
        piece += more
        key = piece.find(_KEY)
        bracket = piece.find("[", key) if key >= 0 else -1
        if bracket >= 0:
            return piece[bracket + 1 :]
        if not more:
            message = "it has no list of traceEvents"
            raise ValueError(message)


def _event(raw: dict[str, Any]) -> Event:
    correlation = raw.get("args", {}).get("correlation")
    return Event(
        name=str(raw["name"]),
        category=str(raw.get("cat", "")),
        process=raw.get("pid", 0),
        thread=raw.get("tid", 0),
        start=float(raw["ts"]),
        duration=float(raw["dur"]),
        correlation=int(correlation) if correlation is not None else None,
    )
