"""A series of an engine's metrics page that its adapter reads, and what is lost where it is missing."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One series by name."""

    name: str
    """As the page has it, `_total`, `_sum` or `_count` included."""
    use: str
    """What is measured with it: what a page without it costs."""
    required: bool = False
    """Whether nothing can be measured without it."""
    drafter: bool = False
    """Whether only an engine with a drafter has it."""
    instead: str = ""
    """Name of the series that is read where this one is missing; empty for none."""
