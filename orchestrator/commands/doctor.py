"""`specload doctor`: what is on this machine, what is missing, how to get it."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from orchestrator.doctor import MISSING, OK, examine
from orchestrator.tables import console

SUMMARY = (
    "Look for what a sweep needs: packages, CPUs, GPUs, engine environments, models, disk, the MLflow store."
)
_STYLES = {OK: "green", MISSING: "bold red"}


def run(arguments: Sequence[str]) -> int:
    """Print what was found; nothing optional that is missing is an error."""
    parser = argparse.ArgumentParser(prog="specload doctor", description=SUMMARY)
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder that keeps the sweeps")
    options = parser.parse_args(arguments)
    table = Table(show_edge=False)
    for name in ("what", "state", "found", "what to do"):
        table.add_column(name)
    for finding in examine(options.results):
        state = Text(finding.state, style=_STYLES.get(finding.state, "yellow"))
        table.add_row(finding.what, state, Text(finding.detail), Text(finding.remedy))
    console().print(table)
    return 0
