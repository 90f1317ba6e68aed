"""`--json`: what a command prints, for programs."""

import argparse
import json
from typing import Any

from analysis.plain_json import plain_json


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def print_json(value: Any) -> None:
    """Print a value of dataclasses, mappings and sequences as strict JSON: what is no number is null.

    In ASCII, as a terminal obeys some of the other characters, and a name of a file may be no Unicode.
    """
    print(json.dumps(plain_json(value), indent=1, allow_nan=False))
