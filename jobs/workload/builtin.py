"""The small sets of conversations that the project brings along, so that it runs without any file."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from jobs.errors import WorkloadError
from jobs.workload.chat_jsonl import read_chat_jsonl
from jobs.workload.conversation import Conversation
from jobs.workload.import_log import ImportLog

DATA = Path(__file__).parent / "data"


def read_set(name: str, paths: Sequence[Path], log: ImportLog) -> Iterator[Conversation]:
    """Yield the conversations of the built-in set `name`.

    Raises:
        WorkloadError: paths were given, which a built-in set would silently ignore.
    """
    if paths:
        message = "a built-in workload reads no files; set workload.format=chat_jsonl to read workload.paths"
        raise WorkloadError(message)
    return read_chat_jsonl([DATA / f"{name}.jsonl"], log)


BUILTIN = {
    "builtin": partial(read_set, "builtin"),
    "builtin_short": partial(read_set, "short"),
}
"""Format -> reader. `builtin`: coding, operations and support dialogues of two to four turns;
`builtin_short`: one turn of about fifty prompt tokens, for engines on CPU cores."""
