"""Peak output rate: how fast the fastest second of the steady window was.

The window is cut into equal bins that tile it exactly: as many as it has whole seconds, at least one, so a
bin lasts one second, and up to two where the window is short. The mean of the bins' rates is then the
window's average rate, and the largest of them can never be below it. Tokens count at the arrival of their
chunk, as many as usage says the chunk brought; chunks are never counted as tokens.
"""

import numpy as np

from jobs.measures.timing import NS_PER_S, tokens_of_chunks
from jobs.measures.work import Span, good_chunks, rate, work_in
from jobs.replay.data import ReplayData


def output_rates(data: ReplayData, span: Span) -> tuple[float, ...]:
    """Return the output tokens/s of each bin of `span`, in order."""
    start, end = span
    bins = max(1, int((end - start) // NS_PER_S))
    times = data.chunks["time"]
    inside = good_chunks(data) & (times >= start) & (times < end)
    tokens = tokens_of_chunks(data.chunks)[inside]
    # Whole numbers: a chunk on an edge between two bins belongs to the later one, on every machine.
    place = (times[inside] - start) * bins // (end - start)
    counts = np.bincount(place, weights=tokens, minlength=bins)
    return tuple(float(count) * bins * NS_PER_S / (end - start) for count in counts)


def output_peak_tok_s(data: ReplayData, span: Span) -> float:
    """Return the largest of the bins' rates."""
    rates = output_rates(data, span)
    # Where all bins are alike, rounding must not put the peak a last digit below the average.
    return max(*rates, rate(work_in(data, span).output, span) or 0.0)
