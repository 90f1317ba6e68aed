"""Conversations: what users said and what was answered, before any tokenizer has seen it."""

from dataclasses import dataclass

RECORDED = "recorded"
"""Content validity: real text and recorded history, so acceptance on it means something."""
SYNTHETIC = "synthetic"
"""Content validity: acceptance is forced, whatever the text says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One chat message."""

    role: str
    """`system`, `user`, `assistant` or `tool`."""
    content: str
    """Text; tool calls of an assistant are part of it, written as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One request: the messages since the previous reply, and the recorded reply to them."""

    messages: tuple[Message, ...]
    reply: str
    """The recorded assistant text: history of later turns, and the source of the output length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A dialogue of one user, whose turns are played one after another."""

    id: str
    """Unique in its workload; stable for the same file."""
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A set of conversations with the identity of where they came from."""

    name: str
    conversations: tuple[Conversation, ...]
    validity: str
    """Content validity of acceptance measured on it: see the constants of this module."""

    @property
    def turns(self) -> int:
        """Requests in one pass over the workload."""
        return sum(len(conversation.turns) for conversation in self.conversations)
