"""The table of workload formats: a new format is its own module and one line here."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engines.nearest import did_you_mean
from jobs.errors import MissingRepliesError, WorkloadError
from jobs.nouns import are, counted
from jobs.workload.abench import read_abench
from jobs.workload.azure import read_azure
from jobs.workload.builtin import BUILTIN
from jobs.workload.burstgpt import read_burstgpt
from jobs.workload.chat_jsonl import read_chat_jsonl
from jobs.workload.conversation import HASHED, RECORDED, Conversation, Workload
from jobs.workload.import_log import ImportLog
from jobs.workload.mooncake import read_mooncake
from jobs.workload.recorded import read_recorded
from jobs.workload.sharegpt import read_sharegpt
from jobs.workload.spec_bench import read_spec_bench
from jobs.workload.swe_agent import read_swe_agent
from jobs.workload.weka import read_weka

if TYPE_CHECKING:
    from jobs.workload.trace import TraceConversation

_NAMED = 3
"""Files that an error about all of them names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One workload format."""

    read: "Callable[[Sequence[Path], ImportLog], Iterable[Conversation | TraceConversation]]"
    """Yields the conversations of files one after another, and says in the log what it left out."""
    validity: str = RECORDED
    """Content validity of its conversations, unless a file says another."""
    needs_files: bool = True
    """Whether `workload.paths` has to name files."""


FORMATS: dict[str, Format] = {
    **{name: Format(read=read, needs_files=False) for name, read in BUILTIN.items()},
    "chat_jsonl": Format(read=read_chat_jsonl),
    "sharegpt": Format(read=read_sharegpt),
    "swe_agent": Format(read=read_swe_agent),
    "spec_bench": Format(read=read_spec_bench),
    "abench": Format(read=read_abench),
    "recorded": Format(read=read_recorded),
    "mooncake": Format(read=read_mooncake, validity=HASHED),
    "weka": Format(read=read_weka, validity=HASHED),
    "azure": Format(read=read_azure, validity=HASHED),
    "burstgpt": Format(read=read_burstgpt, validity=HASHED),
}
"""Name of a format (`workload.format`) -> how it is read."""


def load_workload(
    *,
    name: str,
    format: str,  # noqa: A002  the key's name in the configuration
    paths: Sequence[str | Path],
    root: str | Path | None = None,
    unanswered: bool = False,
) -> Workload:
    """Read a workload.

    Args:
        name: Name of the workload in results.
        format: A key of `FORMATS`.
        paths: Files or glob patterns, relative to `root`; the files of a pattern are read in sorted order.
        root: Folder of relative paths; None for the working directory.
        unanswered: Whether turns may lack their reply: they can be looked at and recorded, but not replayed.

    Raises:
        WorkloadError: unknown format, a pattern without a file, a damaged file, an id used twice, or nothing
            left of the files.
        MissingRepliesError: a turn lacks its reply, and `unanswered` is False.
    """
    log = ImportLog(validity=format_named(format).validity)
    conversations = tuple(read_conversations(format=format, paths=paths, root=root, log=log))
    missing = count_unanswered(conversations)
    if missing and not unanswered:
        raise MissingRepliesError.of(name, missing, sum(len(entry.turns) for entry in conversations))
    if missing:
        log.note(
            f"{counted(missing, 'turn')} {are(missing, one='has', many='have')} no reply; "
            f"`specload workload record` writes {are(missing, one='it', many='them')}"
        )
    return Workload(name=name, conversations=conversations, validity=log.validity, notes=log.notes)


def read_conversations(
    *,
    format: str,  # noqa: A002  the key's name in the configuration
    paths: Sequence[str | Path],
    root: str | Path | None = None,
    log: ImportLog,
) -> "Iterator[Conversation | TraceConversation]":
    """Yield the conversations of a workload's files one after another: memory is that of one of them.

    Arguments and errors are those of `load_workload`; `log` is complete once the last one was taken.
    """
    known = format_named(format)
    files = _files(paths, Path(root) if root is not None else Path())
    if not files and known.needs_files:
        message = f"workload.paths is empty; the format {format!r} reads files: set workload.paths=[FILE,...]"
        raise WorkloadError(message)
    seen: set[str] = set()
    for conversation in known.read(files, log):
        _check_id(conversation, seen)
        yield conversation
    if not seen:
        why = "; ".join(log.dropped) or "the files hold none"
        names = ", ".join(file.name for file in files[:_NAMED]) + (", ..." if len(files) > _NAMED else "")
        message = f"no conversation is left of {names or 'the workload'}: {why}; give other files"
        raise WorkloadError(message)


def count_unanswered(conversations: "Iterable[Conversation | TraceConversation]") -> int:
    """Return how many turns lack their reply (a trace of hashes or lengths needs none)."""
    return sum(
        turn.reply is None
        for conversation in conversations
        if isinstance(conversation, Conversation)
        for turn in conversation.turns
    )


def format_named(name: str) -> Format:
    """Return the format called `name`.

    Raises:
        WorkloadError: there is none; the message names those there are.
    """
    if name not in FORMATS:
        message = (
            f"workload.format is {name!r}{did_you_mean(name, FORMATS)}; known formats: {', '.join(FORMATS)}"
        )
        raise WorkloadError(message)
    return FORMATS[name]


def _files(paths: Sequence[str | Path], root: Path) -> list[Path]:
    files: list[Path] = []
    for entry in paths:
        path = root / Path(entry).expanduser()
        # A file whose name holds glob characters is that file, not a pattern.
        found = [path] if path.is_file() else _expand(path)
        if not found:
            if path.is_dir():
                problem = "this is a folder: name its files, for instance with /*.jsonl"
            elif _is_pattern(path):
                problem = "no file matches this pattern"
            else:
                problem = "this file does not exist"
            message = f"workload.paths has {str(entry)!r}: {problem} (looked for {path.absolute()})"
            raise WorkloadError(message)
        files.extend(found)
    twice = next(
        (file for file, count in Counter(file.absolute() for file in files).items() if count > 1), None
    )
    if twice is not None:
        message = f"workload file {twice} is given twice, by itself or by a pattern; name every file once"
        raise WorkloadError(message)
    return files


def _expand(path: Path) -> list[Path]:
    """Return the files that a pattern matches, sorted; nothing for a plain path."""
    parts = path.absolute().parts
    first = next((i for i, part in enumerate(parts) if _is_pattern(part)), None)
    if first is None:
        return []
    found = Path(*parts[:first]).glob(str(Path(*parts[first:])))
    return sorted(file for file in found if file.is_file())


def _is_pattern(text: str | Path) -> bool:
    return any(character in str(text) for character in "*?[")


def _check_id(conversation: "Conversation | TraceConversation", seen: set[str]) -> None:
    if conversation.id in seen:
        message = (
            f"the conversation id {conversation.id!r} is used twice in this workload; ids name the same "
            "conversation in every arm: make them unique (where a file gives no id, it is made of the file's "
            "name and the line, so give files of one name different ones)"
        )
        raise WorkloadError(message)
    seen.add(conversation.id)
