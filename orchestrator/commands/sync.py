"""`specload sync`: bring the MLflow view of a sweep up to date with its folder."""

from collections.abc import Sequence
from dataclasses import replace

from jobs.nouns import are, counted
from jobs.result import MEASURED
from orchestrator.commands.as_json import add_json, print_json
from orchestrator.commands.parser import Parser
from orchestrator.errors import ConfigError, TrackingUnreachableError
from orchestrator.lock import DriverLock
from orchestrator.pending import pending
from orchestrator.saved import read_plan
from orchestrator.secrecy import check_url
from orchestrator.tables import console

SUMMARY = "Record in MLflow every cell of a sweep that its store lacks, with ratios and report."


def run(arguments: Sequence[str]) -> int:
    """Record what is missing; done twice, the second time finds nothing to do."""
    parser = Parser(prog="specload sync", description=SUMMARY)
    parser.add_sweep("sweep", help="results/SWEEP, or SWEEP alone")
    parser.add_argument("--uri", help="another store than the plan's, for instance one that was disabled")
    add_json(parser)
    options = parser.parse_args(arguments)
    # Late: pandas and MLflow take seconds to load, and `--help` should not wait for them.
    from analysis.frame import load_sweep  # noqa: PLC0415 - see above
    from analysis.summary import cell_ratios, summarise  # noqa: PLC0415 - see above
    from orchestrator.tracking import direct_recorder_for  # noqa: PLC0415 - see above

    directory = options.sweep
    plan = read_plan(directory)
    if options.uri is not None:
        check_url("tracking.uri", options.uri)
        plan = replace(plan, tracking={**plan.tracking, "uri": options.uri})
    recorder = direct_recorder_for(plan, directory.resolve().parent)
    if recorder is None:
        message = f"{directory} was swept without MLflow (tracking.uri=disabled); name a store with --uri"
        raise ConfigError(message)
    with DriverLock(directory):  # a driver that lives records its cells itself, and one of the two is enough
        results = load_sweep(directory).results
        recorder.open(plan, directory)
        shown = recorder.sync((result, directory / "cells" / result.cell) for result in results)
        recorder.ratios(cell_ratios(results).items())
        recorder.summary(summarise(results, threshold=plan.threshold, objective=plan.objective))
        report = directory / "report.html"
        measured = any(result.outcome == MEASURED for result in results)
        ended = "FINISHED" if measured else "FAILED"
        recorder.close(report if report.is_file() else None, "KILLED" if pending(plan, results) else ended)
    lacking = recorder.unshown(results)
    was = are(shown, one="was", many="were")
    if lacking:
        message = (
            f"MLflow store {recorder.uri} failed: it lacks {lacking} of {counted(len(results), 'cell')}, "
            f"{shown} {was} recorded now. The same command goes on once it answers"
        )
        raise TrackingUnreachableError(message)
    if options.json:
        print_json({"cells": len(results), "recorded_now": shown, "store": recorder.uri})
        return 0
    said = f"{shown} of {counted(len(results), 'cell')} {was} missing in MLflow and {are(shown)} recorded now"
    console().print(said)
    return 0
