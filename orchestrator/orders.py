"""Orders of n things over several blocks, as balanced as the number of blocks allows. Pure combinatorics.

Two kinds of balance count. *Position*: every thing stands, on average over the blocks, at the same place, so
that a drift which is alike in every block falls on all of them alike. *Carry-over*: as many ordered pairs of
neighbours as possible occur, so that what one leaves behind (a warm device) does not always meet the same.

An even number of blocks is made of pairs, an order and its reverse, which balances positions exactly. Orders
come from the rows of a Latin square whose neighbours differ from row to row (E. J. Williams, 1949): all its
rows and their reverses hold every ordered pair of neighbours equally often. An odd number starts with three
orders whose places add up alike: exactly for an odd n, within one place in three blocks for an even one.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

Order = tuple[int, ...]


def balanced_orders(size: int, count: int) -> Iterator[tuple[int, Order]]:
    """Yield `count` orders of the numbers below `size`, each with the cycle it belongs to.

    A cycle ends when its square is used up; whoever gives the numbers their meaning deals them anew then.
    """
    if count == 1:
        yield 0, tuple(range(size))
        return
    met: set[tuple[int, int]] = set()
    if count % 2:
        for order in _three(size):
            met |= neighbours(order)
            yield 0, order
    pairs = (count - 3 if count % 2 else count) // 2
    cycle, left = 0, _shifts(size)
    for _ in range(pairs):
        if not left:
            cycle, left, met = cycle + 1, _shifts(size), set()
        # of the rows left, the one that brings the most new neighbours; the lowest of equals
        rows = {shift: _row(size, shift) for shift in left}
        best = max(left, key=lambda shift: (len(_both(rows[shift]) - met), -shift))
        left.remove(best)
        met |= _both(rows[best])
        yield cycle, rows[best]
        yield cycle, rows[best][::-1]


def neighbours(order: Sequence[int]) -> set[tuple[int, int]]:
    """Return the ordered pairs that follow each other directly."""
    return set(pairwise(order))


def _both(order: Order) -> set[tuple[int, int]]:
    return neighbours(order) | neighbours(order[::-1])


def _shifts(size: int) -> list[int]:
    """Return the rows that, with their reverses, make a whole square: of an even one half are reverses."""
    return list(range(max(1, size if size % 2 else size // 2)))


def _row(size: int, shift: int) -> Order:
    """Return a row of the square: up and down from both ends (0, n-1, 1, n-2, ...), shifted."""
    zigzag = (step // 2 if step % 2 == 0 else size - 1 - step // 2 for step in range(size))
    return tuple((value + shift) % size for value in zigzag)


def _three(size: int) -> tuple[Order, Order, Order]:
    """Return three orders in which the places of each thing add up alike, or to within one if `size` is even.

    The first is as counted. Of the other two, one places even and the other odd things from the middle down,
    each the rest from the end down, so that together they fall by one where the first rises by one.
    """
    half, last = size // 2, size - 1
    middle = half if size % 2 else half - 1
    second = [middle - i // 2 if i % 2 == 0 else last - i // 2 for i in range(size)]
    third = [last - i // 2 if i % 2 == 0 else half - 1 - i // 2 for i in range(size)]
    return tuple(range(size)), _placed(second), _placed(third)


def _placed(places: Sequence[int]) -> Order:
    """Return the order in which thing i stands at `places[i]`."""
    return tuple(sorted(range(len(places)), key=places.__getitem__))
