"""From a flat list of chat messages to turns: the step that all importers of text share."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from jobs.errors import WorkloadError
from jobs.workload.conversation import Message, Turn
from jobs.workload.import_log import ImportLog

ASSISTANT = "assistant"
USER = "user"
ROLES = ("system", "developer", USER, ASSISTANT, "tool")
_OLD_ROLES = {"function": "tool"}
"""Roles that OpenAI's chat form has given up, and what they are called now."""


def message_of(data: Any, *, where: str) -> Message:
    """Return one message of OpenAI's chat form; tool calls become JSON text at the end of the content.

    Raises:
        WorkloadError: `data` is no chat message; `where` names the file and line in the message.
    """
    if not isinstance(data, Mapping):
        message = f"{where}: a message is {type(data).__name__}, not an object with `role` and `content`"
        raise WorkloadError(message)
    role = data.get("role")
    role = _OLD_ROLES.get(str(role), role)
    if role not in ROLES:
        message = f"{where}: a message has the role {role!r}; known roles: {', '.join(ROLES)}"
        raise WorkloadError(message)
    calls = data.get("tool_calls") or data.get("function_call")
    if calls and not isinstance(calls, list | Mapping):
        message = f"{where}: a message's tool calls are {type(calls).__name__}, not a list of objects"
        raise WorkloadError(message)
    if "content" not in data and not calls:
        message = (
            f"{where}: a message of role {role!r} has no `content` (its keys: {', '.join(map(str, data))})"
        )
        raise WorkloadError(message)
    parts = [_text(data.get("content"), where=where)]
    if calls:
        parts.append(json.dumps(calls, ensure_ascii=False, separators=(",", ":")))
    return Message(role=role, content=clean("\n".join(part for part in parts if part)))


def turns_of(
    messages: Sequence[Message], *, where: str, log: ImportLog, history: int = 0
) -> tuple[Turn, ...]:
    """Cut `messages` after each assistant reply.

    Assistant messages that follow each other are one reply. Assistant messages before the first user message,
    and all among the first `history` messages, are history that no request reproduces. What follows the last
    reply has no recorded answer and is left out; a conversation without any reply is one turn that lacks it.

    Raises:
        WorkloadError: no user message.
    """
    turns: list[Turn] = []
    pending: list[Message] = []
    asked = False
    for index, message in enumerate(messages):
        if message.role == ASSISTANT and index >= history and asked:
            if pending:
                turns.append(Turn(messages=tuple(pending), reply=message.content))
                pending = []
            else:
                joined = f"{turns[-1].reply}\n{message.content}"
                turns[-1] = Turn(messages=turns[-1].messages, reply=joined)
            continue
        asked = asked or (message.role == USER and index >= history)
        pending.append(message)
    if not asked:
        problem = f"{where}: the conversation has no user message; a replay needs one to send"
        raise WorkloadError(problem)
    if not turns:
        return (Turn(messages=tuple(pending), reply=None),)
    if pending:
        log.drop(
            "they follow a conversation's last reply, so nobody answered them",
            what="message",
            count=len(pending),
        )
    return tuple(turns)


def clean(text: str) -> str:
    """Return `text` with lone surrogates, which JSON can hold and no tokenizer takes, as U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        # Two halves that were escaped one by one are one character again; a half alone is none.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _text(content: Any, *, where: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        parts = [part.get("text") if isinstance(part, Mapping) else None for part in content]
        if all(isinstance(part, str) for part in parts):
            return "".join(str(part) for part in parts)
    message = (
        f"{where}: a message's content is neither text nor a list of text parts; only text can be replayed"
    )
    raise WorkloadError(message)
