"""Synthetic acceptance: drafts are accepted by chance at chosen rates, whatever they say.

One value for every engine. It is given in one of three forms, and every form comes down to K unconditional
rates: the chance that the first i drafts of a step are all accepted. How an engine is told is
`engines/acceptance_translation.py`'s business.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

from engines.digest import digest

GEOMETRIC = "geometric"
MINIMUM_VARIANCE = "minimum_variance"
SHAPES = (GEOMETRIC, MINIMUM_VARIANCE)
"""How a mean length is spread over the positions: one conditional rate at each, or whole positions first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where measured rates were read, so that a plan says what they stand for."""

    kind: str
    """`cell` or `file`."""
    name: str
    """Cell, or file and row."""
    digest: str
    """SHA-256 of the file that was read."""
    note: str = ""
    """What to keep in mind: how far a fit moved the measured figures, what they were measured on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """How many drafts of a step are accepted, by chance. Exactly one of the three forms is given."""

    alpha: float | None = None
    """Conditional probability, 0 to 1, that a draft token is accepted when all before it were."""
    length: float | None = None
    """Mean acceptance length in tokens a step, the verifier's own included: 1 to K + 1."""
    shape: str | None = None
    """How `length` is spread over the positions: one of `SHAPES`; None without `length`."""
    positions: tuple[float, ...] | None = None
    """Unconditional probability that the first i drafts are all accepted, for i = 1, 2, ...: never rising."""
    source: Source | None = None
    """Where `positions` were measured. No part of the identity: equal rates are the same arm."""

    def __post_init__(self) -> None:
        given = [name for name in ("alpha", "length", "positions") if getattr(self, name) is not None]
        if len(given) != 1:
            message = (
                "drafter.acceptance is given in one form: alpha, length or positions; "
                f"{' and '.join(given) or 'none of them'} is set"
            )
            raise ValueError(message)
        if (self.length is None) != (self.shape is None) or self.shape not in {None, *SHAPES}:
            message = (
                f"drafter.acceptance.shape is {self.shape!r}; with a length it is one of {', '.join(SHAPES)}"
            )
            raise ValueError(message)
        if self.alpha is not None and not 0.0 <= self.alpha <= 1.0:
            message = f"drafter.acceptance.alpha is {self.alpha:g}; it is a probability: choose 0 to 1"
            raise ValueError(message)
        if self.length is not None and not 1.0 <= self.length < math.inf:
            message = (
                f"drafter.acceptance.length is {self.length:g}; it counts the tokens of a step, the "
                "verifier's own included: choose 1 to k + 1"
            )
            raise ValueError(message)
        if self.positions is not None:
            _check_positions(self.positions)

    def refusal(self, k: int) -> str | None:
        """Return why a draft length of `k` cannot be accepted like this, None where it can."""
        if self.length is not None and self.length > k + 1:
            return (
                f"drafter.acceptance.length={self.length:g} is out of reach at k={k}: a step yields 1 to "
                f"{k + 1} tokens; choose a length within them, or k of {math.ceil(self.length) - 1} or more"
            )
        if self.positions is not None and len(self.positions) < k:
            return (
                f"drafter.acceptance names {len(self.positions)} positions and a draft of k={k} has more; "
                f"give {k}, or choose a smaller k"
            )
        return None

    def rates(self, k: int) -> tuple[float, ...]:
        """Return the K unconditional rates: the chance that the first 1, 2, ..., K drafts are all accepted.

        More positions than K are cut: what a drafter does at one position does not depend on those after it.

        Raises:
            ValueError: they cannot be had at this K (see `refusal`).
        """
        reason = self.refusal(k)
        if reason is not None:
            raise ValueError(reason)
        if self.positions is not None:
            return self.positions[:k]
        if self.length is not None and self.shape == MINIMUM_VARIANCE:
            return minimum_variance_rates(self.length, k)
        alpha = alpha_for(self.length, k) if self.length is not None else self.alpha
        assert alpha is not None
        return tuple(alpha**position for position in range(1, k + 1))

    def mean_length(self, k: int) -> float:
        """Return the expected mean acceptance length (tokens per step, the verifier's own included)."""
        return 1.0 + math.fsum(self.rates(k))

    def at(self, k: int) -> "Acceptance":
        """Return what of it matters at draft length `k`: equal rates make equal arms.

        Raises:
            ValueError: it cannot be had at this K.
        """
        if self.positions is None:
            return self
        return Acceptance(positions=self.rates(k), source=self.source)

    @property
    def label(self) -> str:
        """Short name for tables: `a0.74`, `l3.07`, `l3.07-flat`, `m2.49-1f3c` (mean length, digest)."""
        if self.alpha is not None:
            return f"a{self.alpha:g}"
        if self.length is not None:
            return f"l{self.length:g}" if self.shape == GEOMETRIC else f"l{self.length:g}-flat"
        assert self.positions is not None
        return f"m{1.0 + math.fsum(self.positions):.3g}-{digest(self.positions)[:4]}"

    def words(self, k: int) -> str:
        """Return what is asked for at draft length `k`, for people."""
        if self.alpha is not None:
            return f"alpha {self.alpha:g}: mean length {self.mean_length(k):.3f}"
        if self.length is not None:
            if self.shape == MINIMUM_VARIANCE:
                return f"mean length {self.length:g}, minimum variance"
            return f"mean length {self.length:g}, geometric: alpha {alpha_for(self.length, k):.4f}"
        told = ", ".join(f"{rate:.3g}" for rate in self.rates(k))
        of = f" of {self.source.name}" if self.source else ""
        return f"positions{of}: {told}, mean length {self.mean_length(k):.3f}"

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from `asdict`'s form."""
        positions, source = data.get("positions"), data.get("source")
        return cls(
            **{
                **data,
                "positions": None if positions is None else tuple(positions),
                "source": None if source is None else Source(**source),
            }
        )


