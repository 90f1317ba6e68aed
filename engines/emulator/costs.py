"""Step-time models: the contract, and the published coefficient table."""

from dataclasses import dataclass
from typing import Protocol

from engines.emulator.load import StepLoad


class StepCost(Protocol):
    """How long one step of one rank takes."""

    def seconds(self, load: StepLoad) -> float:
        """Return the time of one step in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCost:
    """Linear step time from coefficients fitted to measured steps; drafting is charged once a step.

    t = c_kv kv + c_tok tokens + c_0  [+ d_kv kv + d_tok b K + d_0 with a drafter]  + overhead
    """

    kv: float
    """c_kv: seconds per KV token read."""
    token: float
    """c_tok: seconds per position through the target."""
    fixed: float
    """c_0: seconds of a step."""
    draft_kv: float
    """d_kv: seconds per KV token, drafting."""
    draft_token: float
    """d_tok: seconds per draft token."""
    draft_fixed: float
    """d_0: seconds of drafting in a step."""
    overhead: float
    """Seconds of a step outside both models, in every arm."""

    def seconds(self, load: StepLoad) -> float:
        """Return the time of one step in seconds."""
        total = self.kv * load.context + self.token * load.tokens + self.fixed + self.overhead
        if load.drafted:
            total += (
                self.draft_kv * load.decode_context
                + self.draft_token * load.drafted * load.k
                + self.draft_fixed
            )
        return total


PUBLISHED_H100_8B = TableCost(
    kv=3.92645679e-8,
    token=2.10103129e-5,
    fixed=5.88590713e-3,
    draft_kv=2.37768493e-9,
    draft_token=8.41429603e-7,
    draft_fixed=2.13526175e-3,
    overhead=1.20683946e-3,
)
"""Published coefficients of SpecDecode-Bench: EAGLE on Llama-3.1-8B, one H100."""
