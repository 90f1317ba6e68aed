"""Acceptance by draft position, beside what one alpha for all of them would give.

A share over several cells is that of their drafts taken together. Its interval is over blocks: the variance
of a ratio of sums, blocks being the units that were repeated (the ratio estimator of survey sampling;
Cochran, Sampling Techniques, 1977, chapter 6). Blocks replay the same conversations, so it tells how the
measurement varies, and not how other texts would.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.arms import FLAGS, arm_facts, flag_notes
from analysis.contrasts import counted, t_quantile
from analysis.curves import MISSES, Fit, fit_alpha, pooled_error, position_rates
from analysis.frame import Sweep
from analysis.ksweep import MISSING
from analysis.section import Section
from jobs.result import MEASURED

COUNTED, DIFFERENCED = "counted", "from lengths"
Interval = tuple[float, float, float]
"""A share or length and the ends of its interval, NaN where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionShare:
    """How often the draft token at one position is accepted."""

    position: int
    """From 1."""
    unconditional: Interval
    """Share of drafts whose first so many tokens were all accepted."""
    conditional: Interval
    """Share of those whose earlier positions were accepted."""


def positions(sweep: Sweep) -> Section:
    """Return one row a drafter, draft length and position, pooled over levels and blocks by drafts."""
    facts = arm_facts(sweep.cells, sweep.plan)
    cells = counted(sweep.cells)
    cells = cells[(cells["outcome"] == MEASURED) & cells["k"].gt(0)]
    cells = cells.assign(family=cells["arm"].map({arm: fact.family for arm, fact in facts.items()}))
    rows: list[dict[str, object]] = []
    notes: list[str] = []
    for family, own in cells[cells["family"] != ""].groupby("family"):
        lengths = {int(str(k)): pooled_length(part, "spec/mal")[0] for k, part in own.groupby("k")}
        lengths = {k: value for k, value in lengths.items() if math.isfinite(value)}
        if not lengths:
            continue
        logs = {k: list(np.log(own.loc[own["k"] == k, "spec/mal"].dropna())) for k in lengths}
        spread = pooled_error(logs)
        alpha = fit_alpha(lengths) if spread is None else fit_alpha(lengths, *spread)
        rows += _rows(str(family), own, lengths, alpha)
        if alpha.word == MISSES:
            notes.append(misfit_words(str(family), alpha))
    frame = pd.DataFrame(rows)
    return Section(
        name="positions",
        title="Acceptance by draft position",
        frame=frame,
        columns=COLUMNS if rows else {},
        shown=tuple(name for name in COLUMNS if name not in FLAGS) if rows else (),
        notes=(*notes, *flag_notes(frame)) if rows else (),
        missing="" if rows else MISSING,
    )


def misfit_words(family: str, alpha: Fit) -> str:
    """Say how one alpha misses."""
    k = max(alpha.misfit, key=lambda key: abs(alpha.misfit[key]))
    return (
        f"{family}: one alpha does not fit; the best, {alpha.value:.3f}, misses the acceptance length at "
        f"K={k} by {alpha.misfit[k]:+.1%}: use the lengths measured, not a formula"
    )


def position_shares(cells: pd.DataFrame, k: int) -> tuple[PositionShare, ...]:
    """Return the counted shares of measured cells of one draft length; none where positions are not counted.

    Args:
        cells: rows of `cells_frame`.
        k: their draft length.
    """
    drafts = _weights(cells)
    reached = drafts
    found = []
    for place in range(1, k + 1):
        name = f"spec/acceptance_pos_{place}"
        rates = cells[name].to_numpy(dtype=float) if name in cells else np.full(len(cells), np.nan)
        accepted = drafts * rates
        share = _ratio(accepted, drafts, cells["block"])
        if not math.isfinite(share[0]):
            return ()
        found.append(
            PositionShare(
                position=place,
                unconditional=_within(share),
                conditional=_within(_ratio(accepted, reached, cells["block"])),
            )
        )
        reached = accepted
    return tuple(found)


