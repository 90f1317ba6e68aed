"""Importer of ShareGPT JSON: an array (or JSON Lines) of `{"id", "conversations": [{"from", "value"}]}`.

The rules:
- Speakers: `human` and `user` ask; `gpt`, `chatgpt`, `bing`, `bard`, `assistant`, `model` and `function_call`
  reply; `tool`, `observation` and `function_response` are results of tools; `system` is the system prompt. A
  conversation with any other speaker is dropped.
- Messages of the same speaker in a row are one.
- Replies before the first question are left out: the data set cuts long conversations into parts, and what
  such a reply answers is in another part.
- A conversation ends before its first empty message: what follows would answer something that is not there.
- What follows the last reply is left out. A conversation of which nothing is left is dropped.
- An id that was used before gets `#2`, `#3` and so on.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jobs.workload.conversation import Conversation, Message
from jobs.workload.dialogue import ASSISTANT, USER, clean, turns_of
from jobs.workload.import_log import ImportLog
from jobs.workload.json_file import json_entries

SPEAKERS = {
    **dict.fromkeys(("human", "user"), USER),
    **dict.fromkeys(("gpt", "chatgpt", "bing", "bard", "assistant", "model", "function_call"), ASSISTANT),
    **dict.fromkeys(("tool", "observation", "function_response"), "tool"),
    "system": "system",
}
"""Speaker of the data set -> role of a chat."""


def read_sharegpt(paths: Sequence[Path], log: ImportLog) -> Iterator[Conversation]:
    """Yield the conversations of all files, in order; `log` counts what was dropped, with the reason.

    Raises:
        WorkloadError: a file is not JSON; the message names it.
    """
    used: dict[str, int] = {}
    for path in paths:
        for number, (where, entry) in enumerate(json_entries(path), start=1):
            messages = _messages(entry, log)
            if messages is None:
                continue
            messages = _trimmed(messages, log)
            if not any(message.role == ASSISTANT for message in messages):
                log.drop("no question with a reply is left of it")
                continue
            given = entry.get("id")
            name = f"{path.stem}-{number}" if given in (None, "") else str(given)
            base = name
            while name in used:  # `x#2` may be an id of the file
                used[base] += 1
                name = f"{base}#{used[base]}"
            used[name] = 1
            if name != base:
                log.note("an id that several conversations have is continued with #2, #3, ...")
            yield Conversation(id=name, turns=turns_of(messages, where=where, log=log))


def _messages(entry: Any, log: ImportLog) -> list[Message] | None:
    """Return the chat of one entry; None for one that is dropped."""
    said = entry.get("conversations") if isinstance(entry, Mapping) else None
    if not isinstance(said, list):
        log.drop("it is no object with a list `conversations`")
        return None
    messages = []
    for part in said:
        speaker = part.get("from") if isinstance(part, Mapping) else None
        role = SPEAKERS.get(speaker) if isinstance(speaker, str) else None
        if role is None:
            log.drop(f"it has a message from {speaker!r}, who is nobody we know")
            return None
        value = part.get("value")
        if value is not None and not isinstance(value, str):
            log.drop("a message of it is no text")
            return None
        messages.append(Message(role=role, content=clean(value or "")))
    return messages


def _trimmed(messages: Sequence[Message], log: ImportLog) -> list[Message]:
    """Return the part of a conversation that can be replayed, without two messages of one role in a row."""
    kept: list[Message] = []
    asked = False
    for index, message in enumerate(messages):
        if not message.content.strip():
            log.drop(
                "a conversation ends before its first empty message",
                what="message",
                count=len(messages) - index,
            )
            break
        asked = asked or message.role == USER
        if message.role == ASSISTANT and not asked:
            log.drop("a reply before the first question answers nothing here", what="message")
        elif kept and kept[-1].role == message.role:
            kept[-1] = Message(role=message.role, content=f"{kept[-1].content}\n{message.content}")
        else:
            kept.append(message)
    return kept if asked else []
