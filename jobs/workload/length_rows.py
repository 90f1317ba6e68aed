"""CSV files of times and lengths, and the turns made of them: nothing is known of what the requests share."""

import csv
import io
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jobs.errors import WorkloadError
from jobs.workload.open_file import opened
from jobs.workload.trace import TraceTurn

BLOCK = 512
"""Tokens of a made-up block."""
RULE = (
    "the trace has lengths and times only: every request gets contents of its own, so nothing is shared and "
    "no prefix cache can help"
)


def csv_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, int, Mapping[str, str]]]:
    """Yield (place for errors, line, row by column name) of a CSV file whose first line names the columns.

    Raises:
        WorkloadError: the file is missing, empty or not text, or a column is missing.
    """
    try:
        with opened(path) as stream, io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            names = [name.strip() for name in reader.fieldnames or ()]
            missing = [name for name in columns if name not in names]
            if missing:
                message = (
                    f"{path}: the first line must name the columns; {', '.join(missing)} "
                    f"{'is' if len(missing) == 1 else 'are'} missing (found: {', '.join(names) or 'nothing'})"
                )
                raise WorkloadError(message)
            twice = [name for name in columns if names.count(name) > 1]
            if twice:
                message = f"{path}: the first line names {', '.join(twice)} twice; remove one of the columns"
                raise WorkloadError(message)
            reader.fieldnames = names
            for row in reader:
                where = f"{path}, line {reader.line_num}"
                if None in row or None in row.values():
                    message = f"{where}: the row has not as many fields as the first line names"
                    raise WorkloadError(message)
                yield where, reader.line_num, row
    except (UnicodeDecodeError, csv.Error) as error:
        message = f"workload file {path} is no CSV text ({error}); is it compressed or binary?"
        raise WorkloadError(message) from error


def length_turn(first_block: int, tokens: int, output: int, gap: float | None = None) -> TraceTurn:
    """Return a turn of blocks that count up from `first_block`."""
    count = -(-tokens // BLOCK)
    return TraceTurn(
        blocks=array("q", range(first_block, first_block + count)),
        block_size=BLOCK,
        input_tokens=tokens,
        output_tokens=output,
        gap=gap,
    )
