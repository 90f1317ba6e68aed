"""`specload compare`: two sweeps beside each other, or why they cannot be."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from analysis.whole_file import write_whole
from orchestrator.commands.as_json import add_json, print_json
from orchestrator.commands.parser import Parser
from orchestrator.errors import ConfigError
from orchestrator.saved import read_plan
from orchestrator.tables import console

if TYPE_CHECKING:
    from analysis.compare.comparison import Comparison

SUMMARY = (
    "Compare two sweeps of the same workload and arms: two engine versions, two kinds of hardware, two days. "
    "Prints how each arm's ratio to its baseline changed from A to B, what explains it, whether what to "
    "serve with changes, and what else differs. Sweeps that cannot be compared are refused."
)


def run(arguments: Sequence[str]) -> int:
    """Print the comparison of two sweeps."""
    parser = Parser(prog="specload compare", description=SUMMARY)
    parser.add_sweep("a", metavar="A", help="results/SWEEP that is compared with")
    parser.add_sweep("b", metavar="B", help="results/SWEEP that is compared")
    parser.add_argument(
        "--objective", help="compare on this and not on the plans': total, output, user_speed, ..."
    )
    parser.add_argument(
        "--threshold", type=float, help="another practical threshold than the plans', as a share"
    )
    parser.add_argument("--explain", action="store_true", help="define every column below its table")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write an HTML page, too")
    add_json(parser)
    options = parser.parse_args(arguments)
    # Late: pandas and scipy take a second to load, and `--help` should not wait for them.
    from analysis.compare.comparison import compare_sweeps  # noqa: PLC0415 - see above
    from analysis.frame import load_sweep  # noqa: PLC0415 - see above
    from orchestrator.section_tables import section_tables  # noqa: PLC0415 - see above

    if options.threshold is not None and not 0.0 <= options.threshold < 1.0:
        message = f"--threshold is {options.threshold:g}; it is a share, as 0.02 for 2 %: give 0 to below 1"
        raise ConfigError(message)
    if options.report is not None:
        with _writing(options.report):  # before the work, not after it
            options.report.parent.mkdir(parents=True, exist_ok=True)
    for place in (options.a, options.b):
        read_plan(place)  # says what is wrong with a folder as all commands do
    found = compare_sweeps(
        load_sweep(options.a),
        load_sweep(options.b),
        objective=options.objective,
        threshold=options.threshold,
    )
    if options.report is not None:
        _write(options.report, found)
    if options.json:
        print_json(found.to_dict())
        return 0
    out = console()
    out.print(Text.assemble(("A", "bold"), f" {options.a}\n", ("B", "bold"), f" {options.b}\n"))
    for finding in found.findings:
        out.print(Text(finding))
    out.print(Text(""))
    out.print(section_tables(found.sections, explain=options.explain))
    for caveat in found.caveats:
        out.print(Text(f"caveat: {caveat}", style="yellow"))
    if options.report is not None:
        out.print(Text(f"report: {options.report}"))
    return 0


@contextmanager
def _writing(file: Path) -> Iterator[None]:
    """Turn what the file system refuses into a sentence."""
    try:
        yield
    except OSError as error:
        message = f"--report {file}: the page cannot be written ({error.strerror}); name another file"
        raise ConfigError(message) from error


def _write(file: Path, found: "Comparison") -> None:
    from analysis.compare.page import render_comparison  # noqa: PLC0415 - plotly is loaded for a page only

    page = render_comparison(found)
    with _writing(file):
        write_whole(file, page)
