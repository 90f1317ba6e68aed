"""What a drafter would gain at other draft lengths or another step cost: lengths over 1 + c + s K.

    quotient(K) = g MAL(K) / (1 + c + s K)          g: tokens a decode step over those a verification step

MAL(K) is that of one alpha where this fits the lengths measured; where it does not, the shares by position
that the lengths imply. K goes no farther than the largest measured: nothing is known of positions beyond.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from analysis.curves import MISSES, Fit, best_length, position_rates
from analysis.formulas import mean_acceptance_length
from analysis.ksweep import DrafterLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthModel:
    """One drafter at one level."""

    lengths: Mapping[int, float]
    """K, from 1 to the largest measured -> mean acceptance length by the curve."""
    formula: bool
    """Whether the lengths are those of one alpha; otherwise of the shares by position."""
    alpha: Fit
    steps: Fit
    """c and s."""
    share: float
    """g: geometric mean over the K measured; below 1 where steps go without a draft or end an answer."""

    def step(self, k: float, s: float | None = None) -> float:
        """Return T(K)/t0 with the cost of a draft token as fitted, or another."""
        return 1.0 + self.steps.fixed + (self.steps.value if s is None else s) * k

    def quotient(self, k: int, s: float | None = None) -> float:
        """Return tokens a step over the step's cost."""
        return self.share * self.lengths[k] / self.step(k, s)

    def best(self, s: float | None = None) -> int:
        """Return the K with the largest quotient; 0 where none is above 1."""
        tokens = {k: self.share * length for k, length in self.lengths.items()}
        return best_length(tokens, self.steps.value if s is None else s, self.steps.fixed)[0]


def length_model(item: DrafterLevel) -> LengthModel | None:
    """Return the model of a drafter at a level; None where lengths or step times are not known."""
    alpha, steps = item.alpha(), item.steps()
    if alpha is None or steps is None:
        return None
    known = {k: value for k, value in item.lengths.items() if value > 0.0}
    top = max(known)
    formula = alpha.word != MISSES
    rates = position_rates(known)
    lengths = {
        k: mean_acceptance_length(alpha.value, k) if formula else 1.0 + math.fsum(rates[:k])
        for k in range(1, top + 1)
    }
    tokens = {k: item.fits["tokens"].ratio(arm)[0] for k, arm in item.arms.items() if k in known}
    shares = [math.log(value / known[k]) for k, value in tokens.items() if math.isfinite(value)]
    share = math.exp(float(np.mean(shares))) if shares else 1.0
    return LengthModel(lengths=lengths, formula=formula, alpha=alpha, steps=steps, share=share)
