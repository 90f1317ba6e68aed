"""Conversations as token ids: the frozen object that every arm replays.

Prompts are rendered with the target's own chat template and tokenizer once, by the driver, so that all arms,
processes and machines send the very same tokens. A turn stores only what changes against the previous prompt.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTurn:
    """One request in tokens."""

    keep: int
    """Tokens of the previous turn's prompt that this prompt starts with (0 in the first turn)."""
    suffix: tuple[int, ...]
    """Token ids after them."""
    output_tokens: int
    """Pinned output length: tokens of the recorded reply, at least 1."""
    gap: float | None = None
    """Seconds from the end of the previous turn's answer to this request (think or tool time); None for none."""

    @property
    def prompt_tokens(self) -> int:
        """Length of the whole prompt."""
        return self.keep + len(self.suffix)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenConversation:
    """A conversation in tokens."""

    id: str
    turns: tuple[TokenTurn, ...]
    start: float | None = None
    """Arrival in seconds from the start of the trace; None where the workload has no times."""

    def prompts(self) -> tuple[tuple[int, ...], ...]:
        """Return each turn's whole prompt."""
        prompts: list[tuple[int, ...]] = []
        previous: tuple[int, ...] = ()
        for turn in self.turns:
            previous = previous[: turn.keep] + turn.suffix
            prompts.append(previous)
        return tuple(prompts)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenWorkload:
    """What a sweep replays: token conversations, their digest, and what was left out."""

    name: str
    conversations: tuple[TokenConversation, ...]
    validity: str
    tokenizer: str
    """Digest of the tokenizer and chat template that made the tokens."""
    dropped: tuple[tuple[str, str], ...] = ()
    """(conversation id, reason) of what does not fit the model's context."""
