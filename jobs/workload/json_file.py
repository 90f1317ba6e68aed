"""Reading JSON from workload files, with errors that say what is wrong with which line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jobs.errors import WorkloadError


def read_text(path: Path) -> str:
    """Return the text of a workload file.

    Raises:
        WorkloadError: it is missing, unreadable, empty or not UTF-8.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        message = f"workload file {path} does not exist; check workload.paths"
        raise WorkloadError(message) from None
    except OSError as error:
        message = f"workload file {path} cannot be read ({error.strerror}); check workload.paths"
        raise WorkloadError(message) from error
    except UnicodeDecodeError as error:
        message = f"workload file {path} is not UTF-8 text (byte {error.start}); is it compressed or binary?"
        raise WorkloadError(message) from error
    if not text.strip():
        message = f"workload file {path} is empty"
        raise WorkloadError(message)
    return text


def parse(text: str, *, where: str) -> Any:
    """Return the JSON value of `text`; `where` names its place for errors.

    Raises:
        WorkloadError: it is truncated, or no JSON.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        # JSON that was cut off fails where the text ends, or at the opening quote of the string that was cut.
        cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
        if cut and text.lstrip()[:1] in "{[":
            length = len(text.rstrip())
            message = f"{where}: the JSON is truncated (it ends after {length} characters); fetch it again"
        else:
            message = (
                f"{where}: not JSON ({error.msg} at column {error.colno}, line {error.lineno} of the text)"
            )
        raise WorkloadError(message) from error


def json_lines(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield (place for errors, value) of each non-empty line of a JSON Lines file."""
    # `splitlines` would also cut at U+2028, which JSON allows inside strings.
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            where = f"{path}, line {number}"
            yield where, parse(line, where=where)
