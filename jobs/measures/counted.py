"""Figures from the engine's counters: deltas between two snapshots, over all ranks and replicas.

None is a figure whose counters this engine does not have.
"""

from engines.counters import Counters


def mean_acceptance_length(counters: Counters) -> float | None:
    """Return MAL = 1 + accepted / drafts: tokens per verification step, the verifier's own included.

    A baseline, which drafts nothing, has 1.
    """
    if not counters.knows("drafts", "accepted_tokens"):
        return None
    return 1.0 + counters.accepted_tokens / counters.drafts if counters.drafts else 1.0


def acceptance_rate(counters: Counters) -> float | None:
    """Return accepted / drafted tokens."""
    if not counters.draft_tokens or not counters.knows("draft_tokens", "accepted_tokens"):
        return None
    return counters.accepted_tokens / counters.draft_tokens


def acceptance_by_position(counters: Counters) -> dict[str, float | None]:
    """Return the unconditional acceptance of each draft position: accepted at it / drafts."""
    return {
        f"spec/acceptance_pos_{position}": accepted / counters.drafts if counters.drafts else None
        for position, accepted in enumerate(counters.accepted_per_position, start=1)
    }


def conditional_by_position(counters: Counters) -> dict[str, float | None]:
    """Return the conditional acceptance of each draft position: accepted at it / accepted at the one before.

    The first position is of all drafts; None where nothing came so far.
    """
    reached = (counters.drafts, *counters.accepted_per_position[:-1])
    return {
        f"spec/conditional_pos_{position}": accepted / before if before else None
        for position, (accepted, before) in enumerate(
            zip(counters.accepted_per_position, reached, strict=False), start=1
        )
    }


def tokens_per_step(counters: Counters) -> float | None:
    """Return tokens per decode step over all steps, drafted or not.

    A request's first token comes from its prefill, so it is in neither part of the quotient.
    """
    if not counters.step_intervals or not counters.knows(
        "step_intervals", "generation_tokens", "first_tokens"
    ):
        return None
    return (counters.generation_tokens - counters.first_tokens) / counters.step_intervals


def step_ms(counters: Counters) -> float | None:
    """Return the mean interval between a request's output steps."""
    if not counters.step_intervals or not counters.knows("step_intervals", "step_seconds"):
        return None
    return counters.step_seconds / counters.step_intervals * 1e3


def hit_rate(counters: Counters) -> float | None:
    """Return cached / all prompt tokens."""
    if not counters.prompt_tokens or not counters.knows("prompt_tokens", "cached_prompt_tokens"):
        return None
    return counters.cached_prompt_tokens / counters.prompt_tokens


def computed_tokens(counters: Counters) -> int | None:
    """Return the engine's computed tokens: locally computed prompt + generated."""
    if not counters.knows("computed_prompt_tokens", "generation_tokens"):
        return None
    return counters.computed_prompt_tokens + counters.generation_tokens
