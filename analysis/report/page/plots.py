"""A figure for the page: what plotly draws as JSON, rounded so that the file stays small, and its slider."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

HEIGHT = 430
"""Pixels, where a figure does not say."""
DIGITS = 5
"""Significant digits of what is drawn: more than a screen has points."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slider:
    """The control that the page puts in the place of plotly's own."""

    name: str
    """What it moves."""
    labels: tuple[str, ...]
    """Of its steps."""
    active: int
    """Index of the step that is drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """One figure as the page's script takes it."""

    json: str
    """`{"data": ..., "layout": ..., "steps": [[traces, layout, indices], ...]}`, safe within a script."""
    height: int
    """Pixels."""
    slider: Slider | None


def plot_of(figure: go.Figure) -> Plot:
    """Return a figure for the page."""
    layout = figure.layout.to_plotly_json()
    slider, steps = None, []
    sliders = layout.pop("sliders", None) or ()
    if sliders:
        (given,) = sliders
        steps = [step["args"] for step in given["steps"]]
        slider = Slider(
            name=str(given.get("name") or "value"),
            labels=tuple(str(step.get("label", "")) for step in given["steps"]),
            active=int(given.get("active", 0)),
        )
    content = {"data": [trace.to_plotly_json() for trace in figure.data], "layout": layout, "steps": steps}
    return Plot(json=in_script(content), height=int(layout.get("height") or HEIGHT), slider=slider)


def in_script(content: Mapping[str, Any]) -> str:
    """Return JSON that no HTML parser reads as markup, wherever it stands in a script."""
    told = json.dumps(_plain(content), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for mark in "<>&\u2028\u2029":
        told = told.replace(mark, f"\\u{ord(mark):04x}")
    return told


def _plain(value: Any) -> Any:
    """Return plain JSON: arrays as lists, figures rounded, what is not a number as null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(entry) for entry in value]
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
