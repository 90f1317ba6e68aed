"""A look into workload files: what they hold, and what a sweep would replay of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jobs.workload.bind import bind
from jobs.workload.conversation import HASHED, RECORDED, Conversation
from jobs.workload.formats import format_named, read_conversations
from jobs.workload.import_log import ImportLog
from jobs.workload.inspection import Inspection
from jobs.workload.policies import Policies
from jobs.workload.shapes import bound_shape, text_shape, trace_shape
from jobs.workload.source import FileSource
from jobs.workload.tokenizer import Tokenizer

LENGTHS_ONLY = ("azure", "burstgpt")
"""Formats that tell lengths and times, so that nobody knows which prompts are alike."""
_VALIDITY = {
    RECORDED: "recorded (real text: acceptance on it means something)",
    HASHED: "hashed (text is made up for it: acceptance on it means nothing)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What is in the files."""

    inspection: Inspection
    """Statistics of all conversations."""
    validity: str
    """Content validity."""
    notes: tuple[str, ...]
    """What the importer says: rules, and what it left out and why."""
    unanswered: int
    """Turns without a recorded reply."""
    is_text: bool
    """Whether the conversations are text, counted by a tokenizer; else a trace that has counts of its own."""

    @property
    def content(self) -> str:
        """Content validity in words."""
        return _VALIDITY.get(self.validity, self.validity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a sweep would replay of the files."""

    inspection: Inspection
    """Statistics of the conversations that fit."""
    notes: tuple[str, ...]
    """What the policy did to them, with numbers."""
    dropped: tuple[tuple[str, str], ...]
    """(conversation id, reason) of what is left out."""


def look(files: Sequence[Path], chosen: str, tokenizer: Tokenizer, block_size: int) -> Look:
    """Read the files, one conversation after another.

    Args:
        files: Files of one workload.
        chosen: Their format.
        tokenizer: What counts text.
        block_size: Tokens of a block of text; traces have their own.

    Raises:
        WorkloadError: unknown format, a damaged file, or nothing left of the files.
    """
    log = ImportLog(validity=format_named(chosen).validity)
    inspection = Inspection()
    unanswered = 0
    is_text = False
    for conversation in read_conversations(format=chosen, paths=files, log=log):
        if isinstance(conversation, Conversation):
            is_text = True
            unanswered += sum(turn.reply is None for turn in conversation.turns)
            shape = text_shape(conversation, tokenizer, block_size)
        else:
            shape = trace_shape(conversation, content_known=chosen not in LENGTHS_ONLY)
        inspection.add(shape)
    return Look(
        inspection=inspection,
        validity=log.validity,
        notes=log.notes,
        unanswered=unanswered,
        is_text=is_text,
    )


def replay(
    files: Sequence[Path],
    chosen: str,
    tokenizer: Tokenizer,
    block_size: int,
    *,
    max_context: int,
    fit: str,
) -> Replayed:
    """Bind the files as a sweep does, and say what is left of them.

    Args:
        files: Files of one workload.
        chosen: Their format.
        tokenizer: What counts text.
        block_size: Tokens of a block of text.
        max_context: Longest prompt plus output in tokens.
        fit: What happens to what is longer: a value of `workload.fit`.

    Raises:
        WorkloadError: nothing fits, or the policy does not go with this workload.
        MissingRepliesError: a turn has no recorded reply.
    """
    source = FileSource(name=chosen, format=chosen, paths=files)
    workload = bind(source, tokenizer, max_context=max_context, policies=Policies(fit=fit))
    inspection = Inspection()
    for conversation in workload.conversations:
        inspection.add(bound_shape(conversation, block_size, content_known=chosen not in LENGTHS_ONLY))
    said = set(source.notes)
    return Replayed(
        inspection=inspection,
        notes=tuple(note for note in workload.notes if note not in said),
        dropped=workload.dropped,
    )
