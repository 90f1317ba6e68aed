"""Load levels from the group `load`: a list of numbers on one axis, checked before anything starts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jobs.load import AXES, CONCURRENCY, LoadLevel
from jobs.nouns import counted
from jobs.replay.arrivals import schedule_of
from jobs.workload.tokens import TokenWorkload
from orchestrator.errors import ConfigError

LEVEL_KEYS = tuple(f"load.{axis}" for axis in AXES)
"""Keys whose values are levels, and so no factor of the analysis."""


def levels_of(load: Mapping[str, Any]) -> tuple[LoadLevel, ...]:
    """Return the levels of the group `load`, ascending, without repeats.

    Raises:
        ConfigError: no level or two kinds of them, a level that is no number, or settings that do not go
            together; the message names the key.
    """
    axis = _axis(load)
    value = load[axis]
    values = list(value) if isinstance(value, list | tuple) else [value]
    numbers = (int,) if axis == CONCURRENCY else (int, float)
    if not values or any(isinstance(entry, bool) or not isinstance(entry, numbers) for entry in values):
        kind, example = ("a whole number", "[1,4,16]") if axis == CONCURRENCY else ("a number", "[0.5,1,2]")
        message = f"load.{axis} is {value!r}; give {kind}, or a list of them such as {example}"
        raise ConfigError(message)
    shared: dict[str, Any] = {
        key: load[key] for key in ("ramp", "process", "duration", "max_inflight") if key in load
    }
    try:
        levels = {_level(axis, entry, shared) for entry in values}
    except ValueError as error:
        raise ConfigError(str(error)) from error
    return ascending(levels)


def _level(axis: str, number: Any, shared: Mapping[str, Any]) -> LoadLevel:
    # one number, one text: 2 and 2.0 are the same rate, and have to have the same digest
    numbers: dict[str, Any] = {axis: number if axis == CONCURRENCY else float(number)}
    return LoadLevel(**numbers, **shared)


def ascending(levels: Sequence[LoadLevel] | set[LoadLevel]) -> tuple[LoadLevel, ...]:
    """Return the levels in ascending order."""
    return tuple(sorted(levels, key=lambda level: level.sort_key))


def level_at(like: LoadLevel, value: float) -> LoadLevel:
    """Return the level with another number on the axis of `like`, and its settings."""
    numbers: dict[str, Any] = {like.axis: round(value) if like.axis == CONCURRENCY else float(value)}
    return replace(like, **numbers)


def check_one_axis(levels: Sequence[LoadLevel]) -> None:
    """Refuse levels of two kinds, or of one kind with different settings, in one sweep.

    Raises:
        ConfigError: names the keys.
    """
    axes = sorted({level.axis for level in levels}, key=AXES.index)
    if len(axes) > 1:
        message = (
            f"the points have levels of {' and '.join(f'load.{axis}' for axis in axes)}; levels of one sweep "
            "are compared on one axis: run one sweep for each"
        )
        raise ConfigError(message)
    for key in ("ramp", "process", "duration", "max_inflight"):
        if len({getattr(level, key) for level in levels}) > 1:
            message = (
                f"load.{key} belongs to the sweep as a whole and cannot be one of its axes; run one sweep "
                "per value"
            )
            raise ConfigError(message)


def open_loop_notes(levels: Sequence[LoadLevel], workload: TokenWorkload) -> list[str]:
    """Return what the open-loop levels send, a sentence for all of them; nothing for closed loops.

    Raises:
        WorkloadError: a level needs arrival times that the workload lacks.
    """
    told = []
    for level in levels:
        if level.is_open:
            schedule = schedule_of(workload, level, seed=0)
            assert schedule.arrivals is not None
            epochs = schedule.order[-1][1] + 1
            told.append(
                f"{level.label}: {len(schedule.order)} over about {schedule.arrivals[-1] / 1e9:.0f} s"
                + (f", the workload {counted(epochs, 'time')} under fresh cache salts" if epochs > 1 else "")
            )
    if not told:
        return []
    first = next(level for level in levels if level.is_open)
    most = counted(first.max_inflight, "request")
    note = (
        f"open loop with {first.arrivals} arrivals, at most {most} in flight; "
        f"conversations by level: {'; '.join(told)}"
    )
    return [note]


def _axis(load: Mapping[str, Any]) -> str:
    given = [axis for axis in AXES if load.get(axis) is not None]
    if not given:
        message = (
            "load has no level: give load.concurrency=[1,4,16] for a closed loop, load.rate=[1,2] for "
            "conversations a second, or load.rate_scale=[1] for the trace's own arrivals"
        )
        raise ConfigError(message)
    if len(given) > 1:
        keys = " and ".join(f"load.{axis}" for axis in given)
        message = (
            f"{keys} are both set, and a level is one or the other: choose load=closed, load=open or "
            "load=trace (each sets one of them), or set the others to null, for instance "
            f"load.{given[0]}=null"
        )
        raise ConfigError(message)
    return given[0]
