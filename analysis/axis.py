"""The axis of the load levels: what they are called, and how one of them is written."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One kind of load level."""

    noun: str
    """In a sentence: `against NOUN`."""
    title: str
    """Of a figure's axis, with the unit."""
    column: str
    """Of a table's column."""
    pattern: str
    """A level in text, `{}` for its number."""

    def at(self, level: float) -> str:
        """Return a level as text: `C=16`, `2.5/s`, `x1.5`."""
        return self.pattern.format(number(level))

    @property
    def hover(self) -> str:
        """The pattern with plotly's place for the number of a point."""
        return self.pattern.format("%{x}")


AXES = {
    "concurrency": Axis(
        noun="concurrency", title="concurrency C (live conversations)", column="C", pattern="C={}"
    ),
    "rate": Axis(
        noun="arrival rate", title="arrival rate (conversations/s)", column="conv./s", pattern="{}/s"
    ),
    "rate_scale": Axis(
        noun="arrival rate",
        title="arrival rate over the trace's own",
        column="x trace",
        pattern="x{}",
    ),
}
"""By the name that a result has for it (`jobs.result.CellResult.axis`)."""


def number(level: float) -> str:
    """Return a level's number without superfluous digits."""
    return f"{level:.10g}"
