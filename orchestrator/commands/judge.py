"""`specload judge`: verdicts on results that another tool measured."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.whole_file import write_whole
from orchestrator.commands.as_json import add_json, print_json
from orchestrator.commands.parser import Parser
from orchestrator.errors import ResultsWriteError
from orchestrator.tables import console, crossover_lines, verdict_table

if TYPE_CHECKING:  # late, as in `run`
    from analysis.summary import Summary

SUMMARY = (
    "Judge results of vllm bench serve, vllm bench sweep serve, AIPerf and GuideLLM: ratios to the baseline "
    "with unpaired intervals, verdicts, crossovers. Runs of such tools are not paired; see docs/others.md."
)
MOST_CAVEATS = 12
"""Caveats of single rows that the terminal shows."""


def run(arguments: Sequence[str]) -> int:
    """Print the verdicts of others' results."""
    parser = Parser(prog="specload judge", description=SUMMARY)
    parser.add_argument(
        "paths", nargs="*", help="files, folders or patterns whose runs tell themselves what served them"
    )
    parser.add_argument(
        "--baseline",
        nargs="+",
        default=[],
        metavar="FILES",
        help="files, folders or patterns of the runs without a drafter",
    )
    parser.add_argument(
        "--arm",
        action="append",
        default=[],
        metavar="LABEL=FILES",
        help="an arm and its files: `eagle3-k5=runs/*.json`, `tp2/ngram-k3=folder`, `tp2/none=folder`",
    )
    parser.add_argument(
        "--log",
        action="append",
        default=[],
        metavar="LABEL=FILE",
        help="the log of an arm's vLLM server: its KV capacity, and its acceptance where no result tells it",
    )
    parser.add_argument("--objective", default="total", help="what the verdicts are on (default: total)")
    parser.add_argument("--threshold", type=float, default=0.02, help="practical threshold as a share")
    parser.add_argument(
        "--trust-repeats",
        action="store_true",
        help="take runs on one start of a server for replicates: their spread misses what a restart changes",
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="write a page that works offline, too")
    add_json(parser)
    options = parser.parse_args(arguments)
    # Late: pandas and scipy take a second to load, and `--help` should not wait for them.
    from analysis.others.comparison import compare  # noqa: PLC0415 - see above

    summary = compare(
        [Path(path) for path in options.paths],
        baseline=options.baseline,
        arms=options.arm,
        logs=options.log,
        objective=options.objective,
        threshold=options.threshold,
        trust_repeats=options.trust_repeats,
    )
    if options.report:
        from analysis.others.page import render_judged  # noqa: PLC0415 - plotly takes another second

        _write(options.report, render_judged(summary, arguments))
    if options.json:
        print_json(summary.to_dict())
        return 0
    out = console()
    out.print(verdict_table(summary))
    for line in _caveats(summary):
        out.print(line)
    out.print(crossover_lines(summary))
    return 0


def _caveats(summary: "Summary") -> list[str]:
    """Return what has to be said of single rows, each once, with the rows it is said of."""
    rows: dict[str, list[str]] = {}
    for row in summary.rows:
        for caveat in row.caveats:
            rows.setdefault(caveat, []).append(f"{row.label} {row.at}")
    told = [f"caveat, {', '.join(places)}: {caveat}" for caveat, places in rows.items()]
    left = len(told) - MOST_CAVEATS
    return told if left <= 0 else [*told[:MOST_CAVEATS], f"{left} more caveats: --json or --report FILE"]


def _write(target: Path, content: str) -> None:
    """Write the page.

    Raises:
        ResultsWriteError: it cannot be written.
    """
    try:
        write_whole(target, content)
    except OSError as error:
        message = f"the page cannot be written ({error}); give --report a file in a folder that is there"
        raise ResultsWriteError(message) from error
