"""Importer of SWE-agent trajectories (`.traj`): one agentic coding conversation a file.

The rules:
- `history` is the conversation. Assistant messages are the replies; tool calls are written as JSON text after
  them, because that is what the model had to emit.
- Messages marked `is_demo` (worked examples put before the task) are history of the first turn. Nobody
  replays an assistant message among them.
- What follows the last assistant message has no recorded reply and is left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jobs.errors import WorkloadError
from jobs.workload.conversation import Conversation
from jobs.workload.dialogue import message_of, turns_of
from jobs.workload.import_log import ImportLog
from jobs.workload.json_file import parse, read_text


def read_swe_agent(paths: Sequence[Path], log: ImportLog) -> Iterator[Conversation]:
    """Yield one conversation a file, called after the file.

    Raises:
        WorkloadError: a file is not a trajectory; the message names it.
    """
    for path in paths:
        value = parse(read_text(path), where=str(path))
        history = value.get("history") if isinstance(value, Mapping) else None
        if not isinstance(history, list) or not history:
            message = f"{path}: expected a SWE-agent trajectory, an object with a list `history`"
            raise WorkloadError(message)
        messages = [message_of(entry, where=f"{path}, history[{i}]") for i, entry in enumerate(history)]
        demos = [index for index, entry in enumerate(history) if entry.get("is_demo")]
        if demos:
            log.note("messages marked is_demo are history of the first turn, replies among them too")
        turns = turns_of(messages, where=str(path), log=log, history=max(demos, default=-1) + 1)
        yield Conversation(id=path.name.removesuffix(".traj"), turns=turns)
