"""Traces that hold no text: conversations as hashes of their prompt's blocks, or as lengths only.

Equal (scope, hash id) means equal tokens, so a trace says which prompts share which prefix. In a trace of
lengths every conversation has a scope of its own and no two turns have a block in common: it knows of no
sharing.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceTurn:
    """One request of a trace."""

    blocks: Sequence[int]
    """Hash ids of the prompt's blocks in order, kept as an array of 64-bit integers; the last block may be
    partly filled."""
    block_size: int
    """Tokens of a whole block."""
    input_tokens: int
    """Length of the prompt: more than all blocks but the last hold, at most what all hold."""
    output_tokens: int
    """Length of the reply, at least 1."""
    gap: float | None = None
    """Seconds from the end of the previous turn's reply to this request; None where the trace is silent."""

    def __post_init__(self) -> None:
        if not isinstance(self.blocks, array):
            object.__setattr__(self, "blocks", array("q", self.blocks))
        assert self.output_tokens > 0
        assert (len(self.blocks) - 1) * self.block_size < self.input_tokens
        assert self.input_tokens <= len(self.blocks) * self.block_size


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceConversation:
    """A conversation of a trace, whose turns are played one after another."""

    id: str
    """Unique in its workload; stable for the same file."""
    turns: tuple[TraceTurn, ...]
    """At least one."""
    start: float | None = None
    """Arrival in seconds from the start of the trace; None where the trace has no times."""
    scope: str = ""
    """Namespace of the hash ids: equal ids of one scope are equal tokens; empty for the whole workload."""
    head_tokens: int = 0
    """Tokens of the system prompt and the tools, as far as the trace tells; kept when the oldest are cut."""
