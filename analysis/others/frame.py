"""Runs of other tools in the shape of `cells_frame`, so that whatever reads cells reads them.

Every run is a block of its own: nothing is paired by accident. Besides the columns of `cells_frame`:

    unpaired              True
    tool, source, start   as in `analysis.others.run.OtherRun`
    model                 name of the model, as the tool tells it
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from analysis.frame import cells_frame
from analysis.others.arms import OtherArm
from analysis.others.run import OtherResultsError, OtherRun
from jobs.nouns import counted
from jobs.result import FAILED, INVALID, MEASURED, OPENING, TREATMENT, CellResult

FAILED_SHARE = 0.01
"""Runs with a larger share of failed requests are invalid: what failed was left out of their figures."""
WHOLE_RUN = "over the whole run, as the runs do not all tell the same window and counts"
WINDOWED = ("total_tok_s", "output_tok_s")
"""Throughputs that a run has over its window, or only over all its work."""
NO_DRAFTS = "the server counted no drafts in this run: was it speculating?"


def others_frame(runs: Sequence[tuple[OtherRun, OtherArm]]) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return a row a run, and what has to be said about the columns.

    A metric that the runs do not all count in one way is left out, as its ratio would compare definitions.
    Where levels are of two kinds, the kind with more runs is taken.

    Raises:
        OtherResultsError: no run, or runs of several tools.
    """
    if not runs:
        message = "no run is left to judge"
        raise OtherResultsError(message)
    tools = sorted({run.tool for run, _ in runs})
    if len(tools) > 1:
        message = f"the runs are of {' and '.join(tools)}, which count differently: judge each tool's alone"
        raise OtherResultsError(message)
    axes = Counter(run.axis for run, _ in runs)
    axis = axes.most_common(1)[0][0]
    notes = [
        f"{counted(count, 'run')} at levels of {name.replace('_', ' ')} left out: the others are at "
        f"levels of {axis}"
        for name, count in axes.items()
        if name != axis
    ]
    kept = [(run, arm) for run, arm in runs if run.axis == axis]
    if _ways([run for run, _ in kept], f"throughput/{WINDOWED[0]}") > 1:
        kept = [(_whole_run(run), arm) for run, arm in kept]
    mixed, words = _definitions([run for run, _ in kept])
    notes += words
    results = [_result(place, run, arm, mixed) for place, (run, arm) in enumerate(kept)]
    frame = cells_frame(results).assign(
        unpaired=True,
        tool=[run.tool for run, _ in kept],
        source=[run.source for run, _ in kept],
        start=[run.start for run, _ in kept],
        model=[run.model for run, _ in kept],
    )
    return frame, tuple(notes)


def _ways(runs: Sequence[OtherRun], name: str) -> int:
    return len({run.definitions.get(name, "") for run in runs if name in run.metrics})


def _whole_run(run: OtherRun) -> OtherRun:
    """Return a run with the throughputs of all its work in place of its window's: all runs tell those."""
    metrics, definitions = dict(run.metrics), dict(run.definitions)
    for name in WINDOWED:
        whole = f"fixed_work/{name}"
        if whole in metrics:
            metrics[f"throughput/{name}"] = metrics[whole]
            definitions[f"throughput/{name}"] = WHOLE_RUN
    return replace(run, metrics=metrics, definitions=definitions)


def _definitions(runs: Sequence[OtherRun]) -> tuple[set[str], list[str]]:
    """Return the metrics that are not counted alike, and how those that are count."""
    mixed: set[str] = set()
    alike: dict[str, list[str]] = {}
    notes: list[str] = []
    for name in sorted({name for run in runs for name in run.metrics}):
        ways = sorted({run.definitions.get(name, "") for run in runs if name in run.metrics})
        if len(ways) > 1:
            mixed.add(name)
            told = "; ".join(way or "by this program's definition" for way in ways)
            notes.append(f"{name} left out, as the runs do not count it alike: {told}")
        elif ways[0]:
            alike.setdefault(ways[0], []).append(name)
    tool = runs[0].tool
    return mixed, [f"{tool} counts {', '.join(names)}: {way}" for way, names in alike.items()] + notes


def _result(place: int, run: OtherRun, arm: OtherArm, mixed: set[str]) -> CellResult:
    outcome, cause, reason = _outcome(run)
    no_drafts = not arm.is_baseline and run.drafts == 0
    metrics = {name: value for name, value in run.metrics.items() if name not in mixed}
    counts = {"requests/total": float(run.requests), "requests/failed": float(run.failed)}
    level = {"concurrency": int(run.level)} if run.axis == "concurrency" else {"rate": run.level}
    return CellResult(
        cell=run.source,
        arm=arm.digest,
        arm_label=arm.label,
        layout=arm.layout or arm.pair,
        drafter=arm.drafter,
        k=arm.k,
        **level,
        block=place,
        segment=0,
        role=OPENING if arm.is_baseline else TREATMENT,
        outcome=outcome,
        emulated=False,
        cause=cause,
        reason=reason,
        metrics={**metrics, **counts},
        caveats=(*run.caveats, NO_DRAFTS) if no_drafts else run.caveats,
        identity={"pair_key": arm.pair, "tool": run.tool, "tool_version": run.version, "model": run.model},
    )


def _outcome(run: OtherRun) -> tuple[str, str | None, str | None]:
    if run.failure:
        return FAILED, "run_failed", run.failure
    if run.requests and run.failed / run.requests > FAILED_SHARE:
        told = f"{run.failed} of {run.requests} requests failed, more than {FAILED_SHARE:.0%}"
        return INVALID, "request_errors", told
    return MEASURED, None, None
