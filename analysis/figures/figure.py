"""One figure with its words: what it answers, what it shows here, how to read it, and why there is none.

Report, MLflow and notebooks show the same objects. A figure with a slider carries it in its plotly layout,
where a notebook finds it; the report puts a control of its own in the slider's place, for keyboards and
screen readers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of a sweep."""

    name: str
    """Its id: lower-case letters, digits and dashes; of several of one kind each has its own."""
    title: str
    """The question it answers, as a heading."""
    plot: go.Figure | None = None
    """None where the sweep has nothing for it. Users' text in it is escaped (`style.escape`)."""
    finding: str = ""
    """What it shows in this sweep, in a sentence or two with its figures; plain text."""
    reading: str = ""
    """How to read it: what bars, bands and lines are, and where the figures come from; plain text."""
    sections: Sequence[str] = ()
    """Names in `analysis.sections.SECTIONS` whose tables belong beside it: the figures drawn, as text."""
    missing: str = ""
    """Of an absent one: why there is nothing, and the command that would measure it."""

    def __post_init__(self) -> None:
        """Hold that an absent figure says why, and that a drawn one says what it shows."""
        assert self.plot is not None or self.missing, f"figure {self.name} is absent and does not say why"
        assert self.plot is None or self.finding, f"figure {self.name} does not say what it shows"
