"""What a replay writes: one record a request, one 16-byte record a chunk."""

import struct
from pathlib import Path
from typing import BinaryIO

import msgspec

from jobs.replay.answer import Answer
from jobs.replay.files import REQUESTS_FILE
from jobs.replay.job import RequestRecord


class ReplayLog:
    """Collects the records of ended requests; chunks go to their file as each request ends."""

    def __init__(self, chunks: BinaryIO) -> None:
        self._chunks = chunks
        self._written = 0
        self._records: list[RequestRecord | None] = []

    def begin(self) -> int:
        """Return the index of the request that is about to be sent."""
        self._records.append(None)
        return len(self._records) - 1

    def end(
        self,
        index: int,
        answer: Answer,
        *,
        conversation: str,
        epoch: int,
        turn: int,
        user: int,
        replica: int,
        expected_prompt_tokens: int,
    ) -> None:
        """Record an ended request and its chunks."""
        reader = answer.reader
        count = len(reader.times)
        flat = [value for pair in zip(reader.times, reader.counts, strict=True) for value in (*pair, index)]
        self._chunks.write(struct.pack("<" + "qii" * count, *flat))
        self._records[index] = RequestRecord(
            conversation=conversation,
            epoch=epoch,
            turn=turn,
            user=user,
            replica=replica,
            dispatched=answer.dispatched,
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
            chunk_offset=self._written,
            finish_reason=reader.finish_reason,
            error=reader.error,
            error_detail=reader.error_detail,
        )
        self._written += count

    @property
    def records(self) -> list[RequestRecord]:
        """Records of ended requests in the order they were sent."""
        return [record for record in self._records if record is not None]

    def write(self, directory: Path) -> None:
        """Write the request records as JSON Lines."""
        (directory / REQUESTS_FILE).write_bytes(msgspec.json.Encoder().encode_lines(self.records))
