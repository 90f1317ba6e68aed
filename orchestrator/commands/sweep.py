"""`specload sweep`: run a plan, or what is left of it, and say what it came to."""

from collections.abc import Sequence

from orchestrator.commands.grid import asked, parse, use_rays_authentication
from orchestrator.estimate import estimate, read_timings
from orchestrator.tables import console, crossover_lines, plan_tables, verdict_table

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

    out = console()
    out.print(plan_tables(found.plan, estimate(found.plan, read_timings(found.results))))
    outcome = run_sweep(
        found.plan,
        found.workload,
        found.results,
        recorder=recorder_for(found.plan, found.results),
        say=lambda line: out.print(line, markup=False),
        retry_failed=found.retry_failed,
    )
    out.print(verdict_table(outcome.summary))
    out.print(crossover_lines(outcome.summary))
    out.print(f"{outcome.new_cells} cells measured now, {outcome.engine_starts} engine starts", markup=False)
    out.print(f"report: {outcome.report}", markup=False)
    out.print(f"MLflow: specload ui {outcome.directory}", markup=False)
    return 0
