"""The horizontal bar of where a step's time goes, one bar an engine, as a picture file.

The report has the same bars in plotly (`analysis.figures.step_time`). A profile is taken where the engines
run, and such machines seldom have the browser that plotly's pictures need: matplotlib needs none.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from analysis.step_parts import COLOURS
from analysis.untrusted import picture, plain

INK, SOFT, GRID = "#1c2430", "#5c6775", "#e3e7ec"
_DARK_TEXT = frozenset({"#56B4E9", "#E69F00"})
_TITLE, _NOTE, _LABEL = 92, 125, 48
"""Characters of a line of the title, of one of the notes, and of an engine's name."""
_LONGEST = 600
"""Characters of a title or a note."""
_WIDE_ENOUGH = 0.055
"""Share of the axis from which a part has its share written into it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One step."""

    label: str
    """Name of the engine."""
    parts: Sequence[tuple[str, float]]
    """(name, milliseconds), in the order in which they are drawn; a negative one is left out."""


def draw_breakdown(bars: Sequence[Bar], paths: Sequence[Path], *, title: str, notes: Sequence[str]) -> None:
    """Write the picture to each of `paths`; the suffix decides the kind of file.

    Args:
        bars: One step an engine, on one axis of milliseconds; the first one is drawn on top.
        paths: Files to write: `.svg`, `.png`, `.pdf`.
        title: Heading.
        notes: Lines at the foot: whose time it is, what a reader must know.

    Raises:
        OSError: a file cannot be written.
    """
    drawn = {name for bar in bars for name, ms in bar.parts if ms > 0}
    names = [name for name in dict.fromkeys(name for bar in bars for name, _ in bar.parts) if name in drawn]
    lines = [line for note in notes for line in _lines(note, _NOTE)]
    foot = 0.055 * len(lines)
    height = 1.7 + 0.62 * len(bars) + 0.2 * len(lines) + 0.24 * ((len(names) + 3) // 4)
    # text stays text in an SVG, and its ids do not depend on the moment
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "specload"}):
        figure = Figure(figsize=(10, height), layout=ConstrainedLayoutEngine(rect=(0, foot, 1, 1 - foot)))
        heading = "\n".join(_lines(title, _TITLE))
        figure.suptitle(heading, x=0.01, ha="left", fontsize=13, color=INK)
        figure.text(0.01, 0.012, "\n".join(lines), ha="left", va="bottom", fontsize=9, color=SOFT)
        axes = figure.subplots()
        _bars(axes, bars, names)
        axes.legend(
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            borderaxespad=0.0,
            ncols=4,
            frameon=False,
            fontsize=9.5,
            handlelength=1.4,
        )
        for path in paths:
            figure.savefig(path, dpi=140, metadata={"Date": None} if path.suffix == ".svg" else None)


def _lines(text: str, width: int) -> list[str]:
    return [picture(line) for line in textwrap.wrap(plain(text)[:_LONGEST], width)]


def _bars(axes: Axes, bars: Sequence[Bar], names: Sequence[str]) -> None:
    longest = max(sum(ms for _, ms in bar.parts if ms > 0) for bar in bars)
    places = [len(bars) - 1 - index for index in range(len(bars))]
    left = [0.0] * len(bars)
    for name in names:
        colour = COLOURS.get(name, SOFT)
        widths = [max(0.0, sum(ms for part, ms in bar.parts if part == name)) for bar in bars]
        axes.barh(
            places, widths, left=left, height=0.62, color=colour, edgecolor="white", linewidth=1.0, label=name
        )
        for index, (bar, width) in enumerate(zip(bars, widths, strict=True)):
            whole = sum(ms for _, ms in bar.parts)
            if width >= _WIDE_ENOUGH * longest:
                axes.text(
                    left[index] + width / 2,
                    places[index],
                    f"{width / whole:.0%}",
                    ha="center",
                    va="center",
                    fontsize=9.5,
                    color=INK if colour in _DARK_TEXT else "white",
                )
            left[index] += width
    for index, bar in enumerate(bars):
        whole = sum(ms for _, ms in bar.parts)
        axes.text(
            left[index] + 0.008 * longest,
            places[index],
            f"{whole:.2f} ms",
            va="center",
            fontsize=9.5,
            color=INK,
        )
    axes.set_yticks(places, [picture(bar.label, limit=_LABEL) for bar in bars], fontsize=10.5, color=INK)
    axes.set_xlim(0, longest * 1.12)
    axes.set_xlabel("milliseconds of a decode step", color=SOFT)
    axes.grid(axis="x", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", colors=SOFT, labelsize=9, length=3)
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(GRID)
