"""`specload sync`: bring the MLflow view of a sweep up to date with its folder."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from jobs.result import MEASURED
from orchestrator.saved import read_plan
from orchestrator.tables import console

SUMMARY = "Record in MLflow every cell of a sweep that its store lacks, with ratios and report."


def run(arguments: Sequence[str]) -> int:
    """Record what is missing."""
    parser = argparse.ArgumentParser(prog="specload sync", description=SUMMARY)
    parser.add_argument("sweep", type=Path, help="results/SWEEP")
    parser.add_argument("--uri", help="another store than the plan's, for instance one that was disabled")
    options = parser.parse_args(arguments)
    # Late: pandas and MLflow take seconds to load, and `--help` should not wait for them.
    from analysis.frame import load_sweep  # noqa: PLC0415 - see above
    from analysis.summary import cell_ratios  # noqa: PLC0415 - see above
    from orchestrator.tracking import recorder_for  # noqa: PLC0415 - see above

    plan = read_plan(options.sweep)
    if options.uri is not None:
        plan = replace(plan, tracking={**plan.tracking, "uri": options.uri})
    results = load_sweep(options.sweep).results
    recorder = recorder_for(plan, options.sweep.resolve().parent)
    recorder.open(plan, options.sweep)
    shown = recorder.sync((result, options.sweep / "cells" / result.cell) for result in results)
    recorder.ratios(cell_ratios(results).items())
    report = options.sweep / "report.html"
    measured = any(result.outcome == MEASURED for result in results)
    recorder.close(report if report.is_file() else None, "FINISHED" if measured else "FAILED")
    said = f"{shown} of {len(results)} cells were missing in MLflow and are recorded now"
    console().print(said, markup=False)
    return 0
