"""Which format a workload file has, told by its suffix and the names in its first object."""

import codecs
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from jobs.errors import WorkloadError
from jobs.workload.open_file import opened

_HEAD_BYTES = 2**20
_MARKS: tuple[tuple[str, frozenset[str]], ...] = (
    ("swe_agent", frozenset({"history", "trajectory"})),
    ("swe_agent", frozenset({"trajectory", "environment"})),
    ("weka", frozenset({"requests", "block_size"})),
    ("mooncake", frozenset({"hash_ids", "input_length"})),
    ("abench", frozenset({"session_id", "turns"})),
    ("spec_bench", frozenset({"question_id", "turns"})),
    ("sharegpt", frozenset({"conversations"})),
    ("recorded", frozenset({"messages", "turns"})),
    ("chat_jsonl", frozenset({"messages"})),
    ("azure", frozenset({"ContextTokens", "GeneratedTokens"})),
    ("burstgpt", frozenset({"Request tokens", "Response tokens"})),
)
"""Format -> names that only its objects, or its header line, hold together; the first that fits counts."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]', re.DOTALL)


def guess_format(paths: Sequence[Path]) -> str:
    """Return the format of files that belong together.

    Raises:
        WorkloadError: a file is missing, unlike all formats, or unlike the file before it.
    """
    found = {path: _guess(path) for path in paths}
    first, *others = found
    for path in others:
        if found[path] != found[first]:
            message = (
                f"{first} looks like {found[first]} and {path} like {found[path]}: files that are inspected "
                "together have one format; name it with --format, or inspect them one by one"
            )
            raise WorkloadError(message)
    return found[first]


def _guess(path: Path) -> str:
    if path.suffix == ".traj":
        return "swe_agent"
    head = _head(path)
    if path.suffix == ".csv" or head.lstrip()[:1] not in ("{", "["):
        names = {name.strip().strip('"') for name in head.split("\n", 1)[0].split(",")}
    else:
        names = set(_names(head))
    for name, marks in _MARKS:
        if marks <= names:
            return name
    seen = ", ".join(sorted(names))[:80] or "nothing readable"
    message = (
        f"{path}: its format cannot be told (its first record has: {seen}); name it with --format: "
        f"{', '.join(dict.fromkeys(name for name, _ in _MARKS))}"
    )
    raise WorkloadError(message)


def _head(path: Path) -> str:
    with opened(path, advice="") as file:
        head = file.read(_HEAD_BYTES)
    if not head.strip():
        message = f"workload file {path} is empty"
        raise WorkloadError(message)
    try:
        # Not the whole file: a character that the end of the head cuts is no fault.
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    except UnicodeDecodeError as error:
        raise WorkloadError(_no_text(path, error.start)) from error
    if "\0" in text:  # as in UTF-16, and in binary files
        raise WorkloadError(_no_text(path, head.index(b"\0")))
    return text


def _no_text(path: Path, at: int) -> str:
    return (
        f"workload file {path} is not UTF-8 text (byte {at}); is it compressed or binary? Unpack it, or "
        "write it as UTF-8"
    )


def _names(head: str) -> Iterator[str]:
    """Yield the keys of the first object, which may stand in a list; the text may end anywhere."""
    base = 2 if head.lstrip().startswith("[") else 1
    depth = 0
    last: str | None = None
    for match in _TOKEN.finditer(head):
        part = match[0]
        if part in "{[":
            depth += 1
        elif part in "}]":
            depth -= 1
            if depth < base:
                return
        elif part == ":" and depth == base and last is not None:
            yield last
        last = part[1:-1] if part.startswith('"') else None
