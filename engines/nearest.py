"""The known name that somebody meant who wrote another one: said in every error about an unknown name."""

from collections.abc import Iterable
from difflib import get_close_matches

_SIMILAR = 0.6
"""Share of what two names have in common (`difflib`) from which on one may be meant for the other."""


def nearest(name: object, known: Iterable[object]) -> str:
    """Return the known name that is most like `name`, whatever its letters' case; empty where none is."""
    names = {str(each).lower(): str(each) for each in known}
    found = get_close_matches(str(name).lower(), names, n=1, cutoff=_SIMILAR)
    return names[found[0]] if found else ""


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Return ` (did you mean NAME?)` to stand behind an unknown name; empty where no known one is like it."""
    found = nearest(name, known)
    return f" (did you mean {found}?)" if found else ""
