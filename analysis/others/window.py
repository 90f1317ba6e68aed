"""The steady window of a closed loop, from the times of its single requests.

It opens when each slot has ended its first request, and closes when the first slot finds no more work: ramp
and drain, which weigh more the fewer requests there are and differ between arms, stay out of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """One answered request."""

    start_s: float
    """Dispatch, on any clock that the streams share."""
    ttft_s: float
    gaps_s: Sequence[float]
    """Between its chunks."""
    prompt_tokens: float
    tokens: float
    """Output tokens; those after the first are spread evenly over the chunks."""

    @property
    def end_s(self) -> float:
        """Its last chunk."""
        return self.start_s + self.ttft_s + sum(self.gaps_s)


def steady(streams: Sequence[Stream], slots: int) -> dict[str, float]:
    """Return the throughputs of the window; empty where the run ended before it was steady.

    A prompt counts when its first token comes, output tokens chunk by chunk.
    """
    if len(streams) <= slots:
        return {}
    ordered = sorted(streams, key=lambda stream: stream.start_s)
    opened = max(stream.end_s for stream in ordered[:slots])
    last = ordered[-1].start_s
    closed = min(stream.end_s for stream in ordered if stream.end_s >= last)
    if closed <= opened:
        return {}
    output = prompt = 0.0
    for stream in ordered:
        times = stream.start_s + stream.ttft_s + np.cumsum([0.0, *stream.gaps_s])
        inside = (times >= opened) & (times < closed)
        later = (stream.tokens - 1.0) / len(stream.gaps_s) if len(stream.gaps_s) else 0.0
        first = 1.0 if later else stream.tokens
        output += first * float(inside[0]) + later * float(np.sum(inside[1:]))
        prompt += stream.prompt_tokens * float(inside[0])
    seconds = closed - opened
    end = max(stream.end_s for stream in ordered)
    return {
        "throughput/total_tok_s": (prompt + output) / seconds,
        "throughput/output_tok_s": output / seconds,
        "window/seconds": seconds,
        "window/drain_share": (end - closed) / (end - ordered[0].start_s),
    }
