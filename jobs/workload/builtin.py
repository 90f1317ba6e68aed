"""The small set of conversations that the project brings along, so that it runs without any file."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from jobs.errors import WorkloadError
from jobs.workload.chat_jsonl import read_chat_jsonl
from jobs.workload.conversation import Conversation

FILE = Path(__file__).parent / "data" / "builtin.jsonl"


def read_builtin(paths: Sequence[Path]) -> Iterator[Conversation]:
    """Yield the built-in conversations: coding, operations and support dialogues of two to four turns.

    Raises:
        WorkloadError: paths were given, which this set would silently ignore.
    """
    if paths:
        message = (
            "the workload format `builtin` reads no files; "
            "set workload.format=chat_jsonl to read workload.paths"
        )
        raise WorkloadError(message)
    return read_chat_jsonl([FILE])
