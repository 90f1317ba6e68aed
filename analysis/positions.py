"""Acceptance by draft position, beside what one alpha for all of them would give."""

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from analysis.arms import FLAGS, arm_facts, flag_notes
from analysis.contrasts import counted
from analysis.curves import MISSES, Fit, fit_alpha, pooled_error, position_rates
from analysis.frame import Sweep
from analysis.ksweep import MISSING
from analysis.section import Section
from jobs.result import MEASURED

COUNTED, DIFFERENCED = "counted", "from lengths"


def positions(sweep: Sweep) -> Section:
    """Return one row a drafter, draft length and position, pooled over levels and blocks by drafts."""
    facts = arm_facts(sweep.cells, sweep.plan)
    cells = counted(sweep.cells)
    cells = cells[(cells["outcome"] == MEASURED) & cells["k"].gt(0)]
    cells = cells.assign(family=cells["arm"].map({arm: fact.family for arm, fact in facts.items()}))
    rows: list[dict[str, object]] = []
    notes: list[str] = []
    for family, own in cells[cells["family"] != ""].groupby("family"):
        lengths = {int(str(k)): _pooled(part, "spec/mal") for k, part in own.groupby("k")}
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


def _rows(
    family: str, own: pd.DataFrame, lengths: dict[int, float], alpha: Fit
) -> Iterator[dict[str, object]]:
    implied = position_rates(lengths)
    for k in sorted(lengths):
        part = own[own["k"] == k]
        rates = [_pooled(part, f"spec/acceptance_pos_{place}") for place in range(1, k + 1)]
        source = COUNTED
        if not all(math.isfinite(rate) for rate in rates):
            rates, source = list(implied[:k]), DIFFERENCED
        before = 1.0
        for place, rate in enumerate(rates, start=1):
            yield {
                "drafter": family,
                "k": k,
                "position": place,
                "unconditional": rate,
                "conditional": rate / before if before > 0.0 else math.nan,
                "alpha": alpha.value,
                "fitted": alpha.value**place,
                "source": source,
                "synthetic": bool(part["synthetic"].any()),
                "emulated": bool(part["emulated"].any()),
                "oversubscribed": bool(part["oversubscribed"].any()),
            }
            before = rate


def _pooled(cells: pd.DataFrame, name: str) -> float:
    """Return the mean of a rate over cells, weighted by their drafts where those were counted."""
    if name not in cells:
        return math.nan
    values, weights = cells[name].to_numpy(dtype=float), cells["spec/drafts"].to_numpy(dtype=float)
    known = np.isfinite(values)
    if not known.any():
        return math.nan
    counts = weights[known]
    if not (np.isfinite(counts).all() and counts.sum() > 0.0):
        counts = np.ones(int(known.sum()))
    return float(np.average(values[known], weights=counts))


COLUMNS = {
    "drafter": "name of the drafter over its K",
    "k": "draft length K, tokens",
    "position": "draft position, from 1",
    "unconditional": "share of drafts whose first so many tokens were all accepted",
    "conditional": "share accepted of those whose earlier positions were",
    "alpha": "the one conditional rate that fits the mean acceptance lengths of all K best",
    "fitted": "unconditional share that this alpha would give",
    "source": f"`{COUNTED}` by the engine; `{DIFFERENCED}`: what each K adds to the mean length, made "
    "non-increasing by isotonic regression, where the engine counts no positions",
    **FLAGS,
}
