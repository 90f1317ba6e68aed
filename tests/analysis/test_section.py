import json

import numpy as np
import pandas as pd
import pytest

from analysis.report.section import gathered, heading, table_rows
from analysis.section import Section

FRAME = pd.DataFrame(
    {
        "arm": ["tp1/ngram-k3", "tp1/ngram-k7"],
        "ratio": [1.2345, np.nan],
        "ratio_lo": [1.2, np.nan],
        "ratio_hi": [1.27, np.nan],
        "blocks": np.array([4, 2], dtype=np.int64),
        "best": [True, False],
    }
)
MEANING = {
    "arm": "name of the arm",
    "ratio": "ratio to the baseline",
    "blocks": "pairs",
    "best": "whether it is",
}


def section(**changes):
    return Section(**({"name": "part", "title": "A part", "frame": FRAME, "columns": MEANING} | changes))


def test_the_ends_of_an_interval_are_shown_with_their_figure():
    part = section()
    assert part.visible == ("arm", "ratio", "blocks", "best")
    assert table_rows(part) == [
        [("tp1/ngram-k3", ""), ("1.234", "1.200 to 1.270"), ("4", ""), ("yes", "")],
        [("tp1/ngram-k7", ""), ("\N{EN DASH}", ""), ("2", ""), ("no", "")],
    ]
    assert section(shown=("arm", "ratio")).visible == ("arm", "ratio")
    assert heading("factor:cache.kind_of") == "cache.kind of"


def test_a_level_is_written_without_superfluous_digits():
    levels = pd.DataFrame({"level": [16.0, 2.5], "level_share": [16.0, 2.5]})
    part = section(frame=levels, columns={"level": "load level", "level_share": "a share"})
    assert [[value for value, _ in row] for row in table_rows(part)] == [["16", "16.00"], ["2.5", "2.500"]]


def test_json_has_plain_values_and_null_for_what_is_missing():
    content = json.loads(json.dumps(section(notes=("a note",)).to_dict(), allow_nan=False))
    assert content["rows"][1] == {
        "arm": "tp1/ngram-k7", "ratio": None, "ratio_lo": None, "ratio_hi": None, "blocks": 2, "best": False,
    }  # fmt: skip
    assert content["notes"] == ["a note"]
    assert content["missing"] == ""


def test_an_empty_table_says_why_and_every_column_is_explained():
    with pytest.raises(AssertionError, match="does not say why"):
        section(frame=FRAME.head(0))
    with pytest.raises(AssertionError, match="blocks"):
        section(columns={name: told for name, told in MEANING.items() if name != "blocks"})
    assert section(frame=FRAME.head(0), missing="run it").to_dict()["missing"] == "run it"


def test_what_is_empty_for_one_reason_is_said_once():
    full = Section(name="a", title="A", frame=pd.DataFrame({"x": [1]}), columns={"x": "a number"})
    lost, too = (Section(name=name, title=name.upper(), missing="no drafter was swept") for name in "bc")
    other = Section(name="d", title="D", missing="no cell was measured")
    found = gathered([lost, full, other, too])
    assert [(section.name, section.title) for section in found] == [("b", "B; C"), ("a", "A"), ("d", "D")]
    assert found[0].missing == "no drafter was swept"
    assert gathered([lost, full, too], told=["no drafter was swept"]) == (full,)
