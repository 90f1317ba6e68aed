"""What a configuration is worth to a fleet: its advantage weighted by the fleet's own running requests.

    tokens gained = sum of time x today's tokens/s at that load x (ratio - 1)
    device-hours saved = sum of time x devices x (1 - 1 / ratio): the same tokens on fewer servers

Each row takes one configuration to serve all of the time; a schedule changes K with load, and is taken to be
as good as the arms that it is made of. Beside the levels tried nothing is known, so nothing is gained or lost
there: it is told how much of the time that is.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.contrasts import counted
from analysis.errors import ResultsError
from analysis.frame import Sweep
from analysis.levels import common_correlation, fit_levels, residuals_by_run
from analysis.objectives import OBJECTIVES
from analysis.points import figure, points_of
from analysis.recommendation import Recommendation
from analysis.standings import standings
from analysis.traffic import Advantages, Load, advantages
from engines.nearest import did_you_mean

HOUR = 3600.0
THROUGHPUTS = ("total", "computed", "output", "goodput")
"""Objectives of which amounts can be gained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """A figure with its 95 % interval; NaN ends without a replicate."""

    value: float
    lo: float
    hi: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRow:
    """One configuration that serves all of the time, against today's."""

    label: str
    ahead: Amount
    """Share of the time with requests at loads where it is ahead of today's."""
    inside: float
    """Share of the time with requests at loads within the levels tried."""
    gained: Amount
    """Tokens (requests, for goodput) a day."""
    share: Amount
    """`gained` over what today's configuration makes within the levels tried."""
    hours: Amount
    """Device-hours a day that the same work would take less."""
    proposal: bool
    """Whether it is a schedule, which nobody has measured as one yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Today's configuration, and what others are worth against it."""

    today: str
    """Label."""
    rows: tuple[FleetRow, ...]
    """The largest gain first."""
    made: float
    """Tokens (requests) a day that today's makes at loads within the levels tried."""
    levels: tuple[float, float]
    """Lowest and highest level tried."""
    devices: int
    """Devices of a server."""


def fleet_value(sweep: Sweep, found: Recommendation, load: Load, *, today: str | None = None) -> Fleet:
    """Return what each configuration of today's group of layouts is worth.

    Args:
        sweep: the sweep.
        found: its recommendation.
        load: the fleet's distribution of loads.
        today: label of the arm that serves today; None for the baseline, where there is one only.

    Raises:
        ResultsError: the objective has no amounts, levels are no concurrencies, or there is no such arm.
    """
    arm = _today(sweep, found, today)
    boards = [board for board in standings(sweep.cells, found.objective) if not board.oversubscribed]
    group = next((board.group for board in boards if arm in board.arms), None)
    own = sorted((board for board in boards if board.group == group), key=lambda board: board.level)
    if not own:
        message = f"{found.candidates[arm].label} was measured at no level where it can be compared"
        raise ResultsError(message)
    fitted = fit_levels(counted(sweep.cells))
    correlation = common_correlation(residuals_by_run(fitted, found.objective))
    table = advantages(own, arm, correlation=correlation)
    rates = _rates(sweep, found.objective, arm, table.levels)
    worth = _Worth(load=load, table=table, rates=rates, devices=own[0].devices)
    rows = [
        worth.row(found.candidates[name].label, [(0.0, name)], proposal=False)
        for name in table.arms
        if name in found.candidates and name != arm
    ]
    rows += [
        worth.row(
            f"{schedule.family} by concurrency",
            [(step.low, step.arm) for step in schedule.steps],
            proposal=True,
        )
        for schedule in found.schedules
        if all(step.arm in table.arms for step in schedule.steps)
    ]
    return Fleet(
        today=found.candidates[arm].label,
        rows=tuple(sorted(rows, key=lambda row: -row.gained.value)),
        made=float(np.sum(worth.today)) * load.a_day,
        levels=(float(table.levels[0]), float(table.levels[-1])),
        devices=own[0].devices,
    )


def _today(sweep: Sweep, found: Recommendation, label: str | None) -> str:
    if found.objective not in THROUGHPUTS:
        message = (
            f"the objective is {found.objective}, of which no amount can be gained; traffic takes "
            f"--objective {' or '.join(THROUGHPUTS)}"
        )
        raise ResultsError(message)
    axes = set(sweep.cells["axis"])
    if axes - {"concurrency"}:
        message = (
            f"the sweep's levels are of {', '.join(sorted(axes))}; running requests are weighted by "
            "load.concurrency: run a sweep with load=closed"
        )
        raise ResultsError(message)
    known = {candidate.label: candidate for candidate in found.candidates.values()}
    if label is not None:
        if label not in known:
            guess = did_you_mean(label, known)
            message = (
                f"--today {label!r} is no arm that can be served{guess}; arms are {', '.join(sorted(known))}"
            )
            raise ResultsError(message)
        return known[label].arm
    baselines = [candidate for candidate in known.values() if candidate.is_baseline]
    if len(baselines) != 1:
        names = ", ".join(sorted(candidate.label for candidate in baselines)) or "none"
        message = f"which configuration serves today? Give --today LABEL; baselines are {names}"
        raise ResultsError(message)
    return baselines[0].arm


