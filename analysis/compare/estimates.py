"""The difference of two estimates that share no noise, and what can be said of it.

    B - A,   variance = variance of A + variance of B,   degrees of freedom by Welch and Satterthwaite

(B. L. Welch, Biometrika 34, 1947.) Each side's variance is that of its own sweep, residuals pooled there.
"""

import math
from dataclasses import dataclass

from analysis.contrasts import Contrasts, t_quantile
from analysis.fit import CONFIDENCE, Contrast, LevelFit
from analysis.multiplicity import critical_value
from analysis.rows import Ratio
from analysis.verdict import LOSES, WINS, Verdict, decide, threshold_of

BETTER, WORSE = "better", "worse"
_WORDS = {WINS: BETTER, LOSES: WORSE}
_LARGEST_CORRELATION = 0.999


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean log ratio with its standard error."""

    value: float
    error: float | None
    """None without a replicate."""
    df: float = 0.0
    """Degrees of freedom behind the error."""
    pairs: int = 1
    """Replicates it rests on."""

    def ratio(self, critical: float | None = None) -> Ratio:
        """Return e^value with its interval: of this comparison alone where no critical value is given."""
        if self.error is None:
            return Ratio.of_log(self.value, pairs=self.pairs)
        quantile = t_quantile(self.df) if critical is None else critical
        return Ratio.of_log(self.value, quantile * self.error, pairs=self.pairs)


def of_contrast(contrast: Contrast, fit: LevelFit) -> Estimate:
    """Return an arm's contrast as an estimate."""
    return Estimate(value=contrast.estimate, error=contrast.error, df=float(fit.df), pairs=contrast.pairs)


def of_contrasts(found: Contrasts, arm: str) -> Estimate | None:
    """Return one arm of some contrasts as an estimate; None where it has none."""
    if not found.has(arm):
        return None
    place = found.arms.index(arm)
    error = None
    if found.variance is not None:
        error = math.sqrt(max(0.0, float(found.shares[place, place])) * found.variance)
    return Estimate(
        value=float(found.means[place]), error=error, df=float(found.df), pairs=found.pairs[place]
    )


def change(a: Estimate, b: Estimate) -> Estimate:
    """Return B less A."""
    value, pairs = b.value - a.value, min(a.pairs, b.pairs)
    if a.error is None or b.error is None:
        return Estimate(value=value, error=None, pairs=pairs)
    first, second = a.error**2, b.error**2
    total = first + second
    df = total**2 / (first**2 / a.df + second**2 / b.df) if total > 0.0 else a.df + b.df
    return Estimate(value=value, error=math.sqrt(total), df=df, pairs=pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One change, judged."""

    ratio: Ratio
    """B over A, with the interval that it was judged by."""
    word: str
    """`BETTER`, `WORSE`, or `no difference` or `undecided` of `analysis.verdict`."""
    reason: str
    threshold: float
    """t, as a share."""
    more_blocks: int | None = None
    """Of an undecided one: further blocks in each sweep that would decide; None if unknown or too many."""


def judge(
    found: Estimate,
    *,
    family: int,
    correlation: float = 0.0,
    practical: float,
    spread: float | None,
    higher_is_better: bool = True,
) -> Judgement:
    """Return what can be said of a change, by the rule of a sweep's own verdicts.

    Args:
        found: the change.
        family: changes that are judged at once.
        correlation: mean correlation of them.
        practical: threshold below which a difference does not matter, as a share.
        spread: the larger A/A spread of the two sweeps, as a log ratio; None where neither has one.
        higher_is_better: whether more is better.
    """
    if found.error is None:
        reason = "no interval: it takes two blocks or more in either sweep"
        threshold = threshold_of(practical, spread)
        return Judgement(ratio=found.ratio(), word="undecided", reason=reason, threshold=threshold)
    shared = round(min(max(correlation, 0.0), _LARGEST_CORRELATION), 6)
    critical = critical_value(family, max(found.df, 1.0), shared, CONFIDENCE)
    contrast = Contrast(
        estimate=found.value,
        factor=math.nan,  # the errors come from two fits; nothing asks for it
        pairs=found.pairs,
        family=family,
        correlation=shared,
        error=found.error,
        critical=critical,
    )
    verdict: Verdict = decide(
        contrast,
        LevelFit(df=max(1, int(found.df))),
        practical=practical,
        spread=spread,
        higher_is_better=higher_is_better,
    )
    reason = verdict.reason
    if verdict.more_blocks is not None:
        reason = reason.replace("would decide", "in each sweep would decide")
    return Judgement(
        ratio=found.ratio(critical),
        word=_WORDS.get(verdict.word, verdict.word),
        reason=reason,
        threshold=verdict.threshold,
        more_blocks=verdict.more_blocks,
    )
