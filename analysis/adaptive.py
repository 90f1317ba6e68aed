"""Adaptive levels: where to measure next so that the level looked for is known best for the time it takes.

A search starts from the planned levels and adds rounds: each is one block of the arms that are still open,
with its own opening and closing baselines, at a few levels an arm. Which ones is a preposterior analysis: of
every bundle of levels near the crossing, with some numbers of blocks, the interval is predicted that the
analysis would give if the curve were what it looks like now; the bundle that takes most off the log of the
interval's width for the time of its engine starts and cells goes next. A level may come again: then it is a
replicate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from analysis.axis import AXES
from analysis.bundles import Bundle, best_bundle
from analysis.contrasts import counted
from analysis.crossover import Crossover, find_crossover
from analysis.objectives import OBJECTIVES
from analysis.prices import Prices
from analysis.search_curve import Curve, ratio_curves, slo_curves
from analysis.search_interval import ends, integers_decided
from analysis.searches import CROSSOVER
from jobs.nouns import counted as number_of

FOUND = "found"
OUTSIDE = "outside"
OPEN = "open"
STUCK = "stuck"
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What is looked for, and how well it is to be known."""

    kind: str
    """One of `analysis.searches.SEARCHES`."""
    width: float = 1.25
    """Upper over lower end of the interval at which a search ends."""
    objective: str = "total"
    """Of a crossover: name in `analysis.objectives.CROSSOVERS`."""
    limits: Mapping[str, float] = field(default_factory=dict)
    """Of a service level: ms by name in `analysis.search_curve.LATENCIES`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchState:
    """How far the search of one arm is."""

    curve: Curve
    crossover: Crossover
    status: str
    """`found`, `outside` (surely not within the levels), `open`, `stuck` (no bundle narrows it any more) or
    `unknown` (nothing to go by)."""
    text: str
    """One sentence for people."""
    bundle: Bundle | None = None
    """Of an open one: what to measure next."""

    @property
    def width(self) -> float:
        """Upper over lower end of the interval; an end beyond the levels counts as twice beyond."""
        low, high = ends(self.crossover, self.curve.levels)
        return high / low


@dataclass(frozen=True, slots=True, kw_only=True)
class NextLevel:
    """The levels of the next round: one block of the arms named."""

    arms: Mapping[str, tuple[float, ...]]
    """Digest -> levels, ascending. A baseline is named only where its own latencies are looked at."""
    reason: str
    """For people."""

    @property
    def levels(self) -> tuple[float, ...]:
        """All levels of the round, ascending."""
        return tuple(sorted({level for levels in self.arms.values() for level in levels}))


def next_level(cells: pd.DataFrame, search: Search) -> NextLevel | None:
    """Return the levels to measure next; None where the search has ended.

    Args:
        cells: `cells_frame` of everything measured so far.
        search: what is looked for.
    """
    return choose(search_states(cells, search))


def search_states(cells: pd.DataFrame, search: Search) -> list[SearchState]:
    """Return how far the search of every arm is, by label; arguments as for `next_level`."""
    own = counted(cells)
    if own.empty:
        return []
    if search.kind == CROSSOVER:
        curves = ratio_curves(own, search.objective)
    else:
        curves = slo_curves(own, search.limits)
    prices = Prices.of(own)
    return [state_of(curve, search, prices) for curve in curves]


def state_of(curve: Curve, search: Search, prices: Prices) -> SearchState:
    """Return how far the search on one curve is."""
    found = find_crossover(curve.levels, curve.means, curve.covariance, curve.df)
    axis = AXES[curve.axis]
    if not curve.levels or curve.covariance is None:
        beside = " beside a baseline" if search.kind == CROSSOVER else ""
        why = (
            f"no level was measured in two blocks{beside}, so nothing is known of the noise (oversubscribed "
            "and invalid cells do not count)"
        )
        return SearchState(curve=curve, crossover=found, status=UNKNOWN, text=f"{curve.label}: {why}")
    what = _what(search)
    low, high = ends(found, curve.levels)
    first, last = axis.at(curve.levels[0]), axis.at(curve.levels[-1])
    if found.low is None and not found.low_censored:
        text = f"{curve.label}: {what} above {last}, the highest level that counts"
        return SearchState(curve=curve, crossover=found, status=OUTSIDE, text=text)
    if found.high is None and not found.high_censored:
        text = f"{curve.label}: {what} below {first}, the lowest level that counts"
        return SearchState(curve=curve, crossover=found, status=OUTSIDE, text=text)
    told = f"{_end(low, found.low)} to {_end(high, found.high)} (95 %)"
    sure = not found.low_censored and not found.high_censored
    if sure and (high / low <= search.width or integers_decided(low, high, curve.axis)):
        text = f"{curve.label}: {what} {told}"
        return SearchState(curve=curve, crossover=found, status=FOUND, text=text)
    bundle = best_bundle(curve, found, prices, width=search.width)
    if bundle is None:
        text = f"{curve.label}: {what} {told}; no further level or block would narrow that much"
        return SearchState(curve=curve, crossover=found, status=STUCK, text=text)
    at = ", ".join(axis.at(level) for level in bundle.levels)
    count = number_of(bundle.blocks, "block")
    text = (
        f"{curve.label}: {what} {told}, {high / low:.2f} times apart; {at} is expected to bring that to "
        f"{bundle.width:.2f} in {count}"
    )
    return SearchState(curve=curve, crossover=found, status=OPEN, text=text, bundle=bundle)


def choose(states: Sequence[SearchState]) -> NextLevel | None:
    """Return the round of the arms that are still open; None where none is."""
    wanted = [state for state in states if state.bundle is not None]
    if not wanted:
        return None
    arms = {state.curve.arm: state.bundle.levels for state in wanted if state.bundle is not None}
    return NextLevel(arms=arms, reason="; ".join(state.text for state in wanted))


def _what(search: Search) -> str:
    if search.kind == CROSSOVER:
        return f"crossover on {OBJECTIVES[search.objective].title}"
    told = [
        f"{name.removesuffix('_ms').upper()} p95 <= {limit:g} ms" for name, limit in search.limits.items()
    ]
    return f"keeps {', '.join(told)} up to"


def _end(value: float, own: float | None) -> str:
    return f"{value:.3g}" if own is not None else "beyond the levels"
