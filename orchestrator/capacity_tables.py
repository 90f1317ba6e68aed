"""Tables for the terminal: the KV capacity of a sweep's arms, and what their drafters' memory costs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:  # scipy takes a second to load, and a typo should not wait for it
    from analysis.capacity import CapacityRow, MemoryCost
    from analysis.rows import Ratio


def capacity_tables(rows: Sequence["CapacityRow"], costs: Sequence["MemoryCost"]) -> RenderableType:
    """Return the capacity of every arm, and the split of every ratio that has a baseline with matched KV."""
    if not rows:
        return Text("No cell of this sweep has a KV capacity: its engines did not tell it.")
    parts: list[RenderableType] = [_capacity(rows), *_notes(rows)]
    if costs:
        parts.append(_costs(costs))
    return Group(*parts)


def _capacity(rows: Sequence["CapacityRow"]) -> Table:
    table = Table(title="KV capacity of a block's slice")
    for name in ("arm", "tokens", "pools", "per pool", "block", "the drafter took", "mean", "largest"):
        table.add_column(name, justify="left" if name == "arm" else "right")
    table.columns[6].header, table.columns[7].header = _fits(rows, "mean"), _fits(rows, "largest")
    table.add_column("requests wait")
    for row in rows:
        table.add_row(
            Text(row.label),
            _count(row.tokens),
            _count(row.ranks),
            _count(row.tokens_per_rank),
            _count(row.block_size),
            _taken(row),
            _count(row.conversations_mean),
            _count(row.conversations_largest),
            Text(row.waits),
        )
    return table


def _fits(rows: Sequence["CapacityRow"], which: str) -> str:
    sizes = {row.context_mean if which == "mean" else row.context_largest for row in rows} - {None}
    size = f" ({_count(sizes.pop())} tokens)" if len({round(size or 0.0) for size in sizes}) == 1 else ""
    return f"conversations of {which} context{size}"


def _notes(rows: Sequence["CapacityRow"]) -> list[Text]:
    hybrid = [
        row.label
        for row in rows
        if row.blocks and row.block_size and abs(row.tokens / row.blocks - row.block_size) >= 1.0
    ]
    told = (
        "A conversation is counted at its longest turn, in whole blocks of one pool; prefixes that several "
        "share are counted for each of them. Requests wait where most samples of a level show a queue."
    )
    notes = [told]
    if hybrid:
        notes.append(
            f"{', '.join(hybrid)}: the model keeps several kinds of KV, so blocks are no measure; tokens are "
            "the engine's own figure, and conversations hold for contexts near the longest it serves"
        )
    return [Text(note) for note in notes]


def _costs(costs: Sequence["MemoryCost"]) -> Table:
    table = Table(
        title="Total throughput, split by the baseline with matched KV: arm / baseline = memory x all else"
    )
    for name in ("arm", "level", "arm / baseline", "memory: matched / baseline", "all else: arm / matched"):
        table.add_column(name, justify="left" if name == "arm" else "right")
    for row in costs:
        label = f"{row.label} (oversubscribed)" if row.oversubscribed else row.label
        table.add_row(Text(label), row.at, _ratio(row.whole), _ratio(row.memory), _ratio(row.rest))
    return table


def _taken(row: "CapacityRow") -> str:
    if row.taken is None or row.taken_share is None:
        return "-"
    return f"{_count(row.taken)} ({row.taken_share:.1%})"


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _ratio(ratio: "Ratio") -> str:
    interval = "" if ratio.lo is None or ratio.hi is None else f" [{ratio.lo:.3f}, {ratio.hi:.3f}]"
    return f"{ratio.value:.3f}{interval}"
