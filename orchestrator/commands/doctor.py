"""`specload doctor`: what is on this machine, what is missing, how to get it, what a load process carries."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from orchestrator.client_ceiling import SECONDS, ceiling
from orchestrator.commands.as_json import add_json, print_json
from orchestrator.commands.parser import Parser
from orchestrator.doctor import MISSING, OK, Finding, examine
from orchestrator.gpu_check import check_words, run_check
from orchestrator.sweep import collect
from orchestrator.tables import console

SUMMARY = (
    "Look for what a sweep needs: packages, CPUs, GPUs, engine environments, models, disk, the MLflow store."
)
_STYLES = {OK: "green", MISSING: "bold red"}


def run(arguments: Sequence[str]) -> int:
    """Print what was found; nothing optional that is missing is an error."""
    parser = Parser(prog="specload doctor", description=SUMMARY)
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder that keeps the sweeps")
    parser.add_argument(
        "--client",
        action="store_true",
        help="instead measure what one load process carries, against a null server on loopback",
    )
    parser.add_argument(
        "--gpu",
        action="store_true",
        help=(
            "instead check the GPUs and one engine with and without its drafter: start, streams, counters, "
            "cache, stop, memory; words choose another engine, model or drafter: `--gpu engine=vllm_cpu`"
        ),
    )
    add_json(parser)
    options, words = parser.parse_known_args(arguments)
    if options.gpu:
        return _check(words, as_json=options.json)
    if words:
        parser.error(f"{' '.join(words)}: words go with --gpu")
    title: str | None = None
    if options.client:
        told = f"measuring the load process against a null server, about {SECONDS:.0f} s ..."
        print(told, file=sys.stderr, flush=True)
        title = "null server: emulated streams without a model, on this machine"
        findings = list(ceiling())
    else:
        findings = list(examine(options.results))
    if options.json:
        print_json({"findings": findings})
    else:
        _show(findings, title=title)
    return 0


def _check(words: Sequence[str], *, as_json: bool) -> int:
    """Show each finding when it is made; 1 when something is missing that a measurement relies on."""
    points = collect(check_words(words), program="specload doctor --gpu")
    if not points:
        return 0
    missing = 0
    out = console()
    found = []
    for finding in run_check(points):
        missing += finding.state == MISSING
        found.append(finding)
        if as_json:
            continue
        text = Text.assemble(
            f"{finding.what}: ", (finding.state, _STYLES.get(finding.state, "yellow")), f", {finding.detail}"
        )
        out.print(text.append(f"; {finding.remedy}" if finding.remedy else ""), soft_wrap=True)
    if as_json:
        print_json({"findings": found})
    else:
        out.print(f"{missing} missing" if missing else "all that a measurement relies on is there")
    return 1 if missing else 0


def _show(findings: Iterable[Finding], *, title: str | None = None) -> None:
    table = Table(show_edge=False, title=title)
    for name in ("what", "state", "found", "what to do"):
        table.add_column(name)
    for finding in findings:
        state = Text(finding.state, style=_STYLES.get(finding.state, "yellow"))
        table.add_row(finding.what, state, Text(finding.detail), Text(finding.remedy))
    console().print(table)
