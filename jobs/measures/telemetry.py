"""Figures from the samples beside a replay: energy, power, clocks, throttling, memory, host CPU.

A sample is what `jobs.telemetry.Sampler` takes once a second; between two samples a reading is taken to run
straight from one to the other. Everything is of the steady window, a span in nanoseconds of CLOCK_MONOTONIC.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from jobs.gpu_sensors import THROTTLE_REASONS, throttle_words

Rows = Sequence[Mapping[str, Any]]
Span = tuple[int, int]
Series = list[tuple[int, float]]

NS_PER_S = 1e9
LONGEST_GAP_SECONDS = 5.0
"""Samples further apart say nothing of a power or clock between them; the energy counter bridges any gap."""
LEAST_COVERAGE = 0.5
"""Share of the window that samples have to cover before their mean is given as the window's."""
THROTTLE_CAVEAT = 0.05
"""Throttled share of the window from which a cell says so."""
_GPU_COLUMN = re.compile(r"gpu(\d+)_")
_THROTTLE = sum(THROTTLE_REASONS)


def telemetry_metrics(rows: Rows, window: Span | None, output_tokens: int | None) -> dict[str, float | None]:
    """Return the telemetry figures of the steady window; None is a source that is absent or too thin.

    - `energy/joules_window`: energy of all GPUs, from NVML's cumulative counters interpolated at both ends of
      the window. Where a GPU has no counter, or it was reset, its sampled power is integrated instead.
    - `energy/joules_per_output_token`: the same over `output_tokens`.
    - `gpu/power_mean_w`: mean of the sampled power over time, summed over the GPUs.
    - `gpu/sm_clock_mean_mhz`: mean SM clock over time and GPUs.
    - `gpu/throttled_share`: share of time, mean over the GPUs, in which power, heat or a limit of the board
      held the clock down.
    - `gpu/memory_peak_gib`: largest sampled memory in use on one GPU.
    - `host/cpu_mean`: mean share of the host's cores in use.

    Args:
        rows: Samples, one a replica and time.
        window: The steady window; None where there is none.
        output_tokens: Output tokens in the window.
    """
    samples = _samples(rows)
    gpus = _gpus(samples)
    joules = _sum(_energy(samples, gpu, window) for gpu in gpus)
    sm_clocks = [_mean(_series(samples, f"gpu{gpu}_sm_clock_mhz"), window) for gpu in gpus]
    throttled = [_mean(_throttled(samples, gpu), window) for gpu in gpus]
    return {
        "energy/joules_window": joules,
        "energy/joules_per_output_token": joules / output_tokens
        if joules is not None and output_tokens
        else None,
        "gpu/power_mean_w": _sum(_mean(_series(samples, f"gpu{gpu}_power_w"), window) for gpu in gpus),
        "gpu/sm_clock_mean_mhz": _average(sm_clocks),
        "gpu/throttled_share": _average(throttled),
        "gpu/memory_peak_gib": _memory_peak(samples, gpus, window),
        "host/cpu_mean": _host_cpu(_series(samples, "host_cpu"), samples, window),
    }


def telemetry_caveats(rows: Rows, window: Span | None) -> tuple[str, ...]:
    """Return what to keep in mind with the figures: integrated energy, resets, throttling, lost samples."""
    samples = _samples(rows)
    found = []
    for gpu in _gpus(samples):
        counter, power = _series(samples, f"gpu{gpu}_energy_j"), _series(samples, f"gpu{gpu}_power_w")
        if power and not counter:
            found.append(f"GPU {gpu}: its energy is integrated from sampled power; it has no energy counter")
        elif window is not None and any(
            before[1] > after[1] for before, after, _ in _pieces(counter, window)
        ):
            found.append(f"GPU {gpu}: its energy counter was reset; power was integrated across that moment")
        share = _mean(_throttled(samples, gpu), window)
        if share is not None and share > THROTTLE_CAVEAT:
            reasons = {words for _, mask in _masks(samples, gpu, window) for words in throttle_words(mask)}
            found.append(f"GPU {gpu}: clocks were held down in {share:.0%} of the window: {_words(reasons)}")
    found.extend(_lost(rows))
    return tuple(found)


def _samples(rows: Rows) -> list[Mapping[str, Any]]:
    """Return one row a sample in order of time: replicas share the host's and the GPUs' readings."""
    found = {int(row["sampled"]): row for row in rows}
    return [found[time] for time in sorted(found)]


def _gpus(samples: Rows) -> list[int]:
    return sorted({int(match[1]) for row in samples for name in row if (match := _GPU_COLUMN.match(name))})


def _series(samples: Rows, column: str) -> Series:
    return [(row["sampled"], float(row[column])) for row in samples if row.get(column) is not None]


