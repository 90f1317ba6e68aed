"""Importer of abench sessions: recorded agent runs as JSON Lines, a JSON array, or one JSON object a file.

A session is `{"session_id", "system_prompt", "turns": [{"input_delta": [{"role", "content"}],
"assistant_text", "output_tokens", "pre_gap_ms", ...}]}`.

The rules:
- `input_delta` holds the messages since the reply before; `assistant_text` is the reply.
- `pre_gap_ms` is the time from the end of the reply before to this request; the first turn's is left out.
- `output_tokens` is the natural length as the recording counted it, in tokens of the model it recorded.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from jobs.errors import WorkloadError
from jobs.workload.conversation import Conversation, Message, Turn
from jobs.workload.dialogue import clean, message_of
from jobs.workload.fields import number, whole
from jobs.workload.import_log import ImportLog
from jobs.workload.json_file import json_entries

_Number = TypeVar("_Number", int, float)


def read_abench(paths: Sequence[Path], log: ImportLog) -> Iterator[Conversation]:
    """Yield one conversation a session, called after its `session_id`.

    Raises:
        WorkloadError: a file or session is not of this form; the message names it.
    """
    for path in paths:
        for where, value in json_entries(path):
            turns = value.get("turns") if isinstance(value, Mapping) else None
            if not isinstance(turns, list) or not turns or not value.get("session_id"):
                message = (
                    f"{where}: expected an abench session, an object with `session_id` and a list `turns`"
                )
                raise WorkloadError(message)
            source = value.get("source")
            dataset = source.get("dataset") if isinstance(source, Mapping) else None
            yield Conversation(
                id=str(value["session_id"]),
                turns=tuple(_turns(value, where=where, log=log)),
                group=str(dataset) if dataset else None,
            )


def _turns(session: Mapping[str, Any], *, where: str, log: ImportLog) -> Iterator[Turn]:
    system = session.get("system_prompt")
    if system is not None and not isinstance(system, str):
        message = f"{where}: `system_prompt` is {type(system).__name__}, not text"
        raise WorkloadError(message)
    for index, data in enumerate(session["turns"]):
        place = f"{where}, turns[{index}]"
        if not isinstance(data, Mapping) or not isinstance(data.get("input_delta"), list):
            message = f"{place}: expected an object with a list `input_delta` of messages"
            raise WorkloadError(message)
        messages = [message_of(entry, where=place) for entry in data["input_delta"]]
        if index == 0 and system:
            messages.insert(0, Message(role="system", content=clean(system)))
        if not messages:
            message = f"{place}: `input_delta` is empty, so there is nothing to send"
            raise WorkloadError(message)
        reply = data.get("assistant_text")
        if reply is not None and not isinstance(reply, str):
            message = f"{place}: `assistant_text` is {type(reply).__name__}, not text"
            raise WorkloadError(message)
        tokens = _stated(whole, data, "output_tokens", place)
        if tokens:
            log.note("output lengths are stated by the recording, in tokens of the model that it recorded")
        gap = _stated(number, data, "pre_gap_ms", place) if index else None
        yield Turn(
            messages=tuple(messages),
            reply=None if reply is None else clean(reply),
            gap=None if gap is None else gap / 1000.0,
            output_tokens=tokens or None,
        )


def _stated(read: Callable[..., _Number], data: Mapping[str, Any], key: str, place: str) -> _Number | None:
    """Return what `read` makes of a field that may be missing; text is no number here."""
    value = data.get(key)
    if value is None:
        return None
    if not isinstance(value, int | float):
        message = f"{place}: `{key}` is {value!r}, not a number of 0 or more"
        raise WorkloadError(message)
    return read(data, key, where=place)
