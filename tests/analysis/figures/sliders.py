"""What holds of every slider: each step can follow each, and the active one is what is drawn."""

import json
from typing import Any

import plotly.graph_objects as go


def stepped(figure: go.Figure, place: int) -> go.Figure:
    """Return the figure as the slider's step at this place leaves it."""
    changed = go.Figure(figure)
    args = figure.layout.sliders[0].steps[place].args
    traces, layout = args[:2]
    places = args[2] if len(args) > 2 else range(len(figure.data))
    for name, values in traces.items():
        assert len(values) == len(places), f"{name} is not set of every trace"
        for index, value in zip(places, values, strict=True):
            changed.data[index][name] = value
    for name, value in layout.items():
        changed.layout[name] = value
    return changed


def check_slider(figure: go.Figure) -> None:
    """Hold that all steps change the same things, and that the active step changes nothing."""
    (slider,) = figure.layout.sliders
    changes = [(set(step.args[0]), set(step.args[1]), len(step.args)) for step in slider.steps]
    assert all(change == changes[0] for change in changes)
    assert drawn(stepped(figure, slider.active)) == drawn(figure)
    states = {json.dumps(step.args, sort_keys=True) for step in slider.steps}  # all that a step changes
    assert len(states) == len(slider.steps), "two steps look alike"


def drawn(figure: go.Figure) -> Any:
    """Return what is drawn as plain values; what is None is not there."""
    found = json.loads(figure.to_json())
    return _without_none(found)


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _without_none(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item is not None and item != {}}
    return [_without_none(item) for item in value] if isinstance(value, list) else value
