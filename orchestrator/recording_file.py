"""The file of a recording while it is written: appended conversation by conversation, and gone on with."""

import fcntl
import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import msgspec

from jobs.errors import WorkloadError
from jobs.nouns import counted
from jobs.workload.json_file import parse
from jobs.workload.recorded import (
    Recording,
    RecordingHeader,
    header_path,
    line_of,
    read_header,
    recording_of,
)
from orchestrator.errors import ConfigError, RecordingError


class RecordingFile:
    """A recording and its header; one writer at a time.

    What was appended stays, whatever happens next. The order of the workload and the digest come at the end,
    so the same replies make the same file however often it was interrupted.
    """

    def __init__(self, path: Path, header: RecordingHeader) -> None:
        self.path = path
        self.header = header
        self._stream: IO[bytes] | None = None
        self._done: set[str] = set()

    def __enter__(self) -> Self:
        """Open the file, or go on with it.

        Raises:
            ConfigError: it is no recording, another one, or being written by another process.
        """
        self._check_place()
        self._stream = self.path.open("ab+")
        try:
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if header_path(self.path).exists():
                self._go_on()
            self._write_header(self.header)
        except BlockingIOError:
            self._stream.close()
            message = f"{self.path} is being written by another recording; choose another --output"
            raise ConfigError(message) from None
        except BaseException:
            self._stream.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is not None:
            self._stream.close()

    @property
    def done(self) -> frozenset[str]:
        """Ids of the conversations that are recorded or were given up."""
        return frozenset(self._done)

    def append(self, recording: Recording) -> None:
        """Add a completed conversation; it is on the disk when this returns."""
        assert self._stream is not None
        self._stream.write(line_of(recording))
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._done.add(recording.conversation.id)
        if recording.shortened is not None:
            self.drop(recording.conversation.id, recording.shortened)

    def drop(self, conversation: str, reason: str) -> None:
        """Note that a conversation is left out, or ends early."""
        self._done.add(conversation)
        self._write_header(
            replace(self.header, dropped=(*self.header.dropped, (conversation, reason)), complete=False)
        )

    def finish(self, order: Sequence[str]) -> RecordingHeader:
        """Put the conversations into the order of their ids in `order`, and sign the file.

        Raises:
            RecordingError: not one conversation was recorded.
        """
        lines = self._lines()
        if not lines:
            why = f" (the first: {': '.join(self.header.dropped[0])})" if self.header.dropped else ""
            message = f"not one of {counted(self.header.wanted, 'conversation')} could be recorded{why}"
            raise RecordingError(message)
        content = b"".join(line_of(lines[name]) for name in order if name in lines)
        staging = self.path.with_name(f"{self.path.name}.tmp")
        with staging.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        staging.replace(self.path)
        turns = [turn for recording in lines.values() for turn in recording.conversation.turns]
        reasons = Counter(
            reason or "recorded before" for recording in lines.values() for reason in recording.finish_reasons
        )
        self._write_header(
            replace(
                self.header,
                complete=True,
                digest=hashlib.sha256(content).hexdigest(),
                turns=len(turns),
                output_tokens=sum(turn.output_tokens or 0 for turn in turns),
                finish_reasons=dict(reasons),
            )
        )
        return self.header

    def _check_place(self) -> None:
        if not self.path.parent.is_dir():
            message = f"--output {self.path}: the folder {self.path.parent} does not exist; make it first"
            raise ConfigError(message)
        if self.path.is_dir():
            message = (
                f"--output {self.path} is a folder; name a file, for instance {self.path / 'recorded.jsonl'}"
            )
            raise ConfigError(message)
        has_text = self.path.exists() and self.path.stat().st_size > 0
        if has_text and not header_path(self.path).exists():
            message = (
                f"--output {self.path} exists and is no recording (it has no {header_path(self.path).name} "
                "beside it); choose another file"
            )
            raise ConfigError(message)

    def _go_on(self) -> None:
        """Take over what an earlier run recorded."""
        try:
            known = read_header(self.path)
        except WorkloadError as error:
            message = f"--output {self.path} cannot be gone on with: {error}"
            raise ConfigError(message) from error
        wanted = self.header.identity
        different = [
            f"{field.name} {getattr(known.identity, field.name)!r} there, {getattr(wanted, field.name)!r} now"
            for field in fields(wanted)
            if getattr(known.identity, field.name) != getattr(wanted, field.name)
        ]
        if different:
            message = (
                f"--output {self.path} holds another recording ({'; '.join(different)}); choose another "
                "file, or give the same words to go on with it"
            )
            raise ConfigError(message)
        if known.complete and hashlib.sha256(self.path.read_bytes()).hexdigest() != known.digest:
            message = (
                f"--output {self.path} was complete and is not what was recorded any more; put it back, or "
                f"delete it with {header_path(self.path).name} to record anew"
            )
            raise ConfigError(message)
        self.header = known
        self._done = {*self._lines(), *(name for name, _ in known.dropped)}

    def _lines(self) -> dict[str, Recording]:
        """Return what is recorded, and cut off a last line that was not written to its end."""
        assert self._stream is not None
        self._stream.seek(0)
        found: dict[str, Recording] = {}
        end = 0
        for number, line in enumerate(self._stream, start=1):
            if not line.endswith(b"\n"):
                self._stream.truncate(end)
                break
            where = f"{self.path}, line {number}"
            recording = recording_of(parse(line.decode(errors="replace"), where=where), where=where)
            found[recording.conversation.id] = recording
            end += len(line)
        self._stream.seek(0, os.SEEK_END)
        return found

    def _write_header(self, header: RecordingHeader) -> None:
        self.header = header
        path = header_path(self.path)
        staging = path.with_name(f"{path.name}.tmp")
        staging.write_bytes(msgspec.json.format(msgspec.json.encode(header), indent=1) + b"\n")
        staging.replace(path)
