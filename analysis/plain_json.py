"""Any value of an analysis as strict JSON knows it."""

import dataclasses
import math
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any


def plain_json(value: Any) -> Any:
    """Return dataclasses and mappings as objects, sequences as lists, and None for what is no number."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if hasattr(value, "tolist"):  # a scalar or an array of numpy, which need not be imported for it
        value = value.tolist()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain_json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, PurePath) else value
