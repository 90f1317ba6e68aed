"""Counts with their nouns."""

import pytest

from jobs.nouns import are, counted, some


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (0, "0 cells"),
        (1, "1 cell"),
        (2, "2 cells"),
        (1024, "1,024 cells"),
        (1.0, "1 cell"),
        (0.5, "0.5 cells"),
    ],
)
def test_a_noun_follows_its_number(number: float, told: str) -> None:
    assert counted(number, "cell") == told


def test_words_before_the_noun_and_odd_plurals() -> None:
    assert [counted(n, "more block") for n in (1, 2)] == ["1 more block", "2 more blocks"]
    assert [counted(n, "reply", "replies") for n in (1, 2)] == ["1 reply", "2 replies"]
    assert [are(1), are(0), are(1, one="stays", many="stay")] == ["is", "are", "stays"]


@pytest.mark.parametrize(
    ("names", "most", "told"),
    [
        ((), 3, ""),
        (("a", "b", "c"), 3, "a, b, c"),
        (("a", "b", "c", "d"), 3, "a, b, c and 1 more"),
        (iter("abc"), 1, "a and 2 more"),
    ],
)
def test_a_long_list_is_cut_short_and_counted(names, most: int, told: str) -> None:
    assert some(names, most) == told
