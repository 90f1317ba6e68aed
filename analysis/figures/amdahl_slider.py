"""The control of Amdahl's curves: what each end-to-end speed-up needs."""

import plotly.graph_objects as go

from analysis.figures.amdahl_numbers import FIRST, TARGETS, WIDEST, Numbers
from analysis.figures.style import add_slider


def add_target(figure: go.Figure, numbers: Numbers) -> None:
    """Let the last two traces, the target's line and marks, and the words above go through `TARGETS`."""
    line, marks = len(figure.data) - 2, len(figure.data) - 1
    box = len(figure.layout.annotations) - 1
    steps: list[tuple[str, dict[str, object], dict[str, object]]] = []
    for target in TARGETS:
        places = numbers.needs(target)
        ends = numbers.grid[0], WIDEST
        changes: dict[str, object] = {"x": [list(ends), places["x"]], "y": [[target] * 2, places["y"]]}
        steps.append((f"{target:.1f}", changes, {f"annotations[{box}].text": numbers.answer(target)}))
    add_slider(
        figure,
        name="target speed-up G",
        steps=steps,
        active=TARGETS.index(FIRST),
        traces=[line, marks],
    )
