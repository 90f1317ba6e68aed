"""Counters of an engine: snapshots of its Prometheus page, and the deltas between two of them.

Counters are cumulative and engines never reset them, so only deltas mean anything; they are summed over all
ranks (`engine` labels), never read from rank 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from engines.errors import EngineError


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """One snapshot, or (from `since`) one delta. Token counts unless a docstring says otherwise."""

    time: float
    """`time.monotonic()` of the snapshot; in a delta the seconds between the two."""
    prompt_tokens: int
    """Prompt tokens of requests whose first token is out, cached ones included."""
    cached_prompt_tokens: int
    """The part of them served from the prefix cache."""
    computed_prompt_tokens: int
    """The part of them that was computed locally."""
    generation_tokens: int
    drafts: int
    """(request, step) pairs with at least one draft token."""
    draft_tokens: int
    accepted_tokens: int
    """Accepted draft tokens; the verifier's own token is not in it."""
    accepted_per_position: tuple[int, ...]
    """Accepted draft tokens by draft position 1..K; empty without a drafter."""
    preemptions: int
    """Requests thrown out of the KV cache and recomputed."""
    prefix_queries: int
    """Tokens looked up in the prefix cache."""
    prefix_hits: int
    step_intervals: int
    """Output steps seen by requests: one per request and step after its first (ITL count)."""
    step_seconds: float
    """Seconds of those intervals (ITL sum)."""
    first_tokens: int
    """Requests whose first token is out (TTFT count)."""
    running: int
    """Gauge: requests in the batch now; in a delta the later snapshot's value."""
    waiting: int
    """Gauge: requests queued now; in a delta the later snapshot's value."""
    slipped_seconds: float = 0.0
    """Emulated engines only: seconds by which the machine fell behind the hardware it emulates."""
    kv_usage: float
    """Gauge, 0 to 1: mean over ranks of the KV cache in use; in a delta the later snapshot's value."""
    absent: frozenset[str] = frozenset()
    """Names of the fields that this engine does not tell: their value is 0 here and means nothing."""

    @classmethod
    def unknown(cls, time: float) -> "Counters":
        """Return the snapshot of an engine that tells nothing."""
        zeros: dict[str, int] = dict.fromkeys((*_COUNTS, "running", "waiting", "kv_usage"), 0)
        return cls(
            time=time,
            accepted_per_position=(),
            absent=frozenset((*zeros, "accepted_per_position")),
            **zeros,
        )

    def knows(self, *names: str) -> bool:
        """Whether the engine tells all of the named fields."""
        return self.absent.isdisjoint(names)

    def since(self, earlier: "Counters") -> "Counters":
        """Return the delta from `earlier` to this snapshot; gauges keep this snapshot's values.

        Raises:
            EngineError: a counter went down, so the engine was restarted in between.
        """
        counts: dict[str, int | float] = {}
        for name in _COUNTS:
            counts[name] = _difference(name, getattr(self, name), getattr(earlier, name))
        longest = max(len(self.accepted_per_position), len(earlier.accepted_per_position))
        positions = tuple(
            int(_difference(f"accepted_per_position[{index}]", after, before))
            for index, (after, before) in enumerate(
                zip(
                    _padded(self.accepted_per_position, longest),
                    _padded(earlier.accepted_per_position, longest),
                    strict=True,
                )
            )
        )
        return replace(
            self,
            time=self.time - earlier.time,
            accepted_per_position=positions,
            absent=self.absent | earlier.absent,
            **counts,  # type: ignore[arg-type]  # names come from a list
        )

    @classmethod
    def combined(cls, parts: Sequence["Counters"]) -> "Counters":
        """Return the sum over replicas; `time` is the latest of them, `kv_usage` their mean."""
        assert parts, "no replica to combine"
        longest = max(len(part.accepted_per_position) for part in parts)
        padded = [_padded(part.accepted_per_position, longest) for part in parts]
        sums = {name: sum(getattr(part, name) for part in parts) for name in (*_COUNTS, "running", "waiting")}
        return cls(
            time=max(part.time for part in parts),
            accepted_per_position=tuple(sum(column) for column in zip(*padded, strict=True)),
            kv_usage=sum(part.kv_usage for part in parts) / len(parts),
            absent=frozenset().union(*(part.absent for part in parts)),
            **sums,
        )


_COUNTS = tuple(
    field.name
    for field in fields(Counters)
    if field.name not in ("time", "accepted_per_position", "running", "waiting", "kv_usage", "absent")
)
"""The fields that only ever grow."""


def _difference(name: str, after: float, before: float) -> float:
    if after < before:
        message = f"counter {name} fell from {before} to {after}: the engine was restarted in between"
        raise EngineError(message)
    return after - before


def _padded(positions: tuple[int, ...], length: int) -> tuple[int, ...]:
    return positions + (0,) * (length - len(positions))
