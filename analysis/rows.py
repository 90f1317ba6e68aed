"""The rows of a summary: values only, each turning into plain JSON with `dataclasses.asdict`."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from analysis.axis import AXES
from analysis.crossover import Crossover
from analysis.formulas import implied_step_ratio, ratio_of, uncached_share_ratio
from analysis.objectives import OBJECTIVES


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A ratio to the baseline with its simultaneous 95 % interval."""

    value: float
    """Geometric mean over the pairs."""
    lo: float | None = None
    """None where the level has no replicate."""
    hi: float | None = None
    pairs: int = 1
    """Pairs it rests on."""

    @classmethod
    def of_log(cls, estimate: float, half: float | None = None, *, pairs: int = 1) -> Self:
        """Return the ratio of a log ratio, and of half the width of its interval where it has one."""
        if half is None:
            return cls(value=ratio_of(estimate), pairs=pairs)
        low, high = ratio_of(estimate - half), ratio_of(estimate + half)
        return cls(value=ratio_of(estimate), lo=low, hi=high, pairs=pairs)

    @property
    def inverse(self) -> "Ratio":
        """1 over it, ends changed over."""
        return Ratio(
            value=1.0 / self.value,
            lo=None if self.hi is None else 1.0 / self.hi,
            hi=None if self.lo is None else 1.0 / self.lo,
            pairs=self.pairs,
        )


def ratio_columns(name: str, ratio: Ratio | None) -> dict[str, float]:
    """Return a ratio as the three columns of a section: the figure and the ends of its interval, else NaN."""
    found = (None,) * 3 if ratio is None else (ratio.value, ratio.lo, ratio.hi)
    keys = (name, f"{name}_lo", f"{name}_hi")
    return {key: math.nan if part is None else part for key, part in zip(keys, found, strict=True)}


def implied(mal: float | None, ratios: Mapping[str, Ratio | None]) -> tuple[float | None, float | None]:
    """Return `step_ratio` and `uncached_share_ratio` of a `VerdictRow`: they follow from its other fields."""
    speed, total, computed = (ratios.get(name) for name in ("user_speed", "total", "computed"))
    step = implied_step_ratio(mal, speed.value) if mal and speed else None
    return step, uncached_share_ratio(computed.value, total.value) if computed and total else None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRow:
    """One arm at one load level against its baseline."""

    arm: str
    """Digest of the arm."""
    label: str
    """Its name, unique within the sweep."""
    pair: str
    """What it shares with its baseline."""
    layout: str
    drafter: str
    k: int
    axis: str
    """What the level is a number of: a key of `analysis.axis.AXES`."""
    level: float
    blocks: int
    """Pairs (one a block and segment) that the verdict rests on."""
    verdict: str
    """One of `analysis.verdict.VERDICTS`."""
    reason: str
    threshold: float
    """t of the verdict, as a share."""
    total: Ratio | None = None
    """Ratio of total throughput."""
    computed: Ratio | None = None
    """Ratio of computed throughput."""
    output: Ratio | None = None
    """Ratio of output throughput."""
    user_speed: Ratio | None = None
    goodput: Ratio | None = None
    """Ratio of the requests a second within the limits of an SLO; None without limits."""
    fixed_total: Ratio | None = None
    """Ratio of total throughput over the whole fixed work, drain included."""
    ttft_p95: Ratio | None = None
    """Ratio of the latency: below 1 is better, as for the next two."""
    tpot_p95: Ratio | None = None
    e2el_p95: Ratio | None = None
    mal: float | None = None
    """Mean acceptance length over the pairs."""
    step_ratio: float | None = None
    """MAL over the user-speed ratio: length of a step over the baseline's, by the user's clock."""
    uncached_share_ratio: float | None = None
    """Computed over total ratio: uncached token share, speculative over baseline; 1 with equal hit rates."""
    sign_flip_p: float | None = None
    """Two-sided p of the sign-flip test on the objective's log ratios; printed, never deciding."""
    more_blocks: int | None = None
    """Of an undecided row: further blocks that would decide it."""
    outcomes: Mapping[str, int] = field(default_factory=dict)
    """The arm's cells at this level by outcome."""
    capacity_failure: bool = False
    """No cell was measured because memory ran out: a loss where crossovers are looked for."""
    emulated: bool = False
    synthetic: bool = False
    counterfactual: str = ""
    """`kv_matched` or `loaded_only` of an engine nobody would serve with; empty for all others."""
    oversubscribed: bool = False
    unpaired: bool = False
    """Arm and baseline were not measured in the same blocks: what differs between runs is in the ratio."""
    caveats: tuple[str, ...] = ()

    @property
    def at(self) -> str:
        """The level as text: `C=16`."""
        return AXES[self.axis].at(self.level)

    def ratio(self, objective: str) -> Ratio | None:
        """Return the ratio of an objective by its name in `analysis.objectives.OBJECTIVES`."""
        return {
            "total": self.total,
            "computed": self.computed,
            "output": self.output,
            "user_speed": self.user_speed,
            "goodput": self.goodput,
            "fixed_total": self.fixed_total,
            "ttft_p95": self.ttft_p95,
            "tpot_p95": self.tpot_p95,
            "e2el_p95": self.e2el_p95,
        }[objective]

    def gain(self, objective: str) -> Ratio | None:
        """Return the same turned so that more than 1 is better: of a latency its inverse."""
        ratio = self.ratio(objective)
        return ratio if ratio is None or OBJECTIVES[objective].higher_is_better else ratio.inverse


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineRow:
    """One baseline at one load level: the figures that the ratios refer to."""

    label: str
    pair: str
    layout: str
    level: float
    cells: int
    """Measured opening and closing cells."""
    values: Mapping[str, float | None]
    """Objective -> geometric mean over the cells, in the unit of its metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A level that was tried and gave no ratio."""

    level: float
    why: str
    """`2 x invalid: cold_cache, ...`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossoverRow:
    """Where one arm's ratio passes 1, for one objective."""

    arm: str
    label: str
    layout: str
    drafter: str
    k: int
    objective: str
    """Name in `analysis.objectives.OBJECTIVES`."""
    levels: tuple[float, ...]
    """Levels tried that gave a ratio or failed for lack of capacity."""
    crossover: Crossover
    text: str
    """One sentence for people."""
    unread: tuple[Unread, ...] = ()
    """Levels tried that gave none, ascending: where the curve passes 1 may lie there."""
    oversubscribed: bool = False
    """Client and engine shared a core: an indication, no verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A/A spread of the baselines at one level."""

    level: float
    values: Mapping[str, float]
    """Objective -> root mean square of ln(close/open)."""
    segments: int
    """Segments with both baselines."""
