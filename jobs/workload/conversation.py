"""Conversations: what users said and what was answered, before any tokenizer has seen it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobs.workload.trace import TraceConversation

RECORDED = "recorded"
"""Content validity: real text and recorded history, so acceptance on it means something."""
HASHED = "hashed"
"""Content validity: text made up for a trace of hashes or lengths, so acceptance on it means nothing."""
LIVE = "live"
"""Content validity: real text, and the history of a turn is what the engine itself has just answered."""
SYNTHETIC = "synthetic"
"""Content validity: acceptance is forced, or the text is an emulated engine's filler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One chat message."""

    role: str
    """`system`, `developer`, `user`, `assistant` or `tool`."""
    content: str
    """Text; tool calls of an assistant are part of it, written as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One request: the messages since the previous reply, and the recorded reply to them."""

    messages: tuple[Message, ...]
    reply: str | None
    """The recorded assistant text: history of later turns, and the source of the output length.

    None where the file has no reply: `specload workload record` has a baseline engine write it.
    """
    gap: float | None = None
    """Seconds from the end of the previous turn's reply to this request (recorded thinking or tool time);
    None where the file does not say."""
    output_tokens: int | None = None
    """Natural length of the reply in tokens as a recording states it; None to count the reply's tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A dialogue of one user, whose turns are played one after another."""

    id: str
    """Unique in its workload; stable for the same file."""
    turns: tuple[Turn, ...]
    """At least one."""
    start: float | None = None
    """Arrival in seconds from the start of the trace; None where the file has no times."""
    group: str | None = None
    """Class of the conversation as its data set names it (a category, a task); None without classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A set of conversations with the identity of where they came from."""

    name: str
    """Name of the workload in results."""
    conversations: "tuple[Conversation | TraceConversation, ...]"
    """Text, or a trace of hashes or lengths (`jobs/workload/trace.py`) that binding turns into tokens."""
    validity: str
    """Content validity of acceptance measured on it: see the constants of this module."""
    notes: tuple[str, ...] = ()
    """What a reader must know: rules of the import with their numbers, and what was dropped and why."""

    @property
    def turns(self) -> int:
        """Requests in one pass over the workload."""
        return sum(len(conversation.turns) for conversation in self.conversations)
