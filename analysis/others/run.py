"""One run of another tool, read into this program's metric names, with how its tool counts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from analysis.errors import ResultsError


class OtherResultsError(ResultsError):
    """A file of another tool that cannot be judged; the message names it and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherRun:
    """One benchmark run: one server configuration at one load level."""

    tool: str
    """Name in `analysis.others.formats.FORMATS`."""
    source: str
    """The file, and the run's place in it where it holds several."""
    axis: str
    """What the level is a number of: `concurrency` or `rate`."""
    level: float
    metrics: Mapping[str, float]
    """Figures by name of `jobs.metric_names`; a figure that the tool does not give is absent."""
    definitions: Mapping[str, str] = field(default_factory=dict)
    """Metric -> how the tool counts it, where that is not this program's own definition."""
    start: str
    """Which start of a server the run used: runs that share one are no replicates of each other."""
    version: str = ""
    """Of the tool, where told."""
    model: str = ""
    drafter: str | None = None
    """Method, `none` without one; None where the file does not tell."""
    k: int = 0
    """Draft length; 0 for none or where not told."""
    layout: str = ""
    """`tp2-dp2`, as far as the file tells it."""
    flags: str = ""
    """Other settings of the server as `key=value`s, where told: arms are compared within equal ones."""
    drafts: float | None = None
    """Verification steps that the server counted during the run; None where not told."""
    requests: int
    """Requests that ended, failed ones included."""
    failed: int
    """Of those, how many failed."""
    failure: str = ""
    """Why there is no measurement, empty where there is one."""
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was found in one file."""

    runs: tuple[OtherRun, ...] = ()
    notes: tuple[str, ...] = ()
    """What was left out, and why."""
