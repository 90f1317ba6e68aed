"""A picture of a workload: lengths, turns, and what an ideal prefix cache serves turn by turn."""

import math
from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import (
    FuncFormatter,
    MaxNLocator,
    MultipleLocator,
    NullFormatter,
    NullLocator,
    PercentFormatter,
)

from analysis.untrusted import picture
from jobs.workload.inspection import Inspection, TurnReuse
from orchestrator.errors import ConfigError

INK, SOFT, GRID = "#1c2430", "#5c6775", "#e3e7ec"
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
_BINS = 40
_BARS = 64
"""Most turns that have a bar each; more are binned."""
_WIDE = 8.0
"""Longest over shortest value from which an axis of lengths is logarithmic."""


def draw_workload(inspection: Inspection, path: Path, *, title: str, notes: Sequence[str]) -> None:
    """Write the picture; the suffix of `path` decides the kind of file.

    Args:
        inspection: What is drawn.
        path: File to write: `.png`, `.svg` or `.pdf`.
        title: Heading.
        notes: Lines at the foot: how lengths were counted, what the content is.

    Raises:
        ConfigError: the file cannot be written.
    """
    low = 0.03 * len(notes)
    figure = Figure(figsize=(11, 7.2), layout=ConstrainedLayoutEngine(rect=(0, low, 1, 1 - low)))
    figure.suptitle(picture(title), x=0.01, ha="left", fontsize=14, color=INK)
    foot = "\n".join(picture(note) for note in notes)
    figure.text(0.01, 0.008, foot, ha="left", va="bottom", fontsize=9.5, color=SOFT)
    axes = figure.subplots(2, 2)
    _lengths(axes[0, 0], inspection.input_tokens, "prompt tokens of a request", BLUE, "no requests")
    _lengths(
        axes[0, 1],
        inspection.output_tokens,
        "reply tokens of a request",
        ORANGE,
        "no recorded replies:\n`specload workload record` writes them",
    )
    _turns(axes[1, 0], inspection.turns)
    _reuse(axes[1, 1], inspection.by_turn)
    try:
        figure.savefig(path, dpi=140)
    except OSError as error:
        message = f"the picture cannot be written to {path} ({error.strerror}); name another with --output"
        raise ConfigError(message) from error


def _lengths(axes: Axes, values: "array[int]", name: str, colour: str, absent: str) -> None:
    _frame(axes, name, "requests")
    if not values:
        _say(axes, absent)
        return
    numbers = np.asarray(values)
    axes.hist(numbers, bins=_bins(axes, numbers), color=colour, edgecolor="white", linewidth=0.4)
    median, p95 = np.percentile(numbers, (50, 95))
    for value in (median, p95):
        axes.axvline(float(value), color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
    axes.set_title(f"dashed: median {median:,.0f}, p95 {p95:,.0f}", loc="right", fontsize=9, color=INK)


def _turns(axes: Axes, values: "array[int]") -> None:
    _frame(axes, "turns of a conversation", "conversations")
    numbers = np.asarray(values)
    high = int(numbers.max())
    if high <= _BARS:
        counts = np.bincount(numbers, minlength=high + 1)[1:]
        axes.bar(np.arange(1, high + 1), counts, color=GREEN, width=0.9, edgecolor="white", linewidth=0.4)
        axes.set_xlim(0.4, high + 0.6)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True, min_n_ticks=1))
    else:
        axes.hist(numbers, bins=_bins(axes, numbers), color=GREEN, edgecolor="white", linewidth=0.4)
    if len(numbers) and numbers.max() > _WIDE * max(1, int(np.median(numbers))):
        axes.set_yscale("log")
        axes.set_ylabel("conversations, log scale", color=SOFT)
        axes.yaxis.set_major_formatter(FuncFormatter(_plain))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_ylim(bottom=0.7)


def _bins(axes: Axes, numbers: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> list[float]:
    """Return the edges of bins, and make the axis logarithmic where the numbers are far apart."""
    low, high = int(numbers.min()), int(numbers.max())
    count = int(np.clip(2 * len(numbers) ** 0.5, 8, _BINS))
    if high > _WIDE * low > 0:
        axes.set_xscale("log")
        _ticks(axes, low, high)
        edges = np.geomspace(low, high + 1, count + 1)
    else:
        edges = np.linspace(low, high + 1, min(count, high + 1 - low) + 1)
    return [float(edge) for edge in edges]


def _reuse(axes: Axes, by_turn: Sequence[TurnReuse]) -> None:
    _frame(axes, "turn of the conversation", "prompt tokens an ideal prefix cache serves")
    if not by_turn:
        _say(axes, "unknown: the trace tells lengths only")
        return
    numbers = np.arange(1, len(by_turn) + 1)
    shares = [turn.cached_tokens / turn.prompt_tokens for turn in by_turn]
    if len(by_turn) <= _BARS:
        axes.bar(numbers, shares, color=PINK, width=0.9, edgecolor="white", linewidth=0.4)
    else:
        axes.fill_between(numbers, shares, color=PINK, step="mid", linewidth=0)
    axes.set_ylim(0, 1.04)
    axes.yaxis.set_major_locator(MultipleLocator(0.2))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    count = axes.twinx()
    count.step(numbers, [turn.conversations for turn in by_turn], where="mid", color=SOFT, linewidth=1.4)
    count.set_ylabel("conversations that have the turn (grey)", color=SOFT)
    count.set_ylim(bottom=0)
    count.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    count.yaxis.set_major_formatter(FuncFormatter(_plain))
    count.tick_params(colors=SOFT, labelsize=9, length=0)
    count.spines[:].set_visible(False)
    axes.set_xlim(0.4, len(by_turn) + 0.6)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True, min_n_ticks=1))


def _frame(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x, color=SOFT)
    axes.set_ylabel(y, color=SOFT)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", colors=SOFT, labelsize=9, length=3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(GRID)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(_plain))
    axes.xaxis.set_major_formatter(FuncFormatter(_plain))


def _ticks(axes: Axes, low: float, high: float) -> None:
    """Label a logarithmic axis in plain numbers, in between too where it does not span many decades."""
    axes.xaxis.set_major_formatter(FuncFormatter(_plain))
    few = math.log10(high / low) < 4.5
    axes.xaxis.set_minor_formatter(FuncFormatter(_two_five) if few else NullFormatter())


def _say(axes: Axes, text: str) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=SOFT, fontsize=11)


def _plain(value: float, _: object = None) -> str:
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if abs(value) >= 1e3 else f"{value:.0f}"


def _two_five(value: float, _: object) -> str:
    return _plain(value) if f"{value:e}"[0] in "25" else ""
