"""Importer of OpenAI chat JSONL: one `{"messages": [...]}` a line, with an optional `id`.

The rules:
- Assistant messages are the replies; tool calls are written as JSON text after them.
- A line without any assistant message is a request without a reply; see `specload workload record`.
- What follows a conversation's last reply is left out, and so are definitions of `tools`: prompts hold the
  messages only.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jobs.errors import WorkloadError
from jobs.workload.conversation import Conversation
from jobs.workload.dialogue import message_of, turns_of
from jobs.workload.import_log import ImportLog
from jobs.workload.json_file import json_lines


def read_chat_jsonl(paths: Sequence[Path], log: ImportLog) -> Iterator[Conversation]:
    """Yield the conversations of all files, in order.

    A line without `id` is called after its file and line number, which stay the same for the same file.

    Raises:
        WorkloadError: a file or line is not of this form; the message names it.
    """
    for path in paths:
        for number, (where, value) in enumerate(json_lines(path), start=1):
            messages = value.get("messages") if isinstance(value, Mapping) else None
            if not isinstance(messages, list) or not messages:
                message = f'{where}: expected an object with a list `messages`, as in {{"messages": [...]}}'
                raise WorkloadError(message)
            if value.get("tools") or value.get("functions"):
                log.drop("prompts hold the messages only", what="list of tool definitions")
            turns = turns_of([message_of(entry, where=where) for entry in messages], where=where, log=log)
            given = value.get("id")
            name = f"{path.stem}-{number}" if given in (None, "") else str(given)
            yield Conversation(id=name, turns=turns)
