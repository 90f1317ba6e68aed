"""The name that was meant."""

import pytest

from engines.nearest import did_you_mean, nearest


@pytest.mark.parametrize(
    ("name", "meant"),
    [("reprot", "report"), ("Report", "report"), ("concurency", "concurrency"), ("xyz", ""), (7, "")],
)
def test_the_nearest_known_name_is_found_or_none(name: object, meant: str) -> None:
    assert nearest(name, ["sweep", "report", "concurrency"]) == meant


def test_it_stands_behind_the_unknown_name() -> None:
    assert f"no {'ngrm'}{did_you_mean('ngrm', ['ngram', 'eagle3'])}" == "no ngrm (did you mean ngram?)"
    assert did_you_mean("ngram", []) == ""
