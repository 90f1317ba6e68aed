"""Corners cut from a grid: by value, by list, by what is not, by a group's option."""

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.errors import ConfigError
from orchestrator.exclude import left_out
from orchestrator.sweep import Point, collect


def point(method: str = "eagle3", k: int = 3, **groups: str) -> Point:
    config = {"drafter": {"method": method, "k": k, "model": None}, "layout": {"tp": 1}}
    return Point(config=config, choices={}, groups={"drafter": method, **groups})


GRID = [point(method, k) for method in ("eagle3", "ngram") for k in (3, 7)]


@pytest.mark.parametrize(
    ("entry", "left", "note"),
    [
        (
            {"drafter.method": "ngram", "drafter.k": [5, 7]},
            ["eagle3 3", "eagle3 7", "ngram 3"],
            "exclude drafter.method=ngram, drafter.k=[5, 7] leaves out 1 point",
        ),
        (
            {"drafter.k": {"not": 3}},
            ["eagle3 3", "ngram 3"],
            "exclude drafter.k=anything but 3 leaves out 2 points",
        ),
        (
            {"drafter": "ngram", "drafter.k": {"not": [5, 7]}},
            ["eagle3 3", "eagle3 7", "ngram 7"],
            "exclude drafter=ngram, drafter.k=anything but [5, 7] leaves out 1 point",
        ),
        (
            {"layout.tp": 8},
            ["eagle3 3", "eagle3 7", "ngram 3", "ngram 7"],
            "exclude layout.tp=8 matches no point of the grid and changes nothing",
        ),
    ],
)
def test_a_point_is_left_out_where_every_key_of_an_entry_agrees(
    entry: dict[str, Any], left: list[str], note: str
) -> None:
    written = [replace(each, choices={"exclude": "[...]"}) for each in GRID]
    kept, notes = left_out(written, [entry])
    assert [f"{each.at('drafter.method')} {each.at('drafter.k')}" for each in kept] == left
    assert notes == [note]


def test_an_entry_of_an_experiment_that_matches_nothing_is_no_news() -> None:
    nothing, something = {"layout.tp": 8}, {"drafter.k": 7}
    kept, notes = left_out(GRID, [nothing, something])
    assert len(kept) == 2
    assert notes == ["exclude drafter.k=7 leaves out 2 points"]


def test_an_unknown_key_is_named() -> None:
    with pytest.raises(ConfigError, match=r"'drafter\.kk': there is no key .*drafter\.k\?"):
        left_out([point()], [{"drafter.kk": 8}])


def test_not_everything_can_be_left_out() -> None:
    with pytest.raises(ConfigError, match="leaves out every point"):
        left_out([point()], [{"drafter.k": 3}])


def test_a_group_stands_for_its_option_whether_it_was_swept_or_is_the_default() -> None:
    points = collect(["-m", "drafter=eagle3,mtp", "exclude=[{drafter: mtp, layout: tp1}]"])
    kept, _ = left_out(points, points[0].at("exclude"))
    assert [each.groups["drafter"] for each in kept] == ["eagle3"]