def _rates(sweep: Sweep, objective: str, arm: str, levels: np.ndarray) -> np.ndarray:
    """Return the log of an arm's own rate at each level, on the whole slice."""
    points = points_of(sweep.cells)
    means = figure(points, OBJECTIVES[objective].metric).means
    own = (points.facts["arm"] == arm).to_numpy(dtype=bool)
    by_level = dict(zip(points.facts["level"][own], means[own], strict=True))
    return np.array([by_level.get(level, np.nan) for level in levels])


class _Worth:
    """Sums over the fleet's loads."""

    def __init__(self, *, load: Load, table: Advantages, rates: np.ndarray, devices: int) -> None:
        self._load, self._table, self._devices = load, table, devices
        self._busy = load.running > 0.0
        logs = interpolate(load.running, table.levels, rates[:, None])[:, 0]
        self.today = np.where(np.isfinite(logs), load.seconds * np.exp(np.nan_to_num(logs)), 0.0)
        """Tokens that today's makes at each load, 0 beside the levels tried."""

    def row(self, label: str, steps: Sequence[tuple[float, str]], *, proposal: bool) -> FleetRow:
        """Return the row of a configuration: arms, each from a load on."""
        logs = self._logs(self._table.means[None], steps)[0]
        drawn = None if self._table.draws is None else self._logs(self._table.draws, steps)
        known = np.isfinite(logs) & (self.today > 0.0)
        busy = float(self._load.seconds[self._busy].sum()) or math.nan
        seconds = np.where(known, self._load.seconds, 0.0)
        made = float(self.today.sum()) or math.nan
        a_day = self._load.a_day

        def summed(weights: np.ndarray, change: np.ndarray) -> np.ndarray:
            total: np.ndarray = np.nan_to_num(np.where(known, change, 0.0)) @ weights
            return total

        def amount(weights: np.ndarray, kind: str, scale: float) -> Amount:
            value = float(summed(weights, _change(kind, logs))) * scale
            if drawn is None:
                return Amount(value=value, lo=math.nan, hi=math.nan)
            lo, hi = np.quantile(summed(weights, _change(kind, drawn)) * scale, (0.025, 0.975))
            return Amount(value=value, lo=float(lo), hi=float(hi))

        return FleetRow(
            label=label,
            ahead=amount(seconds, "ahead", 1.0 / busy),
            inside=float(seconds[self._busy].sum()) / busy,
            gained=amount(self.today, "gain", a_day),
            share=amount(self.today, "gain", 1.0 / made),
            hours=amount(seconds, "saved", self._devices * a_day / HOUR),
            proposal=proposal,
        )

    def _logs(self, means: np.ndarray, steps: Sequence[tuple[float, str]]) -> np.ndarray:
        """Return the log advantage at each load (draws x loads), NaN beside the levels of the arm in use."""
        found = np.full((len(means), len(self._load.running)), np.nan)
        starts = np.array([low for low, _ in steps])
        use = np.searchsorted(starts, self._load.running, side="right") - 1
        for place, (_, arm) in enumerate(steps):
            here = use == place
            column = self._table.arms.index(arm)
            found[:, here] = interpolate(
                self._load.running[here], self._table.levels, means[:, :, column].T
            ).T
        return found


def _change(kind: str, logs: np.ndarray) -> np.ndarray:
    """Return what a log ratio changes: `gain` R - 1, `saved` 1 - 1/R, `ahead` whether R is above 1."""
    changes: dict[str, np.ndarray] = {
        "gain": np.expm1(logs),
        "saved": -np.expm1(-logs),
        "ahead": (logs > 0.0).astype(float),
    }
    return changes[kind]


def interpolate(loads: np.ndarray, levels: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return values (levels x columns) at loads, linear in log load; NaN beside the levels that have a value.

    Levels without one (NaN in the first column) are left out.
    """
    known = np.isfinite(values[:, 0])
    found = np.full((len(loads), values.shape[1]), np.nan)
    if not known.any():
        return found
    at, y = np.log(levels[known]), values[known]
    inside = (loads >= levels[known][0]) & (loads <= levels[known][-1])
    x = np.log(loads[inside])
    upper = np.clip(np.searchsorted(at, x), 1, max(len(at) - 1, 1))
    if len(at) == 1:
        found[inside] = y[0]
        return found
    weight = ((x - at[upper - 1]) / (at[upper] - at[upper - 1]))[:, None]
    found[inside] = (1.0 - weight) * y[upper - 1] + weight * y[upper]
    return found
