"""Counters of one rank, in vLLM's meaning; `metrics.py` turns them into a Prometheus page."""

from bisect import bisect_left
from dataclasses import dataclass, field

SECONDS = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    120.0,
    300.0,
)
COUNTS = (1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0)


@dataclass(slots=True)
class Histogram:
    """A plain histogram: cheap to feed from the step loop."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0
    """Sum of all observations."""

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        """Count one observation."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


@dataclass(slots=True, kw_only=True)
class Stats:
    """Cumulative counts; tokens unless named otherwise."""

    k: int
    """Draft length, 0 without a drafter."""
    prompt: int = 0
    """Prompt tokens of requests whose first token is out."""
    prompt_cached: int = 0
    """The part of them served from the prefix cache."""
    admitted_cached: int = 0
    """Cached prompt tokens, counted at admission."""
    generation: int = 0
    drafts: int = 0
    draft_tokens: int = 0
    accepted: int = 0
    accepted_per_position: list[int] = field(default_factory=list)
    preemptions: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    succeeded: int = 0
    """Requests that ran to their length."""
    aborted: int = 0
    """Requests whose client left."""
    ttft: Histogram = field(default_factory=lambda: Histogram(SECONDS))
    itl: Histogram = field(default_factory=lambda: Histogram(SECONDS))
    """One observation a request and output step after its first, however many tokens."""
    e2e: Histogram = field(default_factory=lambda: Histogram(SECONDS))
    step_tokens: Histogram = field(default_factory=lambda: Histogram(COUNTS))
    """Positions computed by each step."""
    step_seconds: float = 0.0
    """Time inside steps."""

    def __post_init__(self) -> None:
        self.accepted_per_position = [0] * self.k

    def draft(self, accepted: int, drafted: int) -> None:
        """Count one verification."""
        self.drafts += 1
        self.draft_tokens += drafted
        self.accepted += accepted
        for position in range(accepted):
            self.accepted_per_position[position] += 1
