"""A tokenizer for models that do not exist: text to ids below 32,000, the same on every machine.

The server uses it for text prompts, and the driver when it binds a workload to an emulated model, so both
count alike.
"""

import functools
import hashlib
import re
from collections.abc import Sequence

VOCABULARY = 32_000
"""Ids are below it."""
_RESERVED = 16
"""First ids: markers of the chat template."""
_START, _END, _OTHER_ROLE = 1, 2, 15
_ROLES = {"system": 3, "user": 4, "assistant": 5, "tool": 6}
_PIECE = re.compile(r" ?[^\W\d_]{1,5}| ?\d{1,3}|\s+|[^\w\s]{1,3}|_+")
_SYLLABLES = tuple(f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in ("", "n", "r", "s"))


class EmulatedTokenizer:
    """Pieces of about four characters, each with an id from its SHA-256."""

    RULES = "emulated-tokenizer-1"
    """Name of the rules; raise it when ids or the template change."""

    @property
    def digest(self) -> str:
        """SHA-256 that stands for tokenizer and chat template."""
        return hashlib.sha256(f"{self.RULES}\n{_PIECE.pattern}\n{_ROLES}".encode()).hexdigest()

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`; markers have no spelling in text."""
        return [_piece_id(piece) for piece in _PIECE.findall(text)]

    def render(self, messages: Sequence[tuple[str, str]]) -> list[int]:
        """Return the prompt of a chat of (role, text), with the marker where the assistant goes on."""
        ids = [_START]
        for role, text in messages:
            ids += [_ROLES.get(role, _OTHER_ROLE), *self.encode(text), _END]
        return [*ids, _ROLES["assistant"]]

    def decode(self, tokens: Sequence[int]) -> str:
        """Return stand-in text for token ids: the pieces that made them are not kept."""
        return "".join(map(self.text, tokens))

    def plain_tokens(self) -> list[int]:
        """Return every id that is no marker of the chat template, ascending."""
        return list(range(_RESERVED, VOCABULARY))

    def text(self, token: int) -> str:
        """Return a stand-in text for an emitted token."""
        return " " + _SYLLABLES[token % len(_SYLLABLES)]


@functools.lru_cache(maxsize=65_536)
def _piece_id(piece: str) -> int:
    number = int.from_bytes(hashlib.sha256(piece.encode("utf-8", "surrogatepass")).digest()[:8], "big")
    return _RESERVED + number % (VOCABULARY - _RESERVED)
