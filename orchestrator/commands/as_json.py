"""`--json`: what a command prints, for programs."""

import argparse
import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def print_json(value: Any) -> None:
    """Print a value of dataclasses, mappings and sequences as strict JSON: what is no number is null.

    In ASCII, as a terminal obeys some of the other characters, and a name of a file may be no Unicode.
    """
    print(json.dumps(_plain(value), indent=1, allow_nan=False))


def _plain(value: Any) -> Any:
    if hasattr(value, "item"):  # a scalar of numpy
        value = value.item()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        found = {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    elif isinstance(value, Mapping):
        found = {str(key): _plain(entry) for key, entry in value.items()}
    elif isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    elif isinstance(value, float) and not math.isfinite(value):
        return None
    else:
        return str(value) if isinstance(value, Path) else value
    return found
