"""`specload report`: make a sweep's report anew from its folder, as page, Markdown and pictures."""

from collections.abc import Sequence

from orchestrator.commands.as_json import add_json, print_json
from orchestrator.commands.parser import Parser
from orchestrator.errors import ResultsWriteError
from orchestrator.saved import read_plan
from orchestrator.tables import console, crossover_lines, verdict_table

SUMMARY = (
    "Make the report of a sweep anew from its results folder, as report.html, report.md and pictures of its "
    "figures, and print the verdict table."
)


def run(arguments: Sequence[str]) -> int:
    """Rebuild the report of one sweep."""
    parser = Parser(prog="specload report", description=SUMMARY)
    parser.add_sweep("sweep", help="results/SWEEP, or SWEEP alone")
    parser.add_argument(
        "--threshold", type=float, help="another practical threshold than the plan's, as a share"
    )
    parser.add_argument(
        "--no-pictures", action="store_true", help="leave out figures/*.png, which take a Chrome or Chromium"
    )
    add_json(parser)
    options = parser.parse_args(arguments)
    # Late: pandas and scipy take a second to load, and `--help` should not wait for them.
    from analysis.frame import load_sweep  # noqa: PLC0415 - see above
    from analysis.report import write_report  # noqa: PLC0415 - see above
    from analysis.summary import summarise  # noqa: PLC0415 - see above

    plan = read_plan(options.sweep)
    sweep = load_sweep(options.sweep)
    threshold = plan.threshold if options.threshold is None else options.threshold
    summary = summarise(sweep.results, threshold=threshold, objective=plan.objective)
    try:
        report = write_report(
            options.sweep,
            plan=sweep.plan,
            results=sweep.results,
            summary=summary,
            pictures=not options.no_pictures,
        )
    except OSError as error:
        message = (
            f"the report cannot be written to {options.sweep} ({error}); make room or the folder writable"
        )
        raise ResultsWriteError(message) from error
    if options.json:
        facts = {
            "report": report.html,
            "decision": report.decision,
            "files": report.paths,
            "notes": report.figures.notes,
        }
        print_json({**summary.to_dict(), **facts})
        return 0
    out = console()
    out.print(verdict_table(summary))
    out.print(crossover_lines(summary))
    out.print(f"decision: {report.decision}", soft_wrap=True)
    out.print(f"report: {report.html}", soft_wrap=True)
    out.print(f"as Markdown: {report.markdown}", soft_wrap=True)
    if report.figures.pictures:
        count, folder = len(report.figures.pictures), next(iter(report.figures.pictures.values())).parent
        out.print(f"pictures of its figures: {count} in {folder}", soft_wrap=True)
    for note in report.figures.notes:
        out.print(note, soft_wrap=True)
    return 0
