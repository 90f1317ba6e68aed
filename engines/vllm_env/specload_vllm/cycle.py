"""What a drafter's wrong tokens come to: its acceptance along a cycle, exactly, by walking it.

Pure Python: neither torch nor vLLM is needed to know what a checkpoint will do.
"""

from collections.abc import Sequence


def acceptance_rates(right: Sequence[bool], k: int) -> tuple[float, ...]:
    """Return the K unconditional rates: the share of steps in which the first i drafts are all accepted.

    Args:
        right: for each token of the cycle, in its order, whether the drafter knows its successor.
        k: draft length.

    A step that starts at the token at place p accepts drafts up to the first token the drafter is wrong on,
    K at most, and the verifier adds one: the next step starts that many places on. Where a step starts thus
    decides all later ones; steps soon repeat, and the rates are those of the part that repeats.
    """
    runs = _runs(right, k)
    place, seen = 0, set[int]()
    while place not in seen:
        seen.add(place)
        place = (place + runs[place] + 1) % len(runs)
    first, steps, accepted = place, 0, [0] * k
    while steps == 0 or place != first:
        for position in range(runs[place]):
            accepted[position] += 1
        steps += 1
        place = (place + runs[place] + 1) % len(runs)
    return tuple(count / steps for count in accepted)


def mean_length(rates: Sequence[float]) -> float:
    """Return the mean acceptance length: tokens a step, the verifier's own included."""
    return 1.0 + sum(rates)


def acceptance_table(right: Sequence[bool], longest: int) -> dict[str, list[float]]:
    """Return K as text, from 1 to `longest` -> `acceptance_rates`, as it stands in a file."""
    return {str(k): list(acceptance_rates(right, k)) for k in range(1, longest + 1)}


def _runs(right: Sequence[bool], k: int) -> list[int]:
    """Return how many tokens from each place on are right, K at most."""
    runs = [0] * len(right)
    ahead = k if all(right) else 0
    # Twice round: the first lap finds out how the end of the cycle goes on at its start.
    for place in [*range(len(right))[::-1], *range(len(right))[::-1]]:
        ahead = min(k, ahead + 1) if right[place] else 0
        runs[place] = ahead
    return runs
