"""Importer of the Azure LLM inference traces: CSV of `TIMESTAMP`, `ContextTokens`, `GeneratedTokens`.

Every row is a conversation of one turn. A row without prompt or reply is dropped and counted.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from jobs.errors import WorkloadError
from jobs.workload.fields import whole
from jobs.workload.import_log import ImportLog
from jobs.workload.length_rows import RULE, csv_rows, length_turn
from jobs.workload.trace import TraceConversation

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")


def read_azure(paths: Sequence[Path], log: ImportLog) -> Iterator[TraceConversation]:
    """Yield a conversation a row, called after file and line.

    Raises:
        WorkloadError: a row is not of this form; the message names the line.
    """
    log.note(RULE)
    for path in paths:
        begin: datetime | None = None
        for where, line, row in csv_rows(path, COLUMNS):
            time = _time(row["TIMESTAMP"], where=where)
            begin = time if begin is None else begin
            start = (time - begin).total_seconds()
            if start < 0:
                message = f"{where}: the time lies before the first row's; sort the file by TIMESTAMP"
                raise WorkloadError(message)
            tokens = whole(row, "ContextTokens", where=where)
            output = whole(row, "GeneratedTokens", where=where)
            if not tokens or not output:
                log.drop("it has no prompt or no reply", what="row")
                continue
            name = f"{path.stem}-{line}"
            turn = length_turn(0, tokens, output)
            yield TraceConversation(id=name, turns=(turn,), start=start, scope=name)


def _time(text: str, *, where: str) -> datetime:
    """Read a date and time; without a zone it is UTC, and digits after the microsecond are cut."""
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        message = f"{where}: TIMESTAMP is {text!r}, not a date and time such as 2023-11-16 18:17:03.97996"
        raise WorkloadError(message) from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
