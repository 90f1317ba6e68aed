"""Conversations as token ids: the frozen object that every arm replays.

Prompts are rendered with the target's own chat template and tokenizer once, by the driver, so that all arms,
processes and machines send the very same tokens. A turn stores only what changes against the previous prompt:
token ids where there is text, hash blocks where a trace has none; those become tokens when they are sent.
"""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jobs.workload.filler import Filler

_NO_TOKENS = array("I")
_NO_BLOCKS = array("q")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTurn:
    """One request in tokens."""

    keep: int
    """Tokens of the previous turn's prompt that this prompt starts with (0 in the first turn)."""
    suffix: Sequence[int] = ()
    """Token ids after them, kept as an array of 32-bit integers."""
    blocks: Sequence[int] = ()
    """Hash ids of the blocks after `keep` and `suffix`, kept as an array of 64-bit integers."""
    block_tokens: int = 0
    """Tokens that `blocks` stand for: all are whole but the last, which may be partly filled."""
    output_tokens: int
    """Pinned output length: tokens of the recorded reply, at least 1."""
    gap: float | None = None
    """Seconds from the end of the previous turn's answer to this request (think or tool time); None for
    none."""

    def __post_init__(self) -> None:
        # Arrays take four and eight bytes an entry, tuples of integers about 36.
        if not isinstance(self.suffix, array):
            object.__setattr__(self, "suffix", array("I", self.suffix) if self.suffix else _NO_TOKENS)
        if not isinstance(self.blocks, array):
            object.__setattr__(self, "blocks", array("q", self.blocks) if self.blocks else _NO_BLOCKS)

    @property
    def prompt_tokens(self) -> int:
        """Length of the whole prompt."""
        return self.keep + len(self.suffix) + self.block_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenConversation:
    """A conversation in tokens."""

    id: str
    """Unique in its workload."""
    turns: tuple[TokenTurn, ...]
    """At least one."""
    start: float | None = None
    """Arrival in seconds from the start of the trace; None where the workload has no times."""
    scope: str = ""
    """Namespace of the turns' hash ids."""
    block_size: int = 0
    """Tokens of a whole hash block; 0 where there are none."""

    def prompts(self, filler: Filler | None = None) -> Iterator[list[int]]:
        """Yield each turn's whole prompt; hash blocks become tokens only now, and need the filler."""
        previous: list[int] = []
        for turn in self.turns:
            prompt = previous[: turn.keep]
            prompt += turn.suffix
            if turn.block_tokens:
                assert filler is not None, "a workload with hash blocks has a filler"
                prompt += filler.fill(self.scope, turn.blocks, self.block_size, turn.block_tokens)
            previous = prompt
            yield prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenWorkload:
    """What a sweep replays: token conversations, where they came from, and what was left out."""

    name: str
    """Name of the workload in results."""
    conversations: Sequence[TokenConversation]
    """A tuple, or a view of a token file that reads one when it is asked for it."""
    validity: str
    """Content validity of acceptance measured on it (see `jobs/workload/conversation.py`)."""
    tokenizer: str
    """Digest of the tokenizer and chat template that made the tokens."""
    filler: Filler | None = None
    """What turns hash blocks into tokens; None where all is text."""
    dropped: tuple[tuple[str, str], ...] = ()
    """(conversation id, reason) of what is left out by a policy, such as what does not fit the context."""
    notes: tuple[str, ...] = ()
    """What a reader must know: rules of the import and of the policies, with their numbers."""

    def prompts(self, conversation: TokenConversation) -> Iterator[list[int]]:
        """Yield the whole prompt of each turn of one of the conversations."""
        return conversation.prompts(self.filler)
