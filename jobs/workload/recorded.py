"""Recorded workloads: replies that a baseline engine wrote once, frozen in a file with a header beside it.

`FILE` is chat JSONL, one conversation a line, `{"id", "messages", "turns"}`: `messages` has the replies in
place, and `turns` says for each request how many messages come before its reply, the reply's natural length
in tokens (end of text included) and why it ended. `FILE.json` is the header: who wrote the replies, how, and
the SHA-256 of `FILE`.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from jobs.errors import WorkloadError
from jobs.workload.conversation import Conversation, Turn
from jobs.workload.dialogue import ASSISTANT, message_of
from jobs.workload.import_log import ImportLog
from jobs.workload.json_file import json_lines

FORMAT = "specload-recording-1"
"""Names the form of file and header; raise it when they change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingIdentity:
    """What decides the replies: a recording goes on only where all of it is the same."""

    source: str
    """Digest of the conversations that are completed."""
    source_name: str
    """Name of that workload."""
    source_format: str
    """Its format."""
    engine: str
    """Engine that wrote the replies."""
    engine_version: str
    """Its version."""
    arm: str
    """Digest of its whole configuration: model folder, layout and flags included."""
    model: str
    """Served model name."""
    model_digest: str | None
    """Digest of the model's folder; None for an emulated model."""
    tokenizer: str
    """Digest of the tokenizer and chat template that made the prompts."""
    max_context: int
    """Longest prompt plus output, in tokens."""
    max_output_tokens: int
    """Cap of a reply in tokens; a reply that met it has the finish reason `length`."""
    temperature: float
    """Sampling temperature; 0 is greedy."""
    seed: int
    """Base of the per-request sampling seeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingHeader:
    """The header of a recording."""

    format: str
    """`FORMAT` of the version that wrote it."""
    identity: RecordingIdentity
    """What decides the replies."""
    validity: str
    """Content validity of acceptance measured on it."""
    date: str
    """When the recording was begun, ISO 8601, UTC."""
    specload: str
    """Version of this program."""
    concurrency: int
    """Conversations that were completed at a time."""
    wanted: int
    """Conversations to complete."""
    complete: bool = False
    """Whether every conversation is recorded or dropped."""
    digest: str | None = None
    """SHA-256 of the file's bytes; None until it is complete."""
    turns: int = 0
    """Turns in the complete file."""
    output_tokens: int = 0
    """Sum of their natural lengths that the engine stated."""
    finish_reasons: Mapping[str, int] = field(default_factory=dict)
    """Finish reason -> turns."""
    dropped: tuple[tuple[str, str], ...] = ()
    """(conversation id, reason) of what was left out or shortened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One completed conversation."""

    conversation: Conversation
    """With a reply in every turn."""
    finish_reasons: tuple[str | None, ...]
    """Why each reply ended (`stop`, `length`); None for a reply that was there before."""
    shortened: str | None = None
    """Why the turns after the last one were left out; None where none were."""


def header_path(file: Path) -> Path:
    """Return where the header of recording `file` is."""
    return file.with_name(f"{file.name}.json")


def read_header(file: Path) -> RecordingHeader:
    """Return the header of recording `file`.

    Raises:
        WorkloadError: it is missing or damaged, or of another version.
    """
    path = header_path(file)
    try:
        header = msgspec.json.decode(path.read_bytes(), type=RecordingHeader)
    except OSError as error:
        message = (
            f"recording {file} has no readable header {path.name} beside it ({error.strerror}); keep the two "
            "files together, or read it with workload.format=chat_jsonl, which knows no natural lengths"
        )
        raise WorkloadError(message) from error
    except msgspec.DecodeError as error:
        message = f"{path} is no header of a recording of this version ({error}); record the workload again"
        raise WorkloadError(message) from error
    if header.format != FORMAT:
        message = f"{path} is of the form {header.format!r}, not {FORMAT!r}; record the workload again"
        raise WorkloadError(message)
    return header


