"""Why a ratio is what it is: its parts, which multiply to it, and the identities that hold beside them.

    ratio = acceptance x step cost x non-decode time x cached share x KV capacity x residual

See `analysis.latency_parts` for how each part is formed. Every part is a figure of each cell, fitted as the
ratio itself is, so the logs of the parts add up to the log of the ratio.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from analysis.arms import FLAGS, ArmFacts, arm_facts, flag_notes, flags
from analysis.contrasts import Contrasts, contrasts, counted
from analysis.formulas import other_time_growth
from analysis.frame import Sweep
from analysis.ksweep import POINTWISE
from analysis.latency_parts import FIGURES, PARTS, parts_of_cells
from analysis.levels import conditions
from analysis.section import Section
from jobs.result import MEASURED, TREATMENT

NAMES = ("total", "user_speed")
_OPTIONAL = {"cached_share": "cached_known", "kv_capacity": "kv_known"}
SHARES = 0.05
"""The arms' uncached shares may differ by so much, relative, before a note says so."""
MISSING = "no drafter was measured beside a baseline; run `specload sweep -m drafter=... drafter.k=3`"


def decomposition(sweep: Sweep) -> Section:
    """Return one row an arm, level and ratio (total throughput, user speed): its parts."""
    rows = [row for item in level_parts(sweep) for row in _rows(item)]
    frame = pd.DataFrame(rows)
    notes = [POINTWISE, SUM]
    if rows and not frame["ratio"].eq("total").any():
        notes.append(OPEN)
    if rows and frame["kv_capacity"].isna().all():
        notes.append(NO_MATCHED)
    return Section(
        name="decomposition",
        title="Parts of each ratio: they multiply to it",
        frame=frame,
        columns=COLUMNS if rows else {},
        shown=("arm", "level", "ratio", "whole", *PARTS) if rows else (),
        notes=(*notes, *flag_notes(frame)) if rows else (),
        missing="" if rows else MISSING,
    )


