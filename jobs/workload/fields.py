"""Fields of a trace's rows, with errors that name the row."""

import math
from collections.abc import Mapping
from typing import Any

from jobs.errors import WorkloadError

COUNT_LIMIT = 2**31
"""A count of tokens lies below: no model has such a context, so what is larger is damage."""


def whole(row: Mapping[str, Any], key: str, *, where: str) -> int:
    """Return a whole number of 0 or more and below `COUNT_LIMIT`, given as a number or as text.

    Raises:
        WorkloadError: the field is missing or something else.
    """
    value = number(row, key, where=where)
    if value != int(value):
        message = f"{where}: {key!r} is {row[key]!r}, not a whole number"
        raise WorkloadError(message)
    if value >= COUNT_LIMIT:
        message = f"{where}: {key!r} is {value:.6g}, which no context holds; the row is damaged"
        raise WorkloadError(message)
    return int(value)


def number(row: Mapping[str, Any], key: str, *, where: str) -> float:
    """Return a finite number of 0 or more, given as a number or as text.

    Raises:
        WorkloadError: the field is missing or something else.
    """
    value = row.get(key)
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError
        found = float(value)
        if not 0 <= found < math.inf:
            raise ValueError
    except OverflowError:
        message = f"{where}: {key!r} has more digits than a number of a trace can have"
        raise WorkloadError(message) from None
    except ValueError:
        what = "is missing" if value is None else f"is {value!r}"
        message = f"{where}: {key!r} {what}; it must be a number of 0 or more"
        raise WorkloadError(message) from None
    return found


def hash_ids(row: Mapping[str, Any], *, where: str) -> list[int]:
    """Return the list `hash_ids`: any 64-bit integers, those below 1 included.

    Raises:
        WorkloadError: it is missing or holds something else.
    """
    value = row.get("hash_ids")
    if not isinstance(value, list) or not all(type(entry) is int for entry in value):
        message = f"{where}: `hash_ids` is not a list of whole numbers"
        raise WorkloadError(message)
    if value and not (min(value) >= -(2**63) and max(value) < 2**63):
        message = f"{where}: `hash_ids` holds a number of more than 64 bits"
        raise WorkloadError(message)
    return value
