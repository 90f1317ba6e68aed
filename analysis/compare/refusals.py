"""What cannot be compared, and why: each reason names its key and both values.

A difference that is the point of a comparison (version, hardware, day, flags) is no reason. What both sweeps
did has to be the same work under the same kind of load, or a change would be of the question, not of the
answer.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pandas as pd

from analysis.compare.identity import Matching
from analysis.compare.side import Side
from analysis.contrasts import counted
from analysis.errors import ResultsError
from analysis.frame import Sweep
from analysis.objectives import DEFAULT, check_objective
from jobs.result import MEASURED

_DIGITS = 10
"""Of a digest that is shown."""
NAMED = 4
"""So many arms are named in a sentence."""
_POLICIES = ("output", "output_tokens", "max_output_tokens", "gaps", "gap_scale", "fit", "max_turns")
"""Keys of the group `workload` that change what is asked of an engine."""
_LOAD = ("process", "ramp", "duration")
"""Keys of the group `load` beside the level itself."""


class ComparisonError(ResultsError):
    """Two sweeps that cannot be compared; the message names what differs, and both values."""


def objective_of(a: Sweep, b: Sweep, asked: str | None) -> str:
    """Return what the verdicts are on.

    Raises:
        ComparisonError: an unknown objective, or two of them and none asked for.
    """
    if asked is not None:
        check_objective(asked, error=ComparisonError)
        return asked
    own = [str(sweep.plan.get("objective") or DEFAULT) for sweep in (a, b)]
    if own[0] != own[1]:
        message = (
            f"A was judged on {own[0]} and B on {own[1]} (design.objective): verdicts on two objectives have "
            f"nothing in common; read both on one with --objective {own[0]}"
        )
        raise ComparisonError(message)
    return own[0]


def check_comparable(a: Sweep, b: Sweep, *, objective: str) -> None:
    """Refuse two sweeps whose figures do not answer the same question.

    Raises:
        ComparisonError: every reason, in one paragraph.
    """
    if a.directory.resolve() == b.directory.resolve() or _same_measurements(a, b):
        message = (
            f"{a.directory} and {b.directory} hold the same measurements: there is nothing to compare; give "
            "two sweeps"
        )
        raise ComparisonError(message)
    for letter, sweep in (("A", a), ("B", b)):
        if counted(sweep.cells).empty or not sweep.cells["outcome"].eq(MEASURED).any():
            command = shlex.join(["specload", "status", str(sweep.directory)])
            message = f"{letter} ({sweep.directory}) has no measured cell; `{command}` says what became of it"
            raise ComparisonError(message)
    reasons = [*_work(a, b), *_conditions(a, b), *_limits(a, b, objective)]
    if reasons:
        raise ComparisonError(refused(a, b, reasons))


def refused(a: Sweep, b: Sweep, reasons: list[str]) -> str:
    """Return one paragraph of the reasons."""
    return f"{a.directory} (A) and {b.directory} (B) cannot be compared: {'; '.join(reasons)}"


def _work(a: Sweep, b: Sweep) -> Iterator[str]:
    told = len(list(_policies(a, b)))
    yield from _policies(a, b)
    digests = [_workload_digests(sweep) for sweep in (a, b)]
    if not told and all(digests) and digests[0] != digests[1]:
        names = [str((sweep.plan.get("workload") or {}).get("name", "?")) for sweep in (a, b)]
        shown = [", ".join(digest[:_DIGITS] for digest in sorted(own)) for own in digests]
        yield (
            f"workload is {names[0]} with digest {shown[0]} in A and {names[1]} with digest {shown[1]} in B: "
            "the arms did not replay the same conversations (another tokenizer makes others of them, too)"
        )
    validity = [_own(sweep.plan.get("workload"), "validity") for sweep in (a, b)]
    if validity[0] != validity[1]:
        yield (
            f"content validity is {validity[0] or 'unknown'} in A and {validity[1] or 'unknown'} in B: "
            "acceptance on the one means something else than on the other"
        )


def _policies(a: Sweep, b: Sweep) -> Iterator[str]:
    mine, theirs = ((sweep.plan.get("workload") or {}).get("options") or {} for sweep in (a, b))
    for name in _POLICIES:
        if mine and theirs and mine.get(name) != theirs.get(name):
            yield (
                f"workload.{name} is {_word(mine.get(name))} in A and {_word(theirs.get(name))} in B: the "
                "arms did not do the same work"
            )


def _workload_digests(sweep: Sweep) -> set[str]:
    """Return what the cells say that they replayed, or else the plan."""
    told = {str(cell.identity["workload"]) for cell in sweep.results if cell.identity.get("workload")}
    planned = (sweep.plan.get("workload") or {}).get("digest")
    return told or ({str(planned)} if planned else set())


def _conditions(a: Sweep, b: Sweep) -> Iterator[str]:
    axes = [str(sweep.cells["axis"].iloc[0]) for sweep in (a, b)]
    if axes[0] != axes[1]:
        yield (f"levels are of load.{axes[0]} in A and of load.{axes[1]} in B: no level is in both")
    for name in _LOAD:
        values = [_of_levels(sweep, name) for sweep in (a, b)]
        if axes[0] == axes[1] and values[0] != values[1] and all(values):
            yield f"load.{name} is {_words(values[0])} in A and {_words(values[1])} in B: not the same load"
    state = [_cache(sweep) for sweep in (a, b)]
    if state[0] != state[1]:
        yield (
            f"cache.state is {state[0]} in A and {state[1]} in B: a prompt that is cached in the one is "
            "computed in the other"
        )
    kinds = [_told(sweep, "emulated", all, "emulated", "measured") for sweep in (a, b)]
    if kinds[0] != kinds[1]:
        yield (
            f"figures of A are {kinds[0]} and those of B {kinds[1]}: a model of hardware is compared with "
            "hardware only by who checks the model"
        )
    cores = [_told(sweep, "oversubscribed", all, "shared", "of their own") for sweep in (a, b)]
    if cores[0] != cores[1]:
        yield (
            f"cores of client and engine are {cores[0]} in A and {cores[1]} in B: a client that takes the "
            "engine's time is in every figure of the one and of none of the other"
        )


def _limits(a: Sweep, b: Sweep, objective: str) -> Iterator[str]:
    limits = [
        {key: value for key, value in (sweep.plan.get("slo") or {}).items() if value is not None}
        for sweep in (a, b)
    ]
    if objective == "goodput" and limits[0] != limits[1]:
        yield (
            f"design.slo is {_words(limits[0].items())} in A and {_words(limits[1].items())} in B: goodput "
            "counts other requests"
        )


def _same_measurements(a: Sweep, b: Sweep) -> bool:
    told = [{(cell.cell, cell.started) for cell in sweep.results if cell.started} for sweep in (a, b)]
    return bool(told[0] & told[1])


def _of_levels(sweep: Sweep, name: str) -> set[str]:
    levels = [level for arm in sweep.plan.get("arms", ()) for level in arm.get("levels", ())]
    return {_word(level.get(name)) for level in levels}


def _cache(sweep: Sweep) -> str:
    plan: Mapping[str, Any] = sweep.plan.get("cache") or {}
    state = str(plan.get("state") or "cold")
    return f"{state} ({plan.get('prime')})" if state == "primed" else state


def _told(sweep: Sweep, column: str, every: Callable[[pd.Series], bool], yes: str, no: str) -> str:
    cells = counted(sweep.cells)
    measured = cells.loc[cells["outcome"].eq(MEASURED), column].astype(bool)
    return yes if every(measured) else no


def _own(plan: Mapping[str, Any] | None, key: str) -> str:
    return str((plan or {}).get(key) or "")


def _word(value: Any) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _words(values: Any) -> str:
    told = [
        " ".join(_word(part) for part in value) if isinstance(value, tuple) else value for value in values
    ]
    return ", ".join(sorted(told)) or "none"


def no_arm(matching: Matching) -> str:
    """Say that no arm is in both sweeps."""
    sides = [
        ", ".join(f"{arm.label} on {arm.devices}" for arm, _ in matching.only[letter][:NAMED])
        for letter in ("A", "B")
    ]
    return f"no arm is in both (drafter, K, layout, devices of the slice): A has {sides[0]}; B has {sides[1]}"


def no_drafter(matching: Matching) -> str:
    """Say that only baselines are in both sweeps."""
    return f"no arm with a drafter is in both: A has {_labels(matching, 'A')}; B has {_labels(matching, 'B')}"


def no_level(a: Side, b: Side) -> str:
    """Say that no arm with a drafter has a level in both sweeps."""
    levels = [sorted({level for _, level in side.rows}) for side in (a, b)]
    told = [", ".join(f"{level:g}" for level in own) or "none" for own in levels]
    if set(levels[0]) & set(levels[1]):
        return (
            f"no arm has a common level under one condition: A has levels {told[0]}, B {told[1]}, and where "
            "they meet client and engine shared a core in one of them only"
        )
    return f"load levels are {told[0]} in A and {told[1]} in B: none is in both"


def _labels(matching: Matching, letter: str) -> str:
    return ", ".join(arm.label for arm, _ in matching.only[letter][:NAMED]) or "none"
