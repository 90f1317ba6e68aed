"""What a plan says of a search of levels."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPlan:
    """How levels are placed by what was seen, in rounds after the planned blocks."""

    kind: str
    """One of `analysis.searches.SEARCHES`."""
    width: float
    """Upper over lower end of an arm's interval at which its search ends."""
    rounds: int
    """Most rounds."""