def identities(sweep: Sweep) -> Section:
    """Return one row an arm and level: the figures that hang together by an identity."""
    rows = [row for item in level_parts(sweep) for row in _identity_rows(item)]
    frame = pd.DataFrame(rows)
    notes = []
    for row in rows:
        share = row["uncached_share"]
        if isinstance(share, float) and abs(math.log(share)) > math.log1p(SHARES):
            notes.append(
                f"{row['arm']} at {row['level']:g}: computed and total throughput imply an uncached share of "
                f"{share:.3f} times the baseline's: the arms did not have equal hit rates, so this was not "
                "the same work for the engine"
            )
    return Section(
        name="identities",
        title="Identities behind the ratios",
        frame=frame,
        columns=IDENTITY_COLUMNS if rows else {},
        shown=tuple(name for name in IDENTITY_COLUMNS if name not in _HIDDEN) if rows else (),
        notes=(*notes, *flag_notes(frame)) if rows else (),
        missing="" if rows else MISSING,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelParts:
    """The parts of all cells of one level and condition, fitted against the baselines."""

    level: float
    oversubscribed: bool
    group: pd.DataFrame
    """All cells of the level."""
    cells: pd.DataFrame
    """`parts_of_cells` of them."""
    facts: dict[str, ArmFacts]
    """Of every arm of the sweep."""
    fits: dict[str, Contrasts]
    """By the columns of `cells`: arms that could be served."""
    causes: dict[str, Contrasts]
    """The same of `FIGURES` with counterfactual arms; empty where there are none."""
    _shares: dict[str, float] = field(default_factory=dict, init=False, repr=False)
    """Pair -> decode share, once it was asked for."""

    def share(self, arm: str) -> float:
        """Return the baseline's decode share f beside an arm: by its odds, averaged in logs."""
        pair = self.facts[arm].pair
        if pair not in self._shares:
            self._shares[pair] = self._share(pair)
        return self._shares[pair]

    def _share(self, pair: str) -> float:
        base = (self.group["pair"] == pair) & (self.group["role"] != TREATMENT)
        share = self.cells.loc[base, "share"].dropna()
        if share.empty:
            return math.nan
        return float(1.0 / (1.0 + math.exp(float(np.mean(np.log((1.0 - share) / share))))))

    def figure(self, name: str, arm: str) -> float:
        """Return an arm's figure over the baseline's (see `parts_of_cells`); NaN where it is not known."""
        return self.ratio(name, arm)[0]

    def ratio(self, name: str, arm: str) -> tuple[float, float, float]:
        """Return the same with its 95 % interval."""
        fit = (self.causes if self.facts[arm].counterfactual else self.fits).get(name)
        return (math.nan,) * 3 if fit is None else fit.ratio(arm)

    def growth(self, arm: str) -> float:
        """Return h: all time but decode, arm over baseline."""
        return self.figure("h", arm)


def level_parts(sweep: Sweep) -> tuple[LevelParts, ...]:
    """Return the levels of a sweep, ascending; worked out once for all that ask."""
    return sweep.once(_level_parts)


def _level_parts(sweep: Sweep) -> tuple[LevelParts, ...]:
    return tuple(_levels(sweep))


def _levels(sweep: Sweep) -> Iterator[LevelParts]:
    cells = counted(sweep.cells)
    if cells.empty:
        return
    facts = arm_facts(sweep.cells, sweep.plan)
    closed = bool(cells["axis"].eq("concurrency").all())
    for level, crowded, group in conditions(cells):
        parts = parts_of_cells(group, facts, closed=closed)
        figures = {name: parts[name].to_numpy(dtype=float) for name in FIGURES}
        for name in NAMES if closed else NAMES[1:]:
            own = [f"{name}:{part}" for part in ("whole", *PARTS)]
            complete = parts[own].notna().all(axis=1)
            figures |= {column: parts[column].where(complete).to_numpy(dtype=float) for column in own}
        yield LevelParts(
            level=level,
            oversubscribed=crowded,
            group=group,
            cells=parts,
            facts=facts,
            fits=contrasts(group, figures),
            causes=contrasts(group, {name: figures[name] for name in FIGURES}, causes=True)
            if group["counterfactual"].ne("").any()
            else {},
        )


def _arms(item: LevelParts) -> list[str]:
    """Return the arms with a drafter at the level that nobody made up, by layout and name."""
    here = [item.facts[str(arm)] for arm in item.group["arm"].unique()]
    drafted = [fact for fact in here if fact.family]
    return [
        fact.arm for fact in sorted(drafted, key=lambda fact: (fact.layout, fact.drafter, fact.k, fact.label))
    ]


def _about(item: LevelParts, arm: str) -> dict[str, object]:
    fact = item.facts[arm]
    return {
        "arm": fact.label,
        "digest": arm,
        "layout": fact.layout,
        "k": fact.k,
        "level": item.level,
        **flags([fact], oversubscribed=item.oversubscribed),
    }


def _rows(item: LevelParts) -> Iterator[dict[str, object]]:
    measured = (item.group["outcome"] == MEASURED).to_numpy(dtype=bool)
    told = item.cells.loc[measured, list(_OPTIONAL.values())].groupby(item.group.loc[measured, "arm"]).all()
    for arm in _arms(item):
        for name in NAMES:
            whole = item.fits.get(f"{name}:whole")
            if whole is None or not whole.has(arm):
                continue
            row = {**_about(item, arm), "ratio": name, "pairs": whole.pairs[whole.arms.index(arm)]}
            row |= zip(("whole", "whole_lo", "whole_hi"), whole.ratio(arm), strict=True)
            for part in PARTS:
                known = part not in _OPTIONAL or bool(told.at[arm, _OPTIONAL[part]])
                applies = name == "total" or part not in ("non_decode", "cached_share")
                ends = item.fits[f"{name}:{part}"].ratio(arm) if known and applies else (math.nan,) * 3
                row |= zip((part, f"{part}_lo", f"{part}_hi"), ends, strict=True)
            yield row


def _identity_rows(item: LevelParts) -> Iterator[dict[str, object]]:
    for arm in _arms(item):
        share, x = item.share(arm), item.figure("x", arm)
        total = item.figure("total", arm)
        own = item.group[(item.group["arm"] == arm) & (item.group["outcome"] == MEASURED)]
        if not math.isfinite(x):
            continue
        mal = float(own["spec/mal"].mean())
        computed = item.figure("computed", arm)
        yield {
            **_about(item, arm),
            "total": total,
            "user_speed": x,
            "mal": mal,
            "step_ratio": mal / x,
            "decode_share": share,
            "h": item.growth(arm),
            "h_implied": other_time_growth(total, share, x) if 0.0 < share < 1.0 else math.nan,
            "latency": item.figure("growth", arm),
            "little": total * item.figure("growth", arm),
            "uncached_share": computed / total,
            "uncached_counted": item.figure("uncached", arm),
        }


SUM = (
    "each part is a factor; their product is the ratio. `cached_share` takes time outside decode to go with "
    "the uncached prompt tokens; `residual` is what window, occupancy and the two clocks leave"
)
OPEN = (
    "open loop: what arrives is served, so total throughput says nothing about an arm until it cannot keep "
    "up; only user speed is split"
)
NO_MATCHED = (
    "KV capacity is not told apart, and stands in `non_decode` and `step_cost`: add `drafter.kv=matched` to "
    "the sweep to measure each baseline with its drafter's KV cache"
)
_HIDDEN = ("digest", "layout", "k", *FLAGS)
_ABOUT = {
    "arm": "label of the arm",
    "digest": "digest of the arm",
    "layout": "layout label",
    "k": "draft length K, tokens",
    "level": "load level on the sweep's axis",
}
COLUMNS = {
    **_ABOUT,
    "ratio": "what is split: `total` throughput or `user_speed`, over the baseline's",
    "pairs": "pairs behind the row",
    "whole": "the ratio",
    "acceptance": "factor of tokens a step, by the weight of decode in the latency",
    "step_cost": "factor of the step time, by the same weight",
    "non_decode": "factor of all time but decode (prefill, queue, gaps): h, by its weight in the latency",
    "cached_share": "factor of uncached prompt tokens: prefill that lost or gained cache hits",
    "kv_capacity": "factor of the KV cache that the drafter left, from the baseline with matched KV",
    "residual": "what is left",
    **FLAGS,
}
IDENTITY_COLUMNS = {
    **_ABOUT,
    "total": "total throughput over the baseline's: G",
    "user_speed": "user speed over the baseline's: x",
    "mal": "mean acceptance length, tokens a verification step",
    "step_ratio": "mal / user_speed: step time over the baseline's, as it follows from the two",
    "decode_share": "decode share f of the baseline's latency",
    "h": "all time but decode over the baseline's, from both decode shares and x",
    "h_implied": "the same from 1/G = (1 - f) h + f/x: what h has to be where G goes with 1/latency",
    "latency": "mean end-to-end latency over the baseline's, (1 - f) h + f/x",
    "little": "total x latency: 1 where both arms had as many users in flight (Little) and did equal work",
    "uncached_share": "computed over total ratio: uncached share of the tokens over the baseline's",
    "uncached_counted": "the same by counting all tokens of the replay; 1 with equal hit rates",
    **FLAGS,
}
