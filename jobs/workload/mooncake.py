"""Importer of Mooncake traces: JSON Lines of `timestamp` (ms), `input_length`, `output_length`, `hash_ids`.

The rules:
- A hash id stands for a block of 512 tokens; the last block of a prompt may be partly filled. Ids of one file
  are one namespace: equal ids are equal tokens.
- The rows have no session. Which rows make one conversation is told by `jobs/workload/linking.py`.
- A turn's gap is the time since the previous turn's arrival. The trace does not say how long that reply took,
  so the gap is an upper bound of the pause.
"""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jobs.errors import WorkloadError
from jobs.nouns import are, counted
from jobs.workload.fields import hash_ids, number, whole
from jobs.workload.import_log import ImportLog
from jobs.workload.json_file import json_lines
from jobs.workload.linking import RULE, links
from jobs.workload.trace import TraceConversation, TraceTurn

BLOCK = 512
"""Tokens of a block."""
_MS = 1000.0


class _Rows:
    """The rows of one file, in arrays: about 8 bytes a block."""

    def __init__(self) -> None:
        self.blocks = array("q")
        self.ends = array("q")
        self.inputs = array("q")
        self.outputs = array("q")
        self.times = array("d")
        self.lines = array("q")

    def turn(self, row: int, gap: float | None) -> TraceTurn:
        start = self.ends[row - 1] if row else 0
        return TraceTurn(
            blocks=self.blocks[start : self.ends[row]],
            block_size=BLOCK,
            input_tokens=self.inputs[row],
            output_tokens=self.outputs[row],
            gap=gap,
        )


def read_mooncake(paths: Sequence[Path], log: ImportLog) -> Iterator[TraceConversation]:
    """Yield the conversations of each file in order of their first row, called after file and row.

    Raises:
        WorkloadError: a row is not of this form; the message names the line.
    """
    for path in paths:
        rows = _read(path, log)
        following = links(rows.blocks, rows.ends, array("q", (tokens // BLOCK for tokens in rows.inputs)))
        continues = set(following)
        begin = min(rows.times, default=0.0)
        conversations = 0
        for row, line in enumerate(rows.lines):
            if row in continues:
                continue
            conversations += 1
            turns = [rows.turn(row, None)]
            here = row
            while (after := following[here]) >= 0:
                if rows.times[after] < rows.times[here]:
                    message = (
                        f"{path}, line {rows.lines[after]}: it continues line {rows.lines[here]} and its "
                        "timestamp lies before it; sort the file by timestamp"
                    )
                    raise WorkloadError(message)
                turns.append(rows.turn(after, (rows.times[after] - rows.times[here]) / _MS))
                here = after
            yield TraceConversation(
                id=f"{path.stem}-{line}",
                turns=tuple(turns),
                start=(rows.times[row] - begin) / _MS,
                scope=path.stem,
            )
        log.note(
            f"{path.name}: {counted(len(rows.lines), 'row')} without a session "
            f"{are(len(rows.lines), one='makes', many='make')} {counted(conversations, 'conversation')}"
        )
    log.note(RULE)
    log.note(
        "a gap is the time between two arrivals of a conversation: the trace does not say how much of it the "
        "reply took"
    )


def _read(path: Path, log: ImportLog) -> _Rows:
    rows = _Rows()
    for line, (where, value) in enumerate(json_lines(path), start=1):
        if not isinstance(value, Mapping):
            message = f"{where}: expected an object with timestamp, input_length, output_length and hash_ids"
            raise WorkloadError(message)
        tokens = whole(value, "input_length", where=where)
        output = whole(value, "output_length", where=where)
        ids = hash_ids(value, where=where)
        if len(ids) != -(-tokens // BLOCK):
            message = (
                f"{where}: {len(ids)} hash_ids for an input_length of {tokens}, which is "
                f"{counted(-(-tokens // BLOCK), 'block')} of {BLOCK} tokens; the file is damaged, or its "
                "blocks differ"
            )
            raise WorkloadError(message)
        time = number(value, "timestamp", where=where)
        if not tokens or not output:
            log.drop("it has no prompt or no reply", what="row")
            continue
        rows.blocks.extend(ids)
        rows.ends.append(len(rows.blocks))
        rows.inputs.append(tokens)
        rows.outputs.append(output)
        rows.times.append(time)
        rows.lines.append(line)
    return rows
