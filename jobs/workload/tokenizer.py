"""Tokenizers a workload is bound with: of a model folder, or of the emulated engine."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import tokenizers

from engines.digest import digest
from engines.spec import Model
from jobs.errors import WorkloadError
from jobs.workload.chat_template import ChatTemplate


class Tokenizer(Protocol):
    """Text to token ids, and a chat to a prompt."""

    @property
    def digest(self) -> str:
        """SHA-256 of everything that decides the tokens, chat template included."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of plain text, without special tokens around it."""

    def render(self, messages: Sequence[tuple[str, str]]) -> list[int]:
        """Return the whole prompt of (role, content) messages, ending with the assistant's marker."""


class FolderTokenizer:
    """`tokenizer.json` and the chat template of a model folder."""

    def __init__(self, folder: str | Path) -> None:
        folder = Path(folder)
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


def tokenizer_for(model: Model, engine: str) -> Tokenizer:
    """Return the tokenizer of `model` as `engine` serves it.

    Raises:
        WorkloadError: a real model without a local folder.
    """
    if model.path is None:
        if engine != "emulator":
            message = f"model {model.name!r} has no folder; set model.path to read its tokenizer"
            raise WorkloadError(message)
        # Not at the top: planning for a real engine must not load the emulator.
        from engines.emulator.tokenizer import EmulatedTokenizer  # noqa: PLC0415  see above

        return EmulatedTokenizer()
    return FolderTokenizer(model.path)
