"""Reading JSON from workload files, with errors that say what is wrong with which line.

Files of many entries are read one entry after another: memory is that of one entry, however long the file.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import ijson

from jobs.errors import WorkloadError
from jobs.workload.open_file import opened

_BOM = b"\xef\xbb\xbf"


def read_text(path: Path) -> str:
    """Return the text of a workload file.

    Raises:
        WorkloadError: it is missing, unreadable, empty or not UTF-8.
    """
    with _opened(path) as stream:
        return _decoded(stream.read(), path=path)


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
    except RecursionError as error:
        message = f"{where}: the JSON is nested too deeply to be a conversation"
        raise WorkloadError(message) from error
    except ValueError as error:  # Python reads no whole number of thousands of digits
        message = f"{where}: a number has too many digits to be one of a workload"
        raise WorkloadError(message) from error


def json_lines(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield (place for errors, value) of each non-empty line of a JSON Lines file.

    Raises:
        WorkloadError: the file is missing, empty or not UTF-8, or a line is no JSON.
    """
    with _opened(path) as stream:
        offset = 0
        # Lines of bytes end at a newline only; text would also end at U+2028, which JSON allows in strings.
        for number, line in enumerate(stream, start=1):
            if not line.isspace():
                where = f"{path}, line {number}"
                yield where, parse(_decoded(line, path=path, offset=offset), where=where)
            offset += len(line)


def json_entries(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield (place for errors, value) of each entry of a JSON array, of JSON Lines, or of one JSON object.

    Raises:
        WorkloadError: the file is missing, empty or not UTF-8, or not JSON.
    """
    with _opened(path) as stream:
        first = _first_byte(stream)
        # An array may be one line: nothing reads it as such.
        one_object = first == b"{" and not _is_json(stream.readline())
    if first == b"[":
        yield from _array(path)
    elif one_object:
        yield str(path), parse(read_text(path), where=str(path))
    else:
        yield from json_lines(path)


def _array(path: Path) -> Iterator[tuple[str, Any]]:
    count = 0
    with _opened(path) as stream:
        stream.seek(len(_BOM) if stream.read(len(_BOM)) == _BOM else 0)
        try:
            for value in ijson.items(stream, "item", use_float=True):
                count += 1
                yield f"{path}, entry {count}", value
        except ijson.IncompleteJSONError as error:
            # The parser says the same of a file that was cut off and of bytes that are no JSON.
            text = " ".join(str(error).split())
            cut = "premature" in text or "incomplete" in text.lower()
            what = "the JSON is truncated; fetch it again" if cut else f"not JSON ({text[:120]})"
            message = f"{path}, after entry {count}: {what}"
            raise WorkloadError(message) from error
        except ijson.JSONError as error:
            message = f"{path}, after entry {count}: not JSON ({' '.join(str(error).split())[:120]})"
            raise WorkloadError(message) from error


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a workload file that holds something."""
    with opened(path) as stream:
        if not _first_byte(stream):
            message = f"workload file {path} is empty"
            raise WorkloadError(message)
        stream.seek(0)
        yield stream


def _first_byte(stream: IO[bytes]) -> bytes:
    """Return the first byte that is neither white space nor a byte-order mark, and go before it."""
    stream.seek(len(_BOM) if stream.read(len(_BOM)) == _BOM else 0)
    while (byte := stream.read(1)).isspace():
        pass
    stream.seek(-len(byte), 1)
    return byte


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError):
        return False
    except (RecursionError, ValueError):  # nested too deeply, or a number of too many digits
        return True  # whoever reads the line says what is wrong with it
    return True


def _decoded(data: bytes, *, path: Path, offset: int = 0) -> str:
    try:
        return data.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        at = offset + error.start
        message = f"workload file {path} is not UTF-8 text (byte {at}); is it compressed or binary?"
        raise WorkloadError(message) from error