def line_of(recording: Recording) -> bytes:
    """Return a completed conversation as a line of the file, newline included."""
    messages: list[dict[str, str]] = []
    turns: list[dict[str, Any]] = []
    for turn, finish in zip(recording.conversation.turns, recording.finish_reasons, strict=True):
        assert turn.reply is not None, "a recorded turn has its reply"
        messages += [{"role": message.role, "content": message.content} for message in turn.messages]
        messages.append({"role": ASSISTANT, "content": turn.reply})
        stated = {"output_tokens": turn.output_tokens, "finish_reason": finish, "gap": turn.gap}
        turns.append(
            {"messages": len(turn.messages)}
            | {key: value for key, value in stated.items() if value is not None}
        )
    about = {"group": recording.conversation.group, "start": recording.conversation.start}
    line = {
        "id": recording.conversation.id,
        **{key: value for key, value in about.items() if value is not None},
        "messages": messages,
        "turns": turns,
    }
    return json.dumps(line, ensure_ascii=False).encode() + b"\n"


def recording_of(value: Any, *, where: str) -> Recording:
    """Return what `line_of` wrote as a line.

    Raises:
        WorkloadError: it is no such line.
    """
    try:
        messages = [message_of(entry, where=where) for entry in value["messages"]]
        turns: list[Turn] = []
        begin = 0
        for data in value["turns"]:
            end = begin + data["messages"]
            if end >= len(messages) or messages[end].role != ASSISTANT:
                break
            turns.append(
                Turn(
                    messages=tuple(messages[begin:end]),
                    reply=messages[end].content,
                    gap=data.get("gap"),
                    output_tokens=data.get("output_tokens"),
                )
            )
            begin = end + 1
        if begin != len(messages) or not turns:
            message = f"{where}: its `turns` do not fit its `messages`; record the workload again"
            raise WorkloadError(message)
        return Recording(
            conversation=Conversation(
                id=value["id"], turns=tuple(turns), start=value.get("start"), group=value.get("group")
            ),
            finish_reasons=tuple(data.get("finish_reason") for data in value["turns"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        message = (
            f"{where}: no line of a recording ({type(error).__name__}: {error}); record the workload again"
        )
        raise WorkloadError(message) from error


def read_recorded(paths: Sequence[Path], log: ImportLog) -> Iterator[Conversation]:
    """Yield the conversations of recordings, with natural lengths, and say who wrote the replies.

    Raises:
        WorkloadError: no header, a recording that is not complete or was changed since, or a damaged line.
    """
    for path in paths:
        header = read_header(path)
        if not header.complete:
            message = (
                f"recording {path} is not complete (it wants {header.wanted} conversations); run the same "
                "`specload workload record` command again, which goes on where it stopped"
            )
            raise WorkloadError(message)
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != header.digest:
            message = (
                f"recording {path} changed since it was recorded (digest {found[:10]}, its header says "
                f"{str(header.digest)[:10]}); put it back, or read it with workload.format=chat_jsonl"
            )
            raise WorkloadError(message)
        log.validity = header.validity
        log.note(_provenance(path, header))
        for name, reason in header.dropped:
            log.note(f"conversation {name} of {path.name}: {reason}")
        for where, value in json_lines(path):
            yield recording_of(value, where=where).conversation


def _provenance(path: Path, header: RecordingHeader) -> str:
    who = header.identity
    how = "greedily" if who.temperature == 0 else f"at temperature {who.temperature:g}, seed {who.seed}"
    ends = ", ".join(f"{count} by {reason}" for reason, count in sorted(header.finish_reasons.items()))
    return (
        f"{path.name}: replies to {who.source_name} written by {who.model} on {who.engine} "
        f"{who.engine_version} {how}, at most {who.max_output_tokens} tokens each ({ends}), "
        f"{header.date[:10]}"
    )
