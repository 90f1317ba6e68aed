"""Service-level objective: the latencies within which a request counts as served well."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Slo:
    """Limits of one request, None for none: it meets them if it succeeded and each of them holds."""

    ttft_ms: float | None = None
    """Longest time to first token."""
    tpot_ms: float | None = None
    """Longest time per output token after the first chunk; an answer in one chunk has none, and meets it."""
    e2el_ms: float | None = None
    """Longest end-to-end latency."""

    def __post_init__(self) -> None:
        """Refuse what no latency can be held to.

        Raises:
            ValueError: names the key.
        """
        for name, limit in self.limits.items():
            if not (math.isfinite(limit) and limit > 0):
                message = f"slo.{name} is {limit:g}; it is a latency in ms: choose more than 0, or null"
                raise ValueError(message)

    @property
    def limits(self) -> dict[str, float]:
        """The limits that are set, by name."""
        found = {"ttft_ms": self.ttft_ms, "tpot_ms": self.tpot_ms, "e2el_ms": self.e2el_ms}
        return {name: float(limit) for name, limit in found.items() if limit is not None}
