"""Tokenizers a workload is bound with: of a model folder, or of the emulated engine."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import tokenizers

from engines.digest import digest
from engines.spec import Model
from jobs.errors import WorkloadError
from jobs.workload.chat_template import ChatTemplate

_WORD = re.compile(r" ?[A-Za-z]+")
_PRINTABLE = re.compile(r"[ -~]+")
_ENOUGH = 256
"""Fewer word pieces than this are too little variety: every printable piece is taken then."""


class Tokenizer(Protocol):
    """Text to token ids, and a chat to a prompt."""

    @property
    def digest(self) -> str:
        """SHA-256 of everything that decides the tokens, chat template included."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of plain text, without special tokens around it."""

    def render(self, messages: Sequence[tuple[str, str]]) -> list[int]:
        """Return the whole prompt of (role, content) messages, ending with the assistant's marker."""

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of token ids, for people to look at."""

    def plain_tokens(self) -> list[int]:
        """Return the ids, ascending, of tokens that may stand anywhere in a text: no special ones."""


class FolderTokenizer:
    """`tokenizer.json` and the chat template of a model folder."""

    def __init__(self, folder: str | Path) -> None:
        folder = Path(folder)
        self._folder = folder
        file = folder / "tokenizer.json"
        if not file.is_file():
            what = "has no tokenizer.json" if folder.is_dir() else "does not exist"
            message = (
                f"model folder {folder} {what}; set model.path to a folder with config, weights and tokenizer"
            )
            raise WorkloadError(message)
        data = file.read_bytes()
        try:
            self._tokenizer = tokenizers.Tokenizer.from_str(data.decode())
        except Exception as error:  # the library raises the bare class
            message = f"{file} is no tokenizer ({error})"
            raise WorkloadError(message) from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._template = ChatTemplate.from_folder(folder)
        self.digest = digest(
            [hashlib.sha256(data).hexdigest(), self._template.source, self._template.special]
        )

    def encode(self, text: str) -> list[int]:
        """Return the ids of plain text."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def render(self, messages: Sequence[tuple[str, str]]) -> list[int]:
        """Return the prompt's ids; the template itself writes the special tokens."""
        return self.encode(self._template.render(messages))

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of token ids, special ones included."""
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=False))

    def plain_tokens(self) -> list[int]:
        """Return the ids of English-looking pieces; of all printable ASCII where a vocabulary has few.

        Such a token is whole text by itself, so that an engine which turns a prompt into text never waits for
        the rest of a character.

        Raises:
            WorkloadError: the tokenizer has neither.
        """
        added = self._tokenizer.get_added_tokens_decoder()
        ids = sorted(set(self._tokenizer.get_vocab(with_added_tokens=False).values()) - set(added))
        texts = self._tokenizer.decode_batch([[token] for token in ids])
        for pattern in (_WORD, _PRINTABLE):
            plain = [token for token, text in zip(ids, texts, strict=True) if pattern.fullmatch(text)]
            if len(plain) >= (_ENOUGH if pattern is _WORD else 2):
                return plain
        message = (
            f"the tokenizer of {self._folder} has no plain ASCII tokens, which a trace of hashes or lengths "
            "is filled with; use a workload with text for this model"
        )
        raise WorkloadError(message)


def tokenizer_for(model: Model, device: str) -> Tokenizer:
    """Return the tokenizer of `model` as it is served on that kind of device.

    Raises:
        WorkloadError: a real model without a local folder.
    """
    if model.path is None:
        if device != "emulated":
            message = f"model {model.name!r} has no folder; set model.path to read its tokenizer"
            raise WorkloadError(message)
        # Not at the top: planning for a real engine must not load the emulator.
        from engines.emulator.tokenizer import EmulatedTokenizer  # noqa: PLC0415  see above

        return EmulatedTokenizer()
    return FolderTokenizer(model.path)
