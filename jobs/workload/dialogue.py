"""From a flat list of chat messages to turns: the step that all importers share."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from jobs.errors import WorkloadError
from jobs.workload.conversation import Message, Turn

ASSISTANT = "assistant"
ROLES = ("system", "developer", "user", ASSISTANT, "tool")


def message_of(data: Any, *, where: str) -> Message:
    """Return one message of OpenAI's chat form; tool calls become JSON text at the end of the content.

    Raises:
        WorkloadError: `data` is no chat message; `where` names the file and line in the message.
    """
    if not isinstance(data, Mapping):
        message = f"{where}: a message is {type(data).__name__}, not an object with `role` and `content`"
        raise WorkloadError(message)
    role = data.get("role")
    if role not in ROLES:
        message = f"{where}: a message has the role {role!r}; known roles: {', '.join(ROLES)}"
        raise WorkloadError(message)
    parts = [_text(data.get("content"), where=where)]
    calls = data.get("tool_calls")
    if calls:
        parts.append(json.dumps(calls, ensure_ascii=False, separators=(",", ":")))
    return Message(role=role, content="\n".join(part for part in parts if part))


def turns_of(messages: Sequence[Message], *, where: str, history: int = 0) -> tuple[Turn, ...]:
    """Cut `messages` after each assistant reply.

    Assistant messages that follow each other are one reply. Assistant messages before the first user message,
    and all among the first `history` messages, are history that no request reproduces. What follows the last
    reply has no recorded answer and is left out.

    Raises:
        WorkloadError: no user message, or no assistant reply to one.
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
        asked = asked or (message.role == "user" and index >= history)
        pending.append(message)
    if not asked:
        problem = f"{where}: the conversation has no user message; a replay needs one to send"
        raise WorkloadError(problem)
    if not turns:
        problem = (
            f"{where}: the conversation has no assistant reply; replays pin each request to the length "
            "of its recorded reply, so add the replies"
        )
        raise WorkloadError(problem)
    return tuple(turns)


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
