"""`specload sweep`: run a plan, or what is left of it, and say what it came to."""

import shlex
from collections.abc import Sequence

from jobs.nouns import counted
from jobs.result import FAILED, INVALID, MEASURED
from orchestrator.commands.as_json import print_json
from orchestrator.commands.grid import asked, parse, use_rays_authentication
from orchestrator.estimate import estimate, read_pace
from orchestrator.live import screen
from orchestrator.mirror import mirrored
from orchestrator.plan_tables import plan_tables
from orchestrator.tables import console, crossover_lines, verdict_table
from orchestrator.tries import retry_words

SUMMARY = "Run the sweep. The same words again go on where it stopped; nothing measured is measured twice."


def run(arguments: Sequence[str]) -> int:
    """Run the sweep that the words ask for."""
    options, words = parse("sweep", SUMMARY, arguments)
    found = asked("sweep", options, words)
    if found is None:
        return 0
    use_rays_authentication(found.plan.cluster.address)
    # Late: Ray and MLflow take seconds to load, and a typo should not wait for them.
    from orchestrator.driver import run_sweep  # noqa: PLC0415 - see above
    from orchestrator.tracking import recorder_for  # noqa: PLC0415 - see above

    out = console(stderr=options.json)  # what is said on the way is no JSON
    out.print(plan_tables(found.plan, estimate(found.plan, read_pace(found.results, found.plan))))
    with (
        screen(out) as (say, show),
        mirrored(found.root, found.plan.sweep, say=say, take_over=found.take_over),
    ):
        outcome = run_sweep(
            found.plan,
            found.workload,
            found.results,
            recorder=recorder_for(found.plan, found.results),
            say=say,
            show=show,
            retry=found.retry,
            take_over=found.take_over,
        )
    url = None if found.root.url is None else f"{found.root.url}/{found.plan.sweep}"
    if options.json:
        facts = {
            "report": outcome.report.html,
            "decision": outcome.report.decision,
            "directory": outcome.directory,
            "url": url,
        }
        new = {name: getattr(outcome.new, name) for name in (MEASURED, INVALID, FAILED)}
        counts = {"new": new, "engine_starts": outcome.engine_starts}
        print_json({"sweep": found.plan.sweep, **outcome.summary.to_dict(), **counts, **facts})
        return 0
    out.print(verdict_table(outcome.summary))
    out.print(crossover_lines(outcome.summary))
    out.print(f"this run: {outcome.new.outcomes}; {counted(outcome.engine_starts, 'engine start')}")
    out.print(f"decision: {outcome.report.decision}")
    out.print(f"report: {outcome.report.html}")
    if url is not None:
        out.print(f"results: {url}")
    folder = shlex.quote(str(outcome.directory))
    again = retry_words(outcome.summary.outcomes, f"specload sweep --from {folder}/plan.json")
    if again:
        out.print(again)
    out.print(f"what to serve with, and its command line: specload recommend {folder}")
    out.print(f"MLflow: specload ui {folder}")
    return 0
