"""Bundles of levels that one more block could measure, and what each is expected to do to an interval."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import PchipInterpolator

from analysis.crossover import Crossover, find_crossover
from analysis.prices import Prices
from analysis.search_curve import Curve
from analysis.search_interval import WHOLE_NUMBERS, ends
from analysis.searches import LARGEST

CANDIDATES = 8
"""Levels that bundles are made of: the nearest to the crossing."""
AHEAD = (1, 2, 4, 8)
"""Blocks that are looked ahead: one of a new level alone may show nothing."""
DRAWS = 600
LEAST_GAIN = 0.02
"""Log of the width that a bundle has to take off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Levels to measure in one more block."""

    levels: tuple[float, ...]
    """Ascending."""
    blocks: int
    """Blocks that were looked ahead."""
    width: float
    """Width of the interval that is expected after them."""
    rate: float
    """Log of the width taken off a second, down to the stated width."""


def best_bundle(curve: Curve, found: Crossover, prices: Prices, *, width: float) -> Bundle | None:
    """Return the bundle that narrows the interval most for its time; None where none does.

    Args:
        curve: what is known, with a covariance.
        found: its crossover.
        prices: what measuring takes.
        width: upper over lower end that is enough.
    """
    low, high = ends(found, curve.levels)
    now = math.log(high / low)
    tried = candidates(curve, found, spacing=math.sqrt(width))
    sets = [own for size in range(1, LARGEST + 1) for own in itertools.combinations(tried, size)]

    def look(levels: tuple[float, ...], blocks: int) -> Bundle:
        expected = predicted_width(curve, levels, blocks)
        gain = now - math.log(max(expected, width))
        rate = gain / (blocks * prices.block(levels))
        return Bundle(levels=levels, blocks=blocks, width=expected, rate=rate)

    def order(bundle: Bundle) -> tuple[float, int, tuple[float, ...]]:
        return -bundle.rate, bundle.blocks, bundle.levels

    middle = sorted((look(levels, AHEAD[2]) for levels in sets), key=order)[:12]
    looked = [look(bundle.levels, blocks) for bundle in middle for blocks in AHEAD]
    useful = [bundle for bundle in looked if now - math.log(bundle.width) > LEAST_GAIN]
    return min(useful, key=order, default=None)


def candidates(curve: Curve, found: Crossover, *, spacing: float) -> tuple[float, ...]:
    """Return levels near the crossing, ascending: those tried, and new ones at least `spacing` apart."""
    low, high = ends(found, curve.levels)
    low, high = max(low, curve.levels[0]), min(high, curve.levels[-1])
    low, high = min(low, curve.levels[-1]), max(high, curve.levels[0])
    point = _point(found, low, high)
    known = [*curve.levels, *curve.barred]
    usable = [level for level, mean in zip(curve.levels, curve.means, strict=True) if math.isfinite(mean)]
    near = [
        max((x for x in usable if x <= low), default=None),
        min((x for x in usable if x >= high), default=None),
    ]
    old = {level for level in usable if low <= level <= high} | {level for level in near if level is not None}
    places = [low, high, point, math.sqrt(low * point), math.sqrt(point * high)]
    places += [math.sqrt(a * b) for a, b in itertools.pairwise(curve.levels) if a <= point <= b]
    new: list[float] = []
    for place in _in_gaps(places, curve):
        level = float(round(place)) if curve.axis == WHOLE_NUMBERS else float(f"{place:.3g}")
        far = all(max(level / other, other / level) >= spacing for other in [*known, *new])
        gap = (
            curve.axis == WHOLE_NUMBERS
            and level not in known
            and level not in new
            and level < 1.0 / (spacing - 1.0)
        )
        if curve.levels[0] < level < curve.levels[-1] and (far or gap):
            new.append(level)
    ranked = sorted({*old, *new}, key=lambda level: (abs(math.log(level / point)), level))
    return tuple(sorted(ranked[:CANDIDATES]))


def predicted_width(curve: Curve, levels: Sequence[float], blocks: int) -> float:
    """Return the width of the interval if so many more blocks measured these levels and found what is there.

    What is there: the means so far, and between them a monotone curve through them.
    """
    assert curve.covariance is not None
    assert curve.df is not None
    means = dict(zip(curve.levels, curve.means, strict=True))
    whole = sorted({*curve.levels, *levels})
    guessed = _guessed(curve, whole)
    expected = [means.get(level, guess) for level, guess in zip(whole, guessed.tolist(), strict=True)]
    old = [whole.index(level) for level in curve.levels]
    counts = np.zeros(len(whole))
    counts[old] = curve.blocks
    own = np.diag(curve.covariance) * np.array(curve.blocks, dtype=float)
    finite = np.isfinite(curve.means)
    single = float(own[finite].mean())
    # sums over blocks: what two levels share of the blocks they have in common
    sums = np.zeros((len(whole), len(whole)))
    sums[np.ix_(old, old)] = curve.covariance * np.outer(curve.blocks, curve.blocks)
    chosen = [whole.index(level) for level in levels]
    for one, other in itertools.product(chosen, chosen):
        sums[one, other] += blocks * single * (1.0 if one == other else curve.correlation)
    after = counts.copy()
    after[chosen] += blocks
    covariance = sums / np.outer(after, after)
    df = np.full(len(whole), curve.pooled_df)
    df[old] = curve.df
    for place in chosen:
        if counts[place]:
            df[place] += 2.0 * blocks
        elif blocks > 1:
            df[place] = 2.0 * blocks - 1.0
    low, high = ends(find_crossover(whole, expected, covariance, df, draws=DRAWS), whole)
    return high / low


def _guessed(curve: Curve, levels: Sequence[float]) -> np.ndarray:
    """Return what the means at new levels may be: on a monotone curve through those known, flat beyond."""
    finite = [(math.log(x), y) for x, y in zip(curve.levels, curve.means, strict=True) if math.isfinite(y)]
    places, values = [x for x, _ in finite], [y for _, y in finite]
    if len(finite) == 1:
        return np.full(len(levels), values[0])
    found: np.ndarray = PchipInterpolator(places, values)(np.clip(np.log(levels), places[0], places[-1]))
    return found


def _point(found: Crossover, low: float, high: float) -> float:
    main = found.main
    point = math.sqrt(low * high) if main is None or main.log_log is None else main.log_log
    return min(max(point, low), high)


def _in_gaps(places: Sequence[float], curve: Curve) -> Iterator[float]:
    """Yield the places; beside a level where memory ran out, the middle of the gap alone."""
    for place in places:
        above = [(x, y) for x, y in zip(curve.levels, curve.means, strict=True) if x > place]
        below = [x for x in curve.levels if x <= place]
        if above and below and not math.isfinite(above[0][1]):
            yield math.sqrt(below[-1] * above[0][0])
        else:
            yield place