def pooled_length(cells: pd.DataFrame, name: str) -> Interval:
    """Return the mean of a length over measured cells, weighted by their drafts, with its interval.

    Args:
        cells: rows of `cells_frame`.
        name: `spec/mal` or `spec/tokens_per_step`.
    """
    drafts = _weights(cells)
    return _ratio(drafts * cells[name].to_numpy(dtype=float), drafts, cells["block"])


def _rows(
    family: str, own: pd.DataFrame, lengths: dict[int, float], alpha: Fit
) -> Iterator[dict[str, object]]:
    implied = position_rates(lengths)
    for k in sorted(lengths):
        part = own[own["k"] == k]
        shares, source = position_shares(part, k), COUNTED
        if not shares:
            shares, source = _differenced(implied[:k]), DIFFERENCED
        for share in shares:
            row: dict[str, object] = {"drafter": family, "k": k, "position": share.position}
            row |= zip(_ends("unconditional"), share.unconditional, strict=True)
            row |= zip(_ends("conditional"), share.conditional, strict=True)
            yield row | {
                "alpha": alpha.value,
                "alpha_lo": alpha.low,
                "alpha_hi": alpha.high,
                "fitted": alpha.value**share.position,
                "source": source,
                "synthetic": bool(part["synthetic"].any()),
                "emulated": bool(part["emulated"].any()),
                "oversubscribed": bool(part["oversubscribed"].any()),
            }


def _ends(name: str) -> tuple[str, str, str]:
    return name, f"{name}_lo", f"{name}_hi"


def _differenced(rates: tuple[float, ...]) -> tuple[PositionShare, ...]:
    before = (1.0, *rates)
    return tuple(
        PositionShare(
            position=place,
            unconditional=(rate, math.nan, math.nan),
            conditional=(rate / earlier if earlier > 0.0 else math.nan, math.nan, math.nan),
        )
        for place, (earlier, rate) in enumerate(zip(before, rates, strict=False), start=1)
    )


def _within(share: Interval) -> Interval:
    """Return a share whose interval stays within 0 and 1."""
    value, low, high = share
    return (
        value,
        max(low, 0.0) if math.isfinite(low) else low,
        min(high, 1.0) if math.isfinite(high) else high,
    )


def _weights(cells: pd.DataFrame) -> np.ndarray:
    """Return the drafts of each cell; 1 for all where they were not counted."""
    drafts = cells["spec/drafts"].to_numpy(dtype=float)
    counted_all = len(drafts) > 0 and bool(np.isfinite(drafts).all()) and float(drafts.sum()) > 0.0
    return drafts if counted_all else np.ones(len(cells))


def _ratio(parts: np.ndarray, whole: np.ndarray, blocks: pd.Series) -> Interval:
    """Return the sum of parts over the sum of wholes, with its 95 % interval over blocks."""
    known = np.isfinite(parts) & np.isfinite(whole)
    weight = float(whole[known].sum())
    if weight <= 0.0:
        return (math.nan,) * 3
    share = float(parts[known].sum()) / weight
    place, names = pd.factorize(blocks.to_numpy()[known])
    if len(names) < 2:
        return share, math.nan, math.nan
    gaps = np.bincount(place, weights=parts[known] - share * whole[known])
    variance = len(names) / (len(names) - 1) * float(gaps @ gaps) / weight**2
    half = t_quantile(len(names) - 1) * math.sqrt(variance)
    return share, share - half, share + half


COLUMNS = {
    "drafter": "name of the drafter over its K",
    "k": "draft length K, tokens",
    "position": "draft position, from 1",
    "unconditional": "share of drafts whose first so many tokens were all accepted; 95 % over blocks (t)",
    "conditional": "share accepted of those whose earlier positions were",
    "alpha": "the one conditional rate that fits the mean acceptance lengths of all K best",
    "fitted": "unconditional share that this alpha would give",
    "source": f"`{COUNTED}` by the engine; `{DIFFERENCED}`: what each K adds to the mean length, made "
    "non-increasing by isotonic regression, where the engine counts no positions",
    **FLAGS,
}