def _masks(samples: Rows, gpu: int, window: Span | None = None) -> list[tuple[int, int]]:
    column = f"gpu{gpu}_throttle_reasons"
    inside = [row for row in samples if window is None or window[0] <= row["sampled"] <= window[1]]
    return [(row["sampled"], int(row[column])) for row in inside if row.get(column) is not None]


def _throttled(samples: Rows, gpu: int) -> Series:
    return [(time, 1.0 if mask & _THROTTLE else 0.0) for time, mask in _masks(samples, gpu)]


def _pieces(series: Series, window: Span) -> Iterator[tuple[tuple[int, float], tuple[int, float], Span]]:
    """Yield neighbouring samples and the part of the window between them."""
    for before, after in pairwise(series):
        start, end = max(before[0], window[0]), min(after[0], window[1])
        if end > start:
            yield before, after, (start, end)


def _integral(series: Series, window: Span) -> tuple[float, float]:
    """Return the integral over the window (value x s), and the seconds of it that samples cover."""
    total = covered = 0.0
    for before, after, (start, end) in _pieces(series, window):
        if after[0] - before[0] > LONGEST_GAP_SECONDS * NS_PER_S:
            continue
        seconds = (end - start) / NS_PER_S
        slope = (after[1] - before[1]) / (after[0] - before[0])
        middle = before[1] + slope * ((start + end) / 2 - before[0])
        total += middle * seconds
        covered += seconds
    return total, covered


def _mean(series: Series, window: Span | None) -> float | None:
    if window is None:
        return None
    total, covered = _integral(series, window)
    enough = covered > 0 and covered >= LEAST_COVERAGE * (window[1] - window[0]) / NS_PER_S
    return total / covered if enough else None


def _energy(samples: Rows, gpu: int, window: Span | None) -> float | None:
    """Return one GPU's energy in the window in J."""
    if window is None:
        return None
    counter, power = _series(samples, f"gpu{gpu}_energy_j"), _series(samples, f"gpu{gpu}_power_w")
    if not counter or counter[0][0] > window[0] or counter[-1][0] < window[1]:
        mean = _mean(power, window)
        return None if mean is None else mean * (window[1] - window[0]) / NS_PER_S
    total = 0.0
    for before, after, span in _pieces(counter, window):
        if after[1] >= before[1]:
            total += (after[1] - before[1]) * (span[1] - span[0]) / (after[0] - before[0])
            continue
        mean = _mean(power, span)  # the counter began anew: what it had reached in between is lost
        if mean is None:
            return None
        total += mean * (span[1] - span[0]) / NS_PER_S
    return total


def _memory_peak(samples: Rows, gpus: Sequence[int], window: Span | None) -> float | None:
    if window is None or not gpus:
        return None
    peaks = []
    for gpu in gpus:
        series = _series(samples, f"gpu{gpu}_memory_mib")
        # the neighbours of the window belong to it: it may be shorter than the interval of samples
        values = [value for before, after, _ in _pieces(series, window) for value in (before[1], after[1])]
        if not values:
            return None
        peaks.append(max(values))
    return max(peaks) / 1024


def _host_cpu(series: Series, samples: Rows, window: Span | None) -> float | None:
    """Return the mean share: each value is already the mean since the sample before it."""
    if window is None:
        return None
    shares = dict(series)
    busy = covered = 0.0
    for before, after in pairwise(row["sampled"] for row in samples):
        seconds = (min(after, window[1]) - max(before, window[0])) / NS_PER_S
        if seconds > 0 and after in shares:
            busy += shares[after] * seconds
            covered += seconds
    enough = covered > 0 and covered >= LEAST_COVERAGE * (window[1] - window[0]) / NS_PER_S
    return busy / covered if enough else None


def _lost(rows: Rows) -> Iterator[str]:
    """Name the columns that had readings and lost some."""
    columns = {name for row in rows for name in row} - {"host_cpu"}  # its first value is unknown by nature
    for column in sorted(columns):
        missing = sum(row.get(column) is None for row in rows)
        if column.startswith("gpu") and 0 < missing < len(rows):
            yield f"{column}: missing in {missing} of {len(rows)} samples"
    missing = sum(row.get("running") is None for row in rows)
    if 1 < missing < len(rows):  # the last sample of a failed replay asks no engine
        yield f"engine gauges: missing in {missing} of {len(rows)} samples"


def _words(reasons: set[str]) -> str:
    return ", ".join(sorted(reasons)) or "reasons that no sample in it caught"


def _sum(values: Iterator[float | None]) -> float | None:
    """Return the sum; None of nothing, and where one is unknown: a part is not the whole."""
    found = list(values)
    known = [value for value in found if value is not None]
    return sum(known) if known and len(known) == len(found) else None


def _average(values: Sequence[float | None]) -> float | None:
    total = _sum(iter(values))
    return None if total is None else total / len(values)
