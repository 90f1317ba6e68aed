"""Synthetic acceptance: drafts are accepted by chance at chosen rates, whatever they say."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """Synthetic acceptance: drafts are accepted by chance at a chosen rate, whatever they say."""

    alpha: float
    """Conditional probability, 0 to 1, that a draft token is accepted when all before it were."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.alpha <= 1.0:
            message = f"acceptance.alpha is {self.alpha}; it is a probability: choose 0 to 1"
            raise ValueError(message)

    def rates(self, k: int) -> tuple[float, ...]:
        """Return the K unconditional rates alpha, alpha^2, ... (chance that the first i drafts all pass)."""
        return tuple(self.alpha**position for position in range(1, k + 1))

    def mean_length(self, k: int) -> float:
        """Return the expected mean acceptance length (tokens per step, the verifier's own included)."""
        return 1.0 + sum(self.rates(k))
