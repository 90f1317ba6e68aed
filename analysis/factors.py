"""What was swept, as factors: which there are, and the cells of one comparison as a table of them.

A treatment is a drafter with its K and its settings (`ngram-k3`); the baseline is the treatment `none`,
measured twice a segment. What an arm is beside the factors that are compared (the model, a cache strategy) is
held: it splits the cells into tables of their own, so that nothing is averaged that nobody asked to average.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.contrasts import counted
from analysis.frame import FACTOR
from analysis.objectives import OBJECTIVES, check_objective
from analysis.pairs import log_metric
from engines.nearest import did_you_mean
from jobs.result import MEASURED

LAYOUT = "layout"
TREATMENT = "treatment"
BASELINE = "none"
"""The treatment that the others are compared with."""
_PER_SLICE = ("throughput/", "fixed_work/", "slo/goodput_req_s")
"""Metrics that grow with the devices of the slice: compared per device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorTable:
    """The measured cells of one comparison: one load per device, everything but its factors held."""

    per_device: float
    """Load level per device of the slice."""
    held: str
    """What else was swept, and its value here; empty where nothing was."""
    factors: tuple[str, ...]
    frame: pd.DataFrame
    """A row a cell: `y` (ln of the objective, per device), `stratum`, the factors as text, `level`, and the
    columns of `cells_frame`."""

    def levels(self, factor: str) -> list[str]:
        """Return a factor's levels: the baseline first, then by name with numbers as numbers."""
        names = self.frame[factor].unique()
        return sorted((str(name) for name in names), key=lambda name: (name != BASELINE, _natural(name)))


def per_device(objective: str) -> bool:
    """Whether an objective grows with the devices, and is compared per device."""
    return OBJECTIVES[objective].metric.startswith(_PER_SLICE)


def short(factor: str) -> str:
    """Return a factor's name without the prefix of swept keys."""
    return factor.removeprefix(FACTOR)


def with_treatment(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells with a column `treatment`: the arm's name without its layout and swept keys."""
    names = {
        (label, layout): str(label).removeprefix(f"{layout}/").partition(" [")[0]
        for label, layout in set(zip(cells["label"], cells["layout"], strict=True))
    }
    found = [names[pair] for pair in zip(cells["label"], cells["layout"], strict=True)]
    return cells.assign(**{TREATMENT: np.where(cells["drafter"] == BASELINE, BASELINE, found)})


def swept_factors(cells: pd.DataFrame) -> list[str]:
    """Return the factors that vary: `layout`, `treatment`, and each swept key that these do not settle.

    A key settles nothing new where it never differs between arms of one layout and one treatment: those of
    the drafter and of the layout themselves.
    """
    arms = with_treatment(cells).drop_duplicates("arm")
    own = [name for name in (LAYOUT, TREATMENT) if arms[name].nunique() > 1]
    keys = [name for name in arms.columns if name.startswith(FACTOR)]
    return own + [
        key for key in keys if _text(arms[key]).groupby([arms[LAYOUT], arms[TREATMENT]]).nunique().max() > 1
    ]


def factor_tables(cells: pd.DataFrame, factors: Sequence[str], objective: str) -> Iterator[FactorTable]:
    """Yield a table for each load per device and each value of what is held, those without a cell left out.

    Cells that were not measured, that shared a core with the client, that nobody would serve with or that
    only confirm a winner are left out.

    Args:
        cells: `cells_frame` of one sweep.
        factors: `layout`, `treatment` or `factor:<key>` (a bare `<key>` will do).
        objective: a name in `OBJECTIVES`.

    Raises:
        ValueError: an unknown objective or factor, or one factor twice.
    """
    names = resolve(cells, factors, objective)
    kept = with_treatment(counted(cells))
    # A stratum with a crowded cell has a crowded block: as everywhere, it is never pooled with others.
    crowded = kept.groupby(["pair", "block", "segment", "level"])["oversubscribed"].transform("any")
    kept = kept[(kept["outcome"] == MEASURED) & ~crowded.astype(bool) & (kept["counterfactual"] == "")]
    figures = log_metric(kept, objective)
    devices = kept["devices"].to_numpy(dtype=float)
    table = kept.assign(
        y=figures - np.log(devices) if per_device(objective) else figures,
        stratum=kept["block"].astype(str) + "." + kept["segment"].astype(str),
        load=(kept["level"] / devices).round(9),
        **{name: _text(kept[name]) for name in names},
    )
    table = table[np.isfinite(table["y"])]
    table["held"] = _held(table, names)
    for (load, held), group in table.groupby(["load", "held"], sort=True):
        yield FactorTable(per_device=float(load), held=str(held), factors=tuple(names), frame=group)


def resolve(cells: pd.DataFrame, factors: Sequence[str], objective: str) -> list[str]:
    """Return the columns of these factors.

    Raises:
        ValueError: an unknown objective or factor, none, or one twice.
    """
    check_objective(objective)
    known = [LAYOUT, TREATMENT, *(name for name in cells.columns if str(name).startswith(FACTOR))]
    names = [name if name in known else f"{FACTOR}{name}" for name in factors]
    strangers = [given for given, name in zip(factors, names, strict=True) if name not in known]
    if strangers or not names or len(set(names)) < len(names):
        told = ", ".join(f"{name}{did_you_mean(name, known)}" for name in strangers)
        why = f"no factor {told}" if strangers else "give each factor once, and at least one"
        message = f"{why}; the sweep has {', '.join(known)}"
        raise ValueError(message)
    return names


def _held(table: pd.DataFrame, factors: Sequence[str]) -> pd.Series:
    """Return, for each row, what was swept beside the factors, as text."""
    others = [name for name in swept_factors(table) if name not in factors]
    varying = []
    for name in others:
        text = _text(table[name])
        if text.groupby([table[factor] for factor in factors]).nunique().max() > 1:
            varying.append(text.map(lambda value, name=name: f"{short(name)}={value}"))
    held = pd.Series("", index=table.index)
    for text in varying:
        held = text if (held == "").all() else held + ", " + text
    return held


def _text(values: pd.Series) -> pd.Series:
    return values.astype(object).where(values.notna(), "-").astype(str)


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """Return a key that sorts `k3` before `k10`."""
    return tuple((int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name))
