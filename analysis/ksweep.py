"""The K sweep: what each draft length yields, what its step costs, and the one over the other.

    tokens per step (K)  /  T(K)/t0  =  user speed over the baseline's

The left side is the engine's own account (counters), the right side the users' clock; where they disagree,
the step cost by the users' clock stands beside the engine's.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.arms import FLAGS, ArmFacts, arm_facts, flag_notes, flags
from analysis.axis import AXES, Axis
from analysis.contrasts import Contrasts, contrasts, counted, log_figure, t_quantile
from analysis.curves import Fit, fit_alpha, fit_steps, pooled_error
from analysis.frame import Sweep
from analysis.levels import conditions
from analysis.objectives import CROSSOVERS
from analysis.pairs import log_metric
from analysis.section import Section
from jobs.result import MEASURED

_OWN = ["arm", "k", "spec/mal", "step/mean_ms"]
CLOCKS = 0.05
"""The two step costs may differ by so much, relative, before a note says so."""
POINTWISE = (
    "intervals are 95 % of one comparison each (t, residuals pooled over the arms of a level): they explain "
    "and do not judge; verdicts have wider ones"
)
MISSING = "no drafter was measured beside a baseline; run `specload sweep -m drafter=... drafter.k=1,3,5,7`"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrafterLevel:
    """One drafter over its K at one level: what the K sweep, the step cost and the best K are made of."""

    family: str
    layout: str
    level: float
    oversubscribed: bool
    arms: dict[int, str]
    """K -> digest, ascending."""
    facts: dict[int, ArmFacts]
    """K -> what else is known of the arm."""
    own: pd.DataFrame
    """Measured cells of these arms, the columns of `_OWN`."""
    fits: dict[str, Contrasts]
    """All arms of the level, by the names of `level_figures`."""
    lengths: dict[int, float]
    """K -> mean acceptance length over the cells; those whose engine does not tell are left out."""
    errors: tuple[dict[int, float], int] | None
    """Standard error of the log of each length, and its degrees of freedom; None without a second cell."""

    def length(self, k: int) -> tuple[float, float, float]:
        """Return the mean acceptance length at a K with its 95 % interval; NaN where it is not known.

        Its noise is that of all K together: the spread of the logs of the cells of one K.
        """
        value = self.lengths.get(k, math.nan)
        if self.errors is None or k not in self.errors[0]:
            return value, math.nan, math.nan
        half = t_quantile(self.errors[1]) * self.errors[0][k]
        return value, value * math.exp(-half), value * math.exp(half)

    @property
    def step_arms(self) -> dict[int, str]:
        """K -> digest of those arms whose step time is known beside a baseline's."""
        return {k: arm for k, arm in self.arms.items() if self.fits["step"].has(arm)}

    def alpha(self) -> Fit | None:
        """Return the one alpha that fits the acceptance lengths best."""
        lengths = {k: value for k, value in self.lengths.items() if value > 0.0}
        if not lengths:
            return None
        return fit_alpha(lengths) if self.errors is None else fit_alpha(lengths, *self.errors)

    def steps(self) -> Fit | None:
        """Return the straight line that fits the step times best."""
        arms = self.step_arms
        if not arms:
            return None
        part = self.fits["step"].of(list(arms.values()))
        ratios = {k: math.exp(mean) for k, mean in zip(arms, part.means, strict=True)}
        return fit_steps(ratios, part.shares, part.variance, part.df)


