"""Values out of the JSON of other tools: absent, null, text and NaN are all no number."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def number(value: Any) -> float | None:
    """Return a finite number, or None: booleans and text are none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def positive(value: Any) -> float | None:
    """Return a finite number above 0, or None: what no request gave is written as 0 by some tools."""
    found = number(value)
    return found if found is not None and found > 0.0 else None


def inner(value: Any, *keys: str) -> Any:
    """Return `value[key][key]...`, or None where one of them is absent."""
    for key in keys:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def known(metrics: Mapping[str, float | None]) -> dict[str, float]:
    """Return the metrics that have a value."""
    return {name: value for name, value in metrics.items() if value is not None}


def percentile(values: Sequence[float], share: float) -> float | None:
    """Return a percentile by linear interpolation (Hyndman and Fan's method 7); None without values."""
    return float(np.percentile(np.asarray(values, dtype=float), share)) if len(values) else None
