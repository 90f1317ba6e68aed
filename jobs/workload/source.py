"""A workload's files, read while their conversations are taken."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jobs.workload.conversation import Conversation
from jobs.workload.formats import format_named, read_conversations
from jobs.workload.import_log import ImportLog
from jobs.workload.trace import TraceConversation


@dataclass(slots=True, kw_only=True)
class FileSource:
    """What `load_workload` reads, but one conversation at a time; taken once."""

    name: str
    """Name of the workload in results."""
    format: str
    """A key of `FORMATS`."""
    paths: Sequence[str | Path]
    """Files or glob patterns."""
    _log: ImportLog = field(init=False)
    """Filled while the conversations are taken."""

    def __post_init__(self) -> None:
        self._log = ImportLog(validity=format_named(self.format).validity)

    @property
    def conversations(self) -> Iterator[Conversation | TraceConversation]:
        """Text, or a trace; errors are those of `load_workload`."""
        return read_conversations(format=self.format, paths=self.paths, log=self._log)

    @property
    def validity(self) -> str:
        """Content validity, once the conversations were taken."""
        return self._log.validity

    @property
    def notes(self) -> tuple[str, ...]:
        """Rules of the import and what it left out, once the conversations were taken."""
        return self._log.notes
