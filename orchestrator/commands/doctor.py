"""`specload doctor`: what is on this machine, what is missing, how to get it, what a load process carries."""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from orchestrator.client_ceiling import SECONDS, ceiling
from orchestrator.doctor import MISSING, OK, Finding, examine
from orchestrator.tables import console

SUMMARY = (
    "Look for what a sweep needs: packages, CPUs, GPUs, engine environments, models, disk, the MLflow store."
)
_STYLES = {OK: "green", MISSING: "bold red"}


def run(arguments: Sequence[str]) -> int:
    """Print what was found; nothing optional that is missing is an error."""
    parser = argparse.ArgumentParser(prog="specload doctor", description=SUMMARY)
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder that keeps the sweeps")
    parser.add_argument(
        "--client",
        action="store_true",
        help="instead measure what one load process carries, against a null server on loopback",
    )
    options = parser.parse_args(arguments)
    if options.client:
        print(f"measuring the load process against a null server, about {SECONDS:.0f} s ...", flush=True)
        _show(ceiling(), title="null server: emulated streams without a model, on this machine")
    else:
        _show(examine(options.results))
    return 0


def _show(findings: Iterable[Finding], *, title: str | None = None) -> None:
    table = Table(show_edge=False, title=title)
    for name in ("what", "state", "found", "what to do"):
        table.add_column(name)
    for finding in findings:
        state = Text(finding.state, style=_STYLES.get(finding.state, "yellow"))
        table.add_row(finding.what, state, Text(finding.detail), Text(finding.remedy))
    console().print(table)
