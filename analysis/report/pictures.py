"""A report's figures as files beside it: pictures, and plotly's own JSON for notebooks.

Pictures are drawn by the machine's browser, a Chrome or Chromium that is started once for all of them. It is
spoken to through a pipe, listens nowhere, and loads nothing but files: what a browser asks of its maker by
itself goes to a proxy that does not exist.
"""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import plotly.graph_objects as go

from analysis.figures import Figure
from analysis.figures.style import INK, escape

FOLDER = "figures"
"""Beside the report."""
WIDTH, SCALE = 920, 2
"""Of a picture: points across, and pixels a point."""
TITLE_LINE, FINDING_LINE = 84, 126
"""Characters of a line of a picture's title, and of what it says below."""
TITLE_AT = 24
"""Points from the upper edge to the middle of the title's first line."""
LARGEST_JSON = 2_000_000
"""Characters; a figure with more is left out of the JSON files: the report has it."""
NOWHERE = "http://127.0.0.1:9"
"""Proxy of the browser: nobody listens on this port."""
NO_BROWSER = (
    "the pictures of the figures were left out, as no Chrome or Chromium was found: install one (Debian: "
    "`apt-get install chromium`), or name its file in BROWSER_PATH, and run `specload report` again"
)
"""What there is to say without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureFiles:
    """The files of a report's figures."""

    pictures: dict[str, Path] = field(default_factory=dict)
    """Name of a figure -> its PNG."""
    data: dict[str, Path] = field(default_factory=dict)
    """Name of a figure -> its JSON, which `plotly.io.read_json` reads."""
    notes: tuple[str, ...] = ()
    """What is missing, and why; plain text."""


def write_figures(figures: Iterable[Figure], directory: Path, *, pictures: bool) -> FigureFiles:
    """Write the figures into `figures/` of a sweep's folder; those of an earlier report are removed.

    Args:
        figures: all of the report; absent ones have no file.
        directory: the sweep's folder.
        pictures: whether to draw pictures too; without a browser that costs a note.

    Raises:
        OSError: a file cannot be written.
    """
    drawn = [figure for figure in figures if figure.plot is not None]
    folder = directory / FOLDER
    for old in (*folder.glob("*.json"), *folder.glob("*.png")):
        old.unlink()
    if not drawn:
        return FigureFiles()
    folder.mkdir(exist_ok=True)
    data = {}
    for figure in drawn:
        assert figure.plot is not None
        content = str(figure.plot.to_json())
        if len(content) <= LARGEST_JSON:
            data[figure.name] = folder / f"{figure.name}.json"
            data[figure.name].write_text(content, encoding="utf-8")
    if not pictures:
        return FigureFiles(data=data)
    paths = {figure.name: folder / f"{figure.name}.png" for figure in drawn}
    note = _draw([picture(figure) for figure in drawn], list(paths.values()))
    made = {name: path for name, path in paths.items() if path.is_file()}
    return FigureFiles(pictures=made, data=data, notes=(note,) if note else ())


def picture(figure: Figure) -> go.Figure:
    """Return a figure as a picture shows it: with its words, on white, and without a control."""
    assert figure.plot is not None
    title = textwrap.wrap(figure.title, TITLE_LINE)
    finding = textwrap.wrap(figure.finding, FINDING_LINE)
    words = f"<b>{'<br>'.join(map(escape, title))}</b>"
    small = "<br>".join(f'<span style="font-size:13px">{escape(line)}</span>' for line in finding)
    top = 26 + 24 * len(title) + 18 * len(finding)
    plot = go.Figure(figure.plot)
    margin = plot.layout.margin.t
    height = (430 if plot.layout.height is None else plot.layout.height) + top
    plot.layout.sliders = None
    plot.update_layout(
        title={
            "text": f"{words}<br>{small}",
            "x": 0.0,
            "xref": "container",
            "xanchor": "left",
            "y": 1.0 - TITLE_AT / height,
            "yref": "container",
            "yanchor": "top",
            "pad": {"l": 16},
            "font": {"size": 18, "color": INK},
        },
        paper_bgcolor="white",
        plot_bgcolor="white",
        margin={"t": (12 if margin is None else margin) + top},
        width=WIDTH,
        height=height,
    )
    return plot


def _draw(plots: Sequence[go.Figure], paths: Sequence[Path]) -> str:
    """Write one PNG a plot by one start of a browser; return what there is to say where that failed."""
    # Late: a sweep draws no pictures, and the browser's driver takes a while to load.
    import kaleido.errors  # noqa: PLC0415 - see above

    size = {"format": "png", "width": WIDTH, "scale": SCALE}
    wanted = [
        {"fig": plot, "path": path, "opts": {**size, "height": int(plot.layout.height)}}
        for plot, path in zip(plots, paths, strict=True)
    ]
    try:
        # without the script that sets formulas, which would come from the network, and no figure has one
        options = {"mathjax": False, "proxy_server": NOWHERE}
        failed = kaleido.write_fig_from_object_sync(wanted, kopts=options)
    except kaleido.errors.ChromeNotFoundError:
        return NO_BROWSER
    except (kaleido.errors.BrowserClosedError, kaleido.errors.BrowserFailedError, OSError) as error:
        failed = (error,)
    if not failed:
        return ""
    told = str(failed[0]).strip().partition("\n")[0] or type(failed[0]).__name__
    return (
        f"{len(failed) if len(failed) > 1 else 'some'} pictures of the figures were left out, as the browser "
        f"failed ({told}); `specload report` tries again, and BROWSER_PATH names another browser"
    )
