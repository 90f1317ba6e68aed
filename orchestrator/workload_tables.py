"""A look into workload files, and the tables that tell what is there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from jobs.workload.conversation import HASHED, RECORDED, Conversation
from jobs.workload.formats import format_named, read_conversations
from jobs.workload.import_log import ImportLog
from jobs.workload.inspection import Inspection, Spread
from jobs.workload.shapes import text_shape, trace_shape
from jobs.workload.tokenizer import Tokenizer

LENGTHS_ONLY = ("azure", "burstgpt")
"""Formats that tell lengths and times, so that nobody knows which prompts are alike."""
_UNKNOWN = "-"
_VALIDITY = {
    RECORDED: "recorded (real text: acceptance on it means something)",
    HASHED: "hashed (text is made up for it: acceptance on it means nothing)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What one look at the files found."""

    inspection: Inspection
    """Statistics of all conversations."""
    log: ImportLog
    """What the importer says: rules, and what it left out and why."""
    unanswered: int
    """Turns without a recorded reply."""
    is_text: bool
    """Whether the conversations are text, counted by a tokenizer; else a trace that has counts of its own."""

    @property
    def content(self) -> str:
        """Content validity in words."""
        return _VALIDITY.get(self.log.validity, self.log.validity)


def look(files: Sequence[Path], chosen: str, tokenizer: Tokenizer, block_size: int) -> Looked:
    """Read the files, one conversation after another.

    Raises:
        WorkloadError: unknown format, a damaged file, or nothing left of the files.
    """
    log = ImportLog(validity=format_named(chosen).validity)
    inspection = Inspection()
    unanswered = 0
    is_text = False
    for conversation in read_conversations(format=chosen, paths=files, log=log):
        if isinstance(conversation, Conversation):
            is_text = True
            unanswered += sum(turn.reply is None for turn in conversation.turns)
            shape = text_shape(conversation, tokenizer, block_size)
        else:
            shape = trace_shape(conversation, content_known=chosen not in LENGTHS_ONLY)
        inspection.add(shape)
    return Looked(inspection=inspection, log=log, unanswered=unanswered, is_text=is_text)


def tables(looked: Looked, *, max_context: int | None) -> RenderableType:
    """Return what a look found: counts and reuse, spreads, and what a reader must know.

    Args:
        looked: What was found.
        max_context: Say how many conversations need more tokens than this; None for no such line.
    """
    parts: list[RenderableType] = [_facts(looked, max_context), Text(), _spreads(looked.inspection), Text()]
    parts += [Text(f"- {line}") for line in _remarks(looked)]
    return Group(*parts)


def _facts(looked: Looked, max_context: int | None) -> Table:
    table = Table(show_header=False, show_edge=False, box=None)
    table.add_column()
    table.add_column(justify="right")
    table.add_column(style="dim")
    for row in _fact_rows(looked, max_context):
        table.add_row(*row)
    return table


def _fact_rows(looked: Looked, max_context: int | None) -> Iterator[tuple[str, str, str]]:
    found = looked.inspection
    yield "conversations", f"{found.conversations:,}", ""
    answers = f"{looked.unanswered:,} of them without a recorded reply" if looked.unanswered else ""
    yield "requests", f"{found.requests:,}", answers
    if found.block_sizes:
        size = ", ".join(str(size) for size in sorted(found.block_sizes))
        blocks = f"whole blocks of {size} tokens{'' if looked.is_text else ', the size of the trace'}"
        hit = f"of the prompt tokens are served by an endless cache, in {blocks}"
        yield "ideal prefix-hit rate", _percent(found.hit_rate), hit
        again = (
            f"of {found.blocks:,} blocks came before, {found.blocks - found.repeated_blocks:,} are distinct"
        )
        yield "repeated blocks", _percent(found.block_hit_rate), again
        shared = "of the first turns' prompt tokens are what another conversation starts with too"
        yield "shared first turns", _percent(found.first_turn_sharing), shared
    else:
        yield (
            "ideal prefix-hit rate",
            _UNKNOWN,
            "the trace tells lengths only: nobody knows what prompts share",
        )
    if found.starts:
        span = max(found.starts) - min(found.starts)
        yield (
            "arrivals",
            _seconds(span),
            f"from the first conversation to the last ({len(found.starts):,} known)",
        )
    else:
        yield "arrivals", _UNKNOWN, "the files have no times of arrival"
    if max_context is not None:
        long = sum(needed > max_context for needed in found.context_tokens)
        yield f"over {max_context:,} tokens", f"{long:,}", "conversations that do not fit this context whole"


def _spreads(inspection: Inspection) -> Table:
    table = Table(show_edge=False)
    for name in ("", "min", "median", "mean", "p95", "max", "of"):
        table.add_column(name, justify="left" if not name else "right")
    for name, values, digits in (
        ("turns of a conversation", inspection.turns, 0),
        ("prompt tokens of a request", inspection.input_tokens, 0),
        ("reply tokens of a request", inspection.output_tokens, 0),
        ("context a conversation needs", inspection.context_tokens, 0),
        ("gap before a request (s)", inspection.gaps, 2),
    ):
        spread = Spread.of(values)
        if spread is None:
            table.add_row(name, *[_UNKNOWN] * 5, "0")
            continue
        whole = (spread.minimum, spread.median, spread.mean, spread.p95, spread.maximum)
        cells = [f"{value:,.{digits}f}" for value in whole]
        cells[2] = f"{spread.mean:,.2f}"
        table.add_row(name, *cells, f"{spread.count:,}")
    return table


def _remarks(looked: Looked) -> Iterator[str]:
    yield f"content: {looked.content}"
    yield from looked.log.notes
    if looked.unanswered:
        yield (
            "replies are missing: `specload workload record` has the baseline write them; until then later "
            "turns have shorter prompts here than they will have, as they hold no replies"
        )


def _percent(share: float | None) -> str:
    return _UNKNOWN if share is None else f"{share:.2%}"


def _seconds(seconds: float) -> str:
    return f"{seconds:,.1f} s" if seconds < 3600 else f"{seconds / 3600:,.2f} h"
