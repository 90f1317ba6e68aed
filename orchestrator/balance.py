"""How balanced the order of the treatments is over the blocks of a plan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from jobs.result import TREATMENT
from orchestrator.orders import neighbours
from orchestrator.plan import Block


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """Balance of position and of carry-over; arms of different blocks are never set against each other."""

    mean_positions: Mapping[str, float]
    """Digest of a treatment -> mean of its places among the treatments of its blocks, counted from 1."""
    largest_difference: float
    """Largest difference of two mean positions of arms that share blocks; 0 is balanced exactly."""
    carry_over_met: int
    """Ordered pairs of treatments that follow each other directly in some block."""
    carry_over_possible: int
    """Ordered pairs of treatments that share blocks."""


def balance(blocks: Sequence[Block]) -> Balance:
    """Return how balanced the treatments of `blocks` are ordered."""
    orders: dict[frozenset[str], list[list[str]]] = {}
    for block in blocks:
        order = [run.arm for run in block.runs if run.role == TREATMENT]
        orders.setdefault(frozenset(order), []).append(order)
    means: dict[str, float] = {}
    difference, met, possible = 0.0, 0, 0
    for arms, rows in orders.items():
        places: dict[str, list[int]] = {arm: [] for arm in sorted(arms)}
        for row in rows:
            for place, arm in enumerate(row, start=1):
                places[arm].append(place)
        own = {arm: fmean(found) for arm, found in places.items()}
        means |= own
        if own:
            difference = max(difference, max(own.values()) - min(own.values()))
        numbers = {arm: number for number, arm in enumerate(own)}
        met += len(set().union(*(neighbours([numbers[arm] for arm in row]) for row in rows)))
        possible += len(arms) * (len(arms) - 1)
    return Balance(
        mean_positions=means,
        largest_difference=difference,
        carry_over_met=met,
        carry_over_possible=possible,
    )
