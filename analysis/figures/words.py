"""How figures say a number with its interval, and which of many levels they show."""

import math
from collections.abc import Mapping, Sequence
from typing import Any


def with_interval(value: float, low: float | None, high: float | None, *, digits: int = 2) -> str:
    """Return `1.29 [1.20, 1.38]`, without brackets where there is no interval."""
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return f"{value:.{digits}f}"
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def percent(value: float, low: float | None, high: float | None) -> str:
    """Return a share as `83 % [80, 86]`."""
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return f"{100.0 * value:.0f} %"
    return f"{100.0 * value:.0f} % [{100.0 * low:.0f}, {100.0 * high:.0f}]"


def ends_of(row: Mapping[Any, Any], name: str) -> tuple[float, float, float]:
    """Return a figure of a section's row with the ends of its interval; NaN where there are none."""
    value, low, high = (float(row.get(f"{name}{end}", math.nan)) for end in ("", "_lo", "_hi"))
    return value, low, high


def rounded(value: float, digits: int = 5) -> float | None:
    """Return a number to some significant digits, as files of many points want it; None for what is none."""
    if not math.isfinite(value):
        return None
    return float(f"{value:.{digits}g}")


def spread_out(count: int, most: int) -> list[int]:
    """Return at most so many places of a sequence: the first, the last, and evenly between."""
    if count <= most:
        return list(range(count))
    return sorted({round(place * (count - 1) / (most - 1)) for place in range(most)})


def joined(parts: Sequence[str]) -> str:
    """Return `a, b and c`."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