def alpha_for(length: float, k: int) -> float:
    """Return the alpha with 1 + alpha + ... + alpha^K = `length`, by bisection to the last bit.

    Raises:
        ValueError: `length` lies outside 1 to K + 1.
    """
    if not 1.0 <= length <= k + 1:
        message = f"no acceptance gives a mean length of {length:g} at k={k}: it lies between 1 and {k + 1}"
        raise ValueError(message)
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2.0) < high:
        if math.fsum(middle**position for position in range(k + 1)) < length:
            low = middle
        else:
            high = middle
    return high if length > 1.0 else 0.0


def minimum_variance_rates(length: float, k: int) -> tuple[float, ...]:
    """Return K unconditional rates of mean `length` whose accepted numbers differ by one at most.

    Whole positions first, then one with the rest: 3.07 at K=5 is 1, 1, .07, 0, 0.
    """
    drafts = length - 1.0
    return tuple(min(1.0, max(0.0, drafts - position)) for position in range(k))


def conditional_rates(rates: tuple[float, ...]) -> tuple[float, ...]:
    """Return the chance at each position that it is accepted when all before it were; 0 where none can be."""
    return tuple(rate / before if before > 0.0 else 0.0 for before, rate in pairwise((1.0, *rates)))


def _check_positions(positions: tuple[float, ...]) -> None:
    told = ", ".join(f"{rate:g}" for rate in positions)
    if not positions or not all(0.0 <= rate <= 1.0 for rate in positions):
        message = (
            f"drafter.acceptance.positions is [{told}]; it lists one probability a position: choose 0 to 1"
        )
        raise ValueError(message)
    if any(after > before for before, after in pairwise(positions)):
        message = (
            f"drafter.acceptance.positions is [{told}]; each is the chance that all drafts up to there are "
            "accepted, so none is larger than the one before it"
        )
        raise ValueError(message)
