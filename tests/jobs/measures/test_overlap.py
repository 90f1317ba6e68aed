from collections.abc import Callable
from dataclasses import replace

import pytest

from jobs.measures import overlap, work
from jobs.replay.data import ReplayData

Make = Callable[..., ReplayData]


def test_the_turns_of_a_window_are_those_whose_first_token_it_holds(make_replay: Make) -> None:
    data = make_replay(users=2, rounds=4)
    window = work.steady_window(data.summary)
    found = overlap.turns_in(data, window)
    assert found == {(f"c{user}-{turn}", 0, 0) for user in (0, 1) for turn in (1, 2)}
    failed = replace(data, requests=tuple(replace(r, error="cut") for r in data.requests))
    assert overlap.turns_in(failed, window) == frozenset()
    assert overlap.turns_in(data, None) == frozenset()


def test_overlap_is_shared_turns_over_turns_in_either() -> None:
    turns = [("a", 0, 0), ("a", 0, 1), ("b", 0, 0), ("a", 1, 0)]
    assert overlap.turn_overlap(frozenset(turns[:3]), frozenset(turns[1:])) == pytest.approx(2 / 4)
    assert overlap.turn_overlap(frozenset(turns), frozenset(turns)) == 1.0
    assert overlap.turn_overlap(frozenset(turns[:1]), frozenset()) == 0.0
    assert overlap.turn_overlap(frozenset(), frozenset()) is None
