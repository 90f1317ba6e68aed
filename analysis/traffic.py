"""A fleet's running requests as a distribution of loads, and what arms are worth at each load.

A server that runs n requests is taken to be where the sweep was at a concurrency of n on its slice.
Advantages between the levels tried are interpolated in log ratio over log load. Draws of all arms at all
levels together give the intervals of whatever is summed over loads.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.standings import Standing
from analysis.traffic_file import Series

DRAWS = 2000
HOLD = 5.0
"""A sample holds until the next one, at most so many median steps of its series: what is longer is a gap."""
DAY = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Load:
    """A fleet's distribution of running requests on one server."""

    running: np.ndarray
    """Distinct numbers of requests on one server."""
    seconds: np.ndarray
    """Server-seconds with each."""
    gaps: float
    """Server-seconds of gaps: nobody knows."""
    hold: float
    """Longest time that a sample was held, s."""
    servers: float
    """Servers, on average from the first sample to the last."""
    span: float
    """Seconds from the first sample to the last, its own time included."""

    @property
    def a_day(self) -> float:
        """What sums over `seconds` have to be multiplied by to be those of a day; gaps were like the rest."""
        return DAY * self.servers / float(self.seconds.sum())

    def share(self, low: float, high: float) -> float:
        """Return the share of the time with requests that has loads from `low` to below `high`."""
        busy = self.running > 0.0
        within = busy & (self.running >= low) & (self.running < high)
        total = float(self.seconds[busy].sum())
        return float(self.seconds[within].sum()) / total if total else 0.0


def fleet_load(series: Sequence[Series], *, servers: int = 1, hold: float | None = None) -> Load:
    """Return how long how many requests ran on a server.

    Args:
        series: one a server.
        servers: servers that each series is the sum of.
        hold: longest time that a sample holds, s; `HOLD` median steps of the series where None.
    """
    running: list[np.ndarray] = []
    seconds: list[np.ndarray] = []
    gaps = longest = 0.0
    for own in series:
        steps = np.diff(own.time)
        usual = float(np.median(steps))
        limit = hold if hold is not None else HOLD * usual
        after = np.append(steps, min(usual, limit))
        held = np.minimum(after, limit)
        gaps += float(np.sum(after - held))
        longest = max(longest, limit)
        running.append(own.running / servers)
        seconds.append(held * servers)
    values, places = np.unique(np.concatenate(running), return_inverse=True)
    weights = np.bincount(places, weights=np.concatenate(seconds))
    first, last = min(own.time[0] for own in series), max(own.time[-1] for own in series)
    span = float(last - first) + float(np.median([np.median(np.diff(own.time)) for own in series]))
    gaps *= servers
    return Load(
        running=values,
        seconds=weights,
        gaps=gaps,
        hold=longest,
        servers=(float(weights.sum()) + gaps) / span,
        span=span,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Advantages:
    """Log advantages over one configuration at every level, and draws of them."""

    levels: np.ndarray
    """Ascending."""
    arms: tuple[str, ...]
    means: np.ndarray
    """Levels x arms; NaN where an arm was not measured."""
    draws: np.ndarray | None
    """Draws x levels x arms; None without a replicate."""


def advantages(boards: Sequence[Standing], today: str, *, correlation: float) -> Advantages:
    """Return every arm's log advantage over `today` at each level of one group.

    Args:
        boards: standings of the group, ascending.
        today: digest of the arm that everything is compared with.
        correlation: of an arm's errors at any two levels: they share engine starts.
    """
    used = [board for board in boards if today in board.arms]
    arms = tuple(sorted({arm for board in used for arm in board.arms}))
    number = {arm: place for place, arm in enumerate(arms)}
    means = np.full((len(used), len(arms)), np.nan)
    known = all(board.variance is not None for board in used) and bool(used)
    draws = np.full((DRAWS, len(used), len(arms)), np.nan) if known else None
    generator = np.random.default_rng(0)
    together = generator.standard_normal((DRAWS, len(arms)))
    df = min((board.df for board in used), default=1)
    scale = np.sqrt(max(df, 1) / generator.chisquare(max(df, 1), size=(DRAWS, 1)))
    for row, board in enumerate(used):
        places = [number[arm] for arm in board.arms]
        means[row, places] = board.means
        if draws is not None and board.variance is not None:
            values, vectors = np.linalg.eigh(board.shares * board.variance)
            root = (vectors * np.sqrt(np.clip(values, 0.0, None))) @ vectors.T  # symmetric: arms keep places
            own = generator.standard_normal((DRAWS, len(places)))
            mixed = np.sqrt(correlation) * together[:, places] + np.sqrt(1.0 - correlation) * own
            draws[:, row, places] = board.means + (mixed @ root) * scale
    means = means - means[:, [number[today]]]
    if draws is not None:
        draws = draws - draws[:, :, [number[today]]]
    return Advantages(
        levels=np.array([board.level for board in used]),
        arms=arms,
        means=means,
        draws=draws,
    )
