"""Counts with their nouns and verbs, for people: `1 block is`, `3 blocks are`; and lists cut short."""

from collections.abc import Iterable

NAMED = 3
"""Names that a sentence has unless it says otherwise; the others are counted."""


def counted(number: float, noun: str, plural: str = "") -> str:
    """Return a count with its noun: `1 cell`, `1,024 cells`, `1 more block`, `0.5 device-minutes`.

    Args:
        number: how many.
        noun: what one of them is called, words before it included (`fresh block`).
        plural: what several are called, where an `s` does not make it so (`replies`).
    """
    figure = f"{number:,}" if isinstance(number, int) else f"{number:,g}"
    return f"{figure} {noun if figure == '1' else plural or f'{noun}s'}"


def are(number: float, *, one: str = "is", many: str = "are") -> str:
    """Return the verb that a count takes: `is` or `are`, or another one's two forms."""
    return one if number == 1 else many


def some(names: Iterable[str], most: int = NAMED, *, between: str = ", ") -> str:
    """Return the first `most` names, and how many more there are: `a, b, c and 4 more`."""
    every = list(names)
    more = len(every) - most
    return between.join(every[:most]) + (f" and {more} more" if more > 0 else "")
