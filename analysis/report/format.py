"""How values look in the report."""

import json
import math
from collections.abc import Callable
from typing import Any

from analysis.rows import Ratio

ABSENT = "\N{EN DASH}"


def number(value: float | None, digits: int = 3) -> str:
    """Return a figure to some significant digits, never in exponent form; a dash for None."""
    if value is None or not math.isfinite(value):
        return ABSENT
    if value == 0.0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(places, 6)}f}"


def ratio(value: Ratio | None) -> str:
    """Return `1.23`, or a dash."""
    return ABSENT if value is None else f"{value.value:.2f}"


def interval(value: Ratio | None) -> str:
    """Return `1.20 to 1.26`, or nothing where there is no interval."""
    if value is None or value.lo is None or value.hi is None:
        return ""
    return f"{_end(value.lo)} to {_end(value.hi)}"


def percent(value: float | None) -> str:
    """Return a share in percent with one decimal, or a dash."""
    return ABSENT if value is None else f"{100.0 * value:.1f} %"


def text(value: Any) -> str:
    """Return any plain value as one line of text."""
    if value is None:
        return ABSENT
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def _end(value: float) -> str:
    if value > 99.0:
        return "over 99"
    return "under 0.01" if value < 0.01 else f"{value:.2f}"


FILTERS: dict[str, Callable[..., str]] = {
    "number": number,
    "ratio": ratio,
    "interval": interval,
    "percent": percent,
    "text": text,
}
