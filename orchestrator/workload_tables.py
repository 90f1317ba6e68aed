"""Tables of what is in a workload, for the terminal."""

import re
from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from jobs.nouns import are, counted
from jobs.workload.inspection import Inspection, Spread
from orchestrator.workload_look import Look, Replayed

_UNKNOWN = "-"
_NUMBER = re.compile(r"\d+")


def look_tables(found: Look) -> RenderableType:
    """Return counts and reuse, how lengths are spread, and what a reader must know."""
    facts = _facts(_fact_rows(found.inspection, unanswered=found.unanswered, is_text=found.is_text))
    lines = [f"content: {found.content}", *found.notes]
    if found.unanswered:
        lines.append(
            "replies are missing: `specload workload record` has the baseline write them; until then later "
            "turns have shorter prompts here than they will have, as they hold no replies"
        )
    return Group(facts, Text(), _spreads(found.inspection), Text(), *_list(lines))


def replay_tables(found: Replayed, *, max_context: int, fit: str, is_text: bool) -> RenderableType:
    """Return the same of what a sweep would replay in a context of `max_context` tokens under `fit`."""
    title = f"what a sweep replays in a context of {max_context:,} tokens (workload.fit={fit})"
    facts = _facts(_fact_rows(found.inspection, unanswered=0, is_text=is_text))
    lines = [*found.notes, *(f"{count} dropped: {reason}" for reason, count in grouped(found.dropped))]
    # Gaps are a policy of their own: a sweep plays none unless workload.gaps says so.
    spreads = _spreads(found.inspection, gaps=False)
    return Group(Text(title, style="bold"), facts, Text(), spreads, Text(), *_list(lines))


def grouped(dropped: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return (reason, "N conversations") of equal reasons, which may differ in their numbers.

    Numbers that differ become their range: `needs 9 tokens` and `needs 5 tokens` are `needs 5 to 9 tokens`.
    """
    kinds: dict[str, list[list[int]]] = {}
    for _, reason in dropped:
        numbers = [int(number) for number in _NUMBER.findall(reason)]
        kinds.setdefault(_NUMBER.sub("\0", reason), []).append(numbers)
    return [
        (_filled(kind, rows), counted(len(rows), "conversation"))
        for kind, rows in sorted(kinds.items(), key=lambda item: -len(item[1]))
    ]


def _filled(kind: str, rows: list[list[int]]) -> str:
    parts = kind.split("\0")
    text = parts[0]
    for part, column in zip(parts[1:], zip(*rows, strict=True), strict=True):
        low, high = min(column), max(column)
        text += (f"{low:,}" if low == high else f"{low:,} to {high:,}") + part
    return text


def _facts(rows: Iterable[tuple[str, str, str]]) -> Table:
    table = Table(show_header=False, show_edge=False, box=None)
    table.add_column()
    table.add_column(justify="right")
    table.add_column(style="dim")
    for row in rows:
        table.add_row(*row)
    return table


def _fact_rows(found: Inspection, *, unanswered: int, is_text: bool) -> Iterator[tuple[str, str, str]]:
    yield "conversations", f"{found.conversations:,}", ""
    answers = f"{unanswered:,} of them without a recorded reply" if unanswered else ""
    yield "requests", f"{found.requests:,}", answers
    if found.block_sizes:
        size = ", ".join(str(size) for size in sorted(found.block_sizes))
        blocks = f"whole blocks of {size} tokens{'' if is_text else ', the size of the trace'}"
        hit = f"of the prompt tokens are served by an endless cache, in {blocks}"
        yield "ideal prefix-hit rate", _percent(found.hit_rate), hit
        distinct = found.blocks - found.repeated_blocks
        again = f"of {counted(found.blocks, 'block')} came before, {distinct:,} {are(distinct)} distinct"
        yield "repeated blocks", _percent(found.block_hit_rate), again
        shared = "of the first turns' prompt tokens are what another conversation starts with too"
        yield "shared first turns", _percent(found.first_turn_sharing), shared
    else:
        unknown = "the trace tells lengths only: nobody knows what its prompts share"
        yield "ideal prefix-hit rate", _UNKNOWN, unknown
    if found.starts:
        span = max(found.starts) - min(found.starts)
        yield (
            "arrivals",
            _seconds(span),
            f"from the first conversation to the last, {len(found.starts):,} known",
        )
    else:
        yield "arrivals", _UNKNOWN, "the files have no times of arrival"


def _spreads(found: Inspection, *, gaps: bool = True) -> Table:
    table = Table(show_edge=False)
    for name in ("", "min", "median", "mean", "p95", "max", "of"):
        table.add_column(name, justify="right" if name else "left")
    for name, values, digits in (
        ("turns of a conversation", found.turns, 0),
        ("prompt tokens of a request", found.input_tokens, 0),
        ("reply tokens of a request", found.output_tokens, 0),
        ("context a conversation needs", found.context_tokens, 0),
        *((("gap before a request (s)", found.gaps, 2),) if gaps else ()),
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


def _list(lines: Iterable[str]) -> Iterator[Text]:
    return (Text(f"- {line}") for line in lines)


def _percent(share: float | None) -> str:
    return _UNKNOWN if share is None else f"{share:.2%}"


def _seconds(seconds: float) -> str:
    return f"{seconds:,.1f} s" if seconds < 7200 else f"{seconds / 3600:,.2f} h"
