"""The token workload as a file, and its digest. Light: the load process reads with this module.

The file is written and read conversation by conversation, so neither end has to hold it: a magic line; one
MessagePack value a conversation; the offsets of these values as 64-bit integers; a MessagePack header; and
last the offsets of the offsets and of the header. All integers are little-endian.
"""

import hashlib
import os
import struct
import sys
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, overload

import msgspec

from engines.digest import canonical_json
from jobs.errors import WorkloadError
from jobs.workload.filler import RULES, Filler
from jobs.workload.tokens import TokenConversation, TokenTurn, TokenWorkload

MAGIC = b"specload tokens 2\n"
_END = struct.Struct("<QQ18s")
_ENCODER = msgspec.msgpack.Encoder()


class _Turn(msgspec.Struct, array_like=True, frozen=True):
    """One turn as the file has it."""

    keep: int
    suffix: bytes
    blocks: bytes
    block_tokens: int
    output_tokens: int
    gap: float | None


class _Conversation(msgspec.Struct, array_like=True, frozen=True):
    """One conversation as the file has it."""

    id: str
    start: float | None
    scope: str
    block_size: int
    turns: tuple[_Turn, ...]


class _Header(msgspec.Struct, frozen=True):
    """Everything but the conversations."""

    name: str
    validity: str
    tokenizer: str
    vocabulary: bytes | None
    dropped: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


_CONVERSATION = msgspec.msgpack.Decoder(_Conversation)
_HEADER = msgspec.msgpack.Decoder(_Header)


def digest_of(workload: TokenWorkload) -> str:
    """Return SHA-256 over what is sent and when: ids, tokens, lengths, times, tokenizer and validity."""
    content: dict[str, Any] = {"tokenizer": workload.tokenizer, "validity": workload.validity}
    if workload.filler is not None:
        content["filler"] = [RULES, list(workload.filler.vocabulary)]
    sha = hashlib.sha256(canonical_json(content).encode())
    for conversation in workload.conversations:
        turns = [
            [turn.keep, len(turn.suffix), len(turn.blocks), turn.block_tokens, turn.output_tokens, turn.gap]
            for turn in conversation.turns
        ]
        shape = [conversation.id, conversation.start, conversation.scope, conversation.block_size, turns]
        sha.update(canonical_json(shape).encode())
        for turn in conversation.turns:
            sha.update(_packed(turn.suffix))
            sha.update(_packed(turn.blocks))
    return sha.hexdigest()


def write(workload: TokenWorkload, path: str | Path) -> None:
    """Write `workload`, one conversation after another."""
    offsets = array("Q")
    with Path(path).open("wb") as file:
        file.write(MAGIC)
        for conversation in workload.conversations:
            offsets.append(file.tell())
            file.write(_ENCODER.encode(_stored(conversation)))
        index = file.tell()
        file.write(_packed(offsets))
        header = file.tell()
        filler = workload.filler
        file.write(
            _ENCODER.encode(
                _Header(
                    name=workload.name,
                    validity=workload.validity,
                    tokenizer=workload.tokenizer,
                    vocabulary=None if filler is None else _packed(filler.vocabulary),
                    dropped=workload.dropped,
                    notes=workload.notes,
                )
            )
        )
        file.write(_END.pack(index, header, MAGIC))


def read(path: str | Path) -> TokenWorkload:
    """Open what `write` wrote; its conversations are read one by one, when they are asked for.

    Raises:
        WorkloadError: the file is missing or no token workload.
    """
    try:
        file = Path(path).open("rb")  # noqa: SIM115  the view of the conversations owns it
    except FileNotFoundError:
        message = f"token workload {path} does not exist"
        raise WorkloadError(message) from None
    try:
        index, header_at, offsets = _ends(file)
        end = file.seek(0, os.SEEK_END) - _END.size
        header = _HEADER.decode(os.pread(file.fileno(), end - header_at, header_at))
    except (msgspec.DecodeError, ValueError, OSError, struct.error) as error:
        file.close()
        raise _damaged(path, error) from error
    return TokenWorkload(
        name=header.name,
        conversations=StoredConversations(file, path, offsets, index),
        validity=header.validity,
        tokenizer=header.tokenizer,
        filler=None if header.vocabulary is None else Filler(vocabulary=_unpacked("I", header.vocabulary)),
        dropped=header.dropped,
        notes=header.notes,
    )


class StoredConversations(Sequence[TokenConversation]):
    """The conversations of a token file: read when asked for, and not kept."""

    def __init__(self, file: BinaryIO, path: str | Path, offsets: "array[int]", end: int) -> None:
        self._file = file
        self._path = path
        self._offsets = offsets
        self._end = end

    def __del__(self) -> None:
        self._file.close()

    def __len__(self) -> int:
        return len(self._offsets)

    @overload
    def __getitem__(self, index: int) -> TokenConversation: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[TokenConversation, ...]: ...

    def __getitem__(self, index: int | slice) -> TokenConversation | tuple[TokenConversation, ...]:
        if isinstance(index, slice):
            return tuple(self[each] for each in range(*index.indices(len(self))))
        at = range(len(self))[index]  # IndexError, and the meaning of negative numbers
        start = self._offsets[at]
        stop = self._offsets[at + 1] if at + 1 < len(self) else self._end
        try:
            stored = _CONVERSATION.decode(os.pread(self._file.fileno(), stop - start, start))
            return _conversation(stored)
        except (msgspec.DecodeError, ValueError) as error:
            raise _damaged(self._path, error) from error


def _ends(file: BinaryIO) -> tuple[int, int, "array[int]"]:
    """Return the offset of the index, the offset of the header, and the index."""
    size = file.seek(0, os.SEEK_END)
    index, header, magic = _END.unpack(os.pread(file.fileno(), _END.size, max(0, size - _END.size)))
    if magic != MAGIC or not len(MAGIC) <= index <= header <= size:
        message = "its end is missing"
        raise ValueError(message)
    return index, header, _unpacked("Q", os.pread(file.fileno(), header - index, index))


def _stored(conversation: TokenConversation) -> _Conversation:
    turns = tuple(
        _Turn(
            keep=turn.keep,
            suffix=_packed(turn.suffix),
            blocks=_packed(turn.blocks),
            block_tokens=turn.block_tokens,
            output_tokens=turn.output_tokens,
            gap=turn.gap,
        )
        for turn in conversation.turns
    )
    return _Conversation(
        id=conversation.id,
        start=conversation.start,
        scope=conversation.scope,
        block_size=conversation.block_size,
        turns=turns,
    )


def _conversation(stored: _Conversation) -> TokenConversation:
    turns = tuple(
        TokenTurn(
            keep=turn.keep,
            suffix=_unpacked("I", turn.suffix),
            blocks=_unpacked("q", turn.blocks),
            block_tokens=turn.block_tokens,
            output_tokens=turn.output_tokens,
            gap=turn.gap,
        )
        for turn in stored.turns
    )
    return TokenConversation(
        id=stored.id, turns=turns, start=stored.start, scope=stored.scope, block_size=stored.block_size
    )


def _packed(values: Sequence[int]) -> bytes:
    """Return an array's bytes, little-endian."""
    assert isinstance(values, array)
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    return values.tobytes()


def _unpacked(code: Any, data: bytes) -> "array[int]":
    values: array[int] = array(code)
    values.frombytes(data)
    if sys.byteorder == "big":
        values.byteswap()
    return values


def _damaged(path: str | Path, error: Exception) -> WorkloadError:
    return WorkloadError(f"token workload {path} is damaged ({error}); plan the sweep again")
