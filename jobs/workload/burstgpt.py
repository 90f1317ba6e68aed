"""Importer of BurstGPT: CSV of `Timestamp` (s), `Request tokens`, `Response tokens`, and more.

The rules:
- Columns are found by name; the older files have no `Session ID` and no `Elapsed time`.
- Rows of one session are the turns of one conversation, in order; a row without session is a conversation of
  its own. Nothing is known of what the turns share.
- A turn's gap is the time from the end of the reply before (`Timestamp` plus `Elapsed time`) to its own
  `Timestamp`; unknown without `Elapsed time`.
- `Response tokens` 0 is a failed request: dropped and counted.
"""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jobs.errors import WorkloadError
from jobs.workload.fields import number, whole
from jobs.workload.import_log import ImportLog
from jobs.workload.length_rows import RULE, csv_rows, length_turn
from jobs.workload.trace import TraceConversation, TraceTurn

COLUMNS = ("Timestamp", "Request tokens", "Response tokens")
SESSION = "Session ID"
ELAPSED = "Elapsed time"
_NO_TIME = -1.0


class _Rows:
    """The successful rows of one file, in arrays of about 40 bytes a row."""

    def __init__(self) -> None:
        self.inputs = array("q")
        self.outputs = array("q")
        self.times = array("d")
        self.elapsed = array("d")
        self.lines = array("q")
        self.sessions: dict[str, array[int]] = {}
        """Name of a session (or of a row without one) -> its rows, in the order of first mention."""

    def add(self, row: Mapping[str, str], line: int, tokens: int, output: int, *, where: str) -> None:
        session = (row.get(SESSION) or "").strip()
        has_elapsed = bool((row.get(ELAPSED) or "").strip())
        self.sessions.setdefault(session or f"\0{line}", array("q")).append(len(self.lines))
        self.inputs.append(tokens)
        self.outputs.append(output)
        self.times.append(number(row, "Timestamp", where=where))
        self.elapsed.append(number(row, ELAPSED, where=where) if has_elapsed else _NO_TIME)
        self.lines.append(line)


def read_burstgpt(paths: Sequence[Path], log: ImportLog) -> Iterator[TraceConversation]:
    """Yield the conversations of each file in order of their first row, called after file and first line.

    Raises:
        WorkloadError: a row is not of this form; the message names the line.
    """
    log.note(RULE)
    for path in paths:
        rows = _Rows()
        for where, line, row in csv_rows(path, COLUMNS):
            tokens = whole(row, "Request tokens", where=where)
            output = whole(row, "Response tokens", where=where)
            if not output:
                log.drop("the request failed (Response tokens 0)", what="row")
            elif not tokens:
                log.drop("it has no prompt", what="row")
            else:
                rows.add(row, line, tokens, output, where=where)
        yield from _conversations(rows, path)


def _conversations(rows: _Rows, path: Path) -> Iterator[TraceConversation]:
    begin = min(rows.times, default=0.0)
    for members in rows.sessions.values():
        turns: list[TraceTurn] = []
        block = 0
        before: int | None = None
        for row in members:
            gap = None
            if before is not None:
                _check_order(rows, before, row, path)
                if rows.elapsed[before] != _NO_TIME:
                    gap = max(0.0, rows.times[row] - rows.times[before] - rows.elapsed[before])
            turns.append(length_turn(block, rows.inputs[row], rows.outputs[row], gap))
            block += len(turns[-1].blocks)
            before = row
        name = f"{path.stem}-{rows.lines[members[0]]}"
        yield TraceConversation(id=name, turns=tuple(turns), start=rows.times[members[0]] - begin, scope=name)


def _check_order(rows: _Rows, before: int, row: int, path: Path) -> None:
    if rows.times[row] < rows.times[before]:
        message = (
            f"{path}, line {rows.lines[row]}: its time lies before that of line {rows.lines[before]} of the "
            "same session; sort the file by Timestamp"
        )
        raise WorkloadError(message)
