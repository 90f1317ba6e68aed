"""What one engine step has to do, as the scheduler hands it to a step-time model."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLoad:
    """The work of one step of one rank."""

    requests: int
    """Requests that decode."""
    drafted: int
    """Requests of them whose step verifies drafts."""
    k: int
    """Draft length."""
    decode_tokens: int
    """Positions verified for them: K+1 a drafted request, 1 otherwise."""
    decode_context: int
    """KV tokens read for them, summed over requests."""
    prefill_tokens: int = 0
    """Prompt tokens computed in this step."""
    prefill_context: int = 0
    """KV tokens read for the prompts in work, this step's own tokens left out."""
    prefill_pairs: int = 0
    """(query, key) pairs of the prefill's attention."""

    @property
    def tokens(self) -> int:
        """Positions that go through the model."""
        return self.decode_tokens + self.prefill_tokens

    @property
    def context(self) -> int:
        """KV tokens read."""
        return self.decode_context + self.prefill_context
