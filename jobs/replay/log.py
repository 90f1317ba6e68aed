"""What a load process writes: a JSON line a request and 16 bytes a chunk, each when its request ends.

So the memory of a replay is that of the requests in flight, however long it runs.
"""

from array import array
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from jobs.replay.answer import Answer
from jobs.replay.files import CHUNKS_FILE, REQUESTS_FILE
from jobs.replay.job import RequestRecord

_BUFFER = 1 << 20
"""Bytes gathered before a write: a replay makes few system calls of its own."""


class ReplayLog:
    """Writes the records of ended requests into a folder, and keeps the sums over them."""

    def __init__(self, directory: Path) -> None:
        self.requests = 0
        """Requests that ended."""
        self.errors = 0
        self.started: int | None = None
        """First dispatch, ns."""
        self.ended: int | None = None
        """Last end, ns."""
        self.spoke: dict[int, int] = {}
        """Replica -> its last token in an ended answer, ns."""
        self.send_lags = array("q")
        """Send lag of each request that left, ns."""
        self._requests_file = (directory / REQUESTS_FILE).open("wb", buffering=_BUFFER)
        self._chunks_file = (directory / CHUNKS_FILE).open("wb", buffering=_BUFFER)
        self._encoder = msgspec.json.Encoder()
        self._begun = 0
        self._chunks = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._requests_file.close()
        self._chunks_file.close()

    def begin(self) -> int:
        """Return the number of the request that is about to be sent."""
        self._begun += 1
        return self._begun - 1

    def end(
        self,
        index: int,
        answer: Answer,
        *,
        scheduled: int,
        conversation: str,
        epoch: int,
        turn: int,
        user: int,
        replica: int,
        rank: int | None,
        expected_prompt_tokens: int,
    ) -> None:
        """Record an ended request and its chunks."""
        reader = answer.reader
        count = len(reader.times)
        record = RequestRecord(
            conversation=conversation,
            epoch=epoch,
            turn=turn,
            user=user,
            replica=replica,
            scheduled=scheduled,
            dispatched=answer.dispatched,
            send_lag=answer.send_lag,
            first=reader.times[0] if count else None,
            last=reader.times[-1] if count else None,
            ended=answer.ended,
            prompt_tokens=reader.prompt_tokens,
            cached_tokens=reader.cached_tokens,
            completion_tokens=reader.completion_tokens,
            first_tokens=reader.counts[0] if count else 0,
            expected_prompt_tokens=expected_prompt_tokens,
            expected_tokens=answer.expected,
            chunks=count,
            chunk_offset=self._chunks,
            finish_reason=reader.finish_reason,
            error=reader.error,
            error_detail=reader.error_detail,
            speculation=reader.speculation,
            rank=rank,
        )
        self._requests_file.write(self._encoder.encode(record) + b"\n")
        self._chunks_file.write(_packed(reader.times, reader.counts, index))
        self._chunks += count
        self._tally(record)

    def _tally(self, record: RequestRecord) -> None:
        self.requests += 1
        self.errors += record.error is not None
        if record.last is not None:
            self.spoke[record.replica] = max(record.last, self.spoke.get(record.replica, 0))
        self.started = record.dispatched if self.started is None else min(self.started, record.dispatched)
        self.ended = record.ended if self.ended is None else max(self.ended, record.ended)
        if record.send_lag is not None:
            self.send_lags.append(record.send_lag)


def _packed(times: "array[int]", counts: "array[int]", index: int) -> bytes:
    """Return the records `time (8 bytes), tokens (4), request (4)`, little-endian."""
    high = index << 32
    flat = array("q", bytes(16 * len(times)))
    flat[0::2] = times
    flat[1::2] = array("q", [count + high for count in counts])
    return flat.tobytes()