def level_figures(group: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the logs that the K sweep needs of each cell of a level, the objectives among them.

    A step without drafts yields one token a request, also where an engine does not count them.
    """
    tokens, mal = log_figure(group, "spec/tokens_per_step"), log_figure(group, "spec/mal")
    tokens = np.where(np.isnan(tokens), mal, tokens)
    plain = (group["k"] == 0).to_numpy(dtype=bool)
    tokens = np.where(plain & np.isnan(tokens), 0.0, tokens)
    step = log_figure(group, "step/mean_ms")
    objectives = {name: log_metric(group, name).to_numpy(dtype=float) for name in CROSSOVERS}
    return {
        "tokens": tokens,
        "step": step,
        "quotient": tokens - step,
        "clock": tokens - objectives["user_speed"],
        **objectives,
    }


def drafter_levels(sweep: Sweep) -> tuple[DrafterLevel, ...]:
    """Return every drafter of a sweep at every level, by name and level; counterfactual arms are none.

    Worked out once for all that ask.
    """
    return sweep.once(_drafter_levels)


def _drafter_levels(sweep: Sweep) -> tuple[DrafterLevel, ...]:
    facts = arm_facts(sweep.cells, sweep.plan)
    cells = counted(sweep.cells)
    found = []
    for level, crowded, group in conditions(cells):
        fits = contrasts(group, level_figures(group))
        known = {arm for fit in fits.values() for arm in fit.arms}
        families: dict[str, dict[int, ArmFacts]] = {}
        for arm in sorted(known, key=lambda name: (facts[name].k, name)):  # a set has no order of its own
            if facts[arm].family:
                families.setdefault(facts[arm].family, {})[facts[arm].k] = facts[arm]
        for family, own in families.items():
            arms = {k: fact.arm for k, fact in own.items()}
            measured = group["arm"].isin(list(arms.values())) & (group["outcome"] == MEASURED)
            found.append(
                DrafterLevel(
                    family=family,
                    layout=next(iter(own.values())).layout,
                    level=level,
                    oversubscribed=crowded,
                    arms=arms,
                    facts=own,
                    own=group.loc[measured, _OWN],
                    fits=fits,
                    lengths=_lengths(group.loc[measured]),
                    errors=_length_errors(group.loc[measured]),
                )
            )
    return tuple(sorted(found, key=lambda item: (item.layout, item.family, item.level, item.oversubscribed)))


def _lengths(own: pd.DataFrame) -> dict[int, float]:
    means = own.groupby("k")["spec/mal"].mean().dropna()
    return {int(str(k)): float(value) for k, value in means.items()}


def _length_errors(own: pd.DataFrame) -> tuple[dict[int, float], int] | None:
    known = own.loc[own["spec/mal"].gt(0.0), ["k", "spec/mal"]]
    return pooled_error({int(str(k)): np.log(logs.to_numpy()) for k, logs in known.groupby("k")["spec/mal"]})


def axis_of(sweep: Sweep) -> Axis:
    """Return the axis of a sweep's load levels."""
    return AXES[str(sweep.cells["axis"].iloc[0]) if len(sweep.cells) else "concurrency"]


def k_sweep(sweep: Sweep) -> Section:
    """Return one row a drafter, level and draft length."""
    rows = [row for item in drafter_levels(sweep) for row in _rows(item)]
    frame = pd.DataFrame(rows)
    return Section(
        name="k_sweep",
        title="K sweep: tokens a step, cost of a step, and their quotient",
        frame=frame,
        columns=COLUMNS if rows else {},
        shown=SHOWN if rows else (),
        notes=_notes(frame, axis_of(sweep)) if rows else (),
        missing="" if rows else MISSING,
    )


def _rows(item: DrafterLevel) -> Iterator[dict[str, object]]:
    alpha, steps = item.alpha(), item.steps()
    step_ms = item.own.groupby("arm")["step/mean_ms"].mean()
    for k, arm in item.arms.items():
        row: dict[str, object] = {
            "drafter": item.family,
            "layout": item.layout,
            "level": item.level,
            "k": k,
            "arm": arm,
            "pairs": max(fit.pairs[fit.arms.index(arm)] for fit in item.fits.values() if fit.has(arm)),
        }
        row |= zip(("mal", "mal_lo", "mal_hi"), item.length(k), strict=True)
        for column, fit in (
            ("tokens_per_step", "tokens"),
            ("step_ratio", "step"),
            ("quotient", "quotient"),
            ("user_speed", "user_speed"),
            ("step_ratio_clock", "clock"),
            ("total", "total"),
        ):
            row |= zip((column, f"{column}_lo", f"{column}_hi"), item.fits[fit].ratio(arm), strict=True)
        row |= {
            "step_ms": float(step_ms.get(arm, math.nan)),
            "acceptance_misfit": alpha.misfit.get(k, math.nan) if alpha and alpha.spare else math.nan,
            "step_misfit": steps.misfit.get(k, math.nan) if steps and steps.spare else math.nan,
            **flags([item.facts[k]], oversubscribed=item.oversubscribed),
        }
        yield row


def _notes(frame: pd.DataFrame, axis: Axis) -> tuple[str, ...]:
    clocks = np.log(frame["step_ratio_clock"].to_numpy() / frame["step_ratio"].to_numpy())
    apart = frame[np.abs(clocks) > math.log1p(CLOCKS)]
    found = [POINTWISE]
    found += [
        f"{row.drafter} K={row.k} at {axis.at(float(str(row.level)))}: a step costs {row.step_ratio:.3f} by "
        f"the engine's counters and {row.step_ratio_clock:.3f} by the users' clock; ends of answers, merged "
        "chunks or a busy client are between them"
        for row in apart.itertuples()
    ]
    return (*found, *flag_notes(frame))


COLUMNS = {
    "drafter": "name of the drafter over its K: everything but K is equal",
    "layout": "layout label",
    "level": "load level on the sweep's axis",
    "k": "draft length K, tokens",
    "arm": "digest of the arm",
    "pairs": "pairs behind the row",
    "mal": "mean acceptance length over the cells, tokens a verification step",
    "tokens_per_step": "tokens a decode step over the baseline's (1 a request), drafted steps or not",
    "step_ratio": "T(K)/t0 by the engine's counters: mean step time over the baseline's, within blocks",
    "quotient": "tokens a step over the step ratio: user speed over the baseline's, as the counters have it",
    "user_speed": "user speed over the baseline's, by the users' clock",
    "step_ratio_clock": "tokens a step over the user-speed ratio: T(K)/t0 by the users' clock",
    "total": "total throughput over the baseline's",
    "step_ms": "mean step time, ms; mean over the cells",
    "acceptance_misfit": "mean acceptance length over what the one alpha of all K gives, less 1",
    "step_misfit": "step ratio over what the straight line in K gives, less 1; missing without a spare point",
    **FLAGS,
}
SHOWN = (
    "drafter",
    "level",
    "k",
    "mal",
    "tokens_per_step",
    "step_ratio",
    "quotient",
    "user_speed",
    "step_ratio_clock",
    "acceptance_misfit",
    "step_misfit",
)
