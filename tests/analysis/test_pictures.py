"""Figures as files: what a picture shows, what lies beside the report, and machines without a browser."""

from pathlib import Path

import plotly.graph_objects as go
import plotly.io
import pytest

from analysis.figures import Figure
from analysis.figures.style import add_slider, apply_style
from analysis.report.pictures import LARGEST_JSON, NO_BROWSER, picture, write_figures


def figure(name: str = "bars", words: str = "") -> Figure:
    plot = go.Figure(go.Bar(x=[1, 2], y=[0.5, 0.25], name=words))
    apply_style(plot, x="level", y="share")
    add_slider(
        plot, name="load", active=0, steps=[("C=1", {"y": [[1, 2]]}, {}), ("C=2", {"y": [[2, 3]]}, {})]
    )
    return Figure(name=name, title="What <b>is</b> it?", plot=plot, finding="word " * 60)


ABSENT = Figure(name="absent", title="Nothing?", missing="measure it")


def test_a_picture_has_its_words_and_no_control() -> None:
    original = figure()
    assert original.plot is not None
    made = picture(original)
    assert not made.layout.sliders
    assert (made.layout.paper_bgcolor, made.layout.plot_bgcolor) == ("white", "white")
    assert made.layout.title.text.startswith("<b>What &lt;b&gt;is&lt;/b&gt; it?</b><br><span")
    assert made.layout.title.text.count("<span") == 3
    assert made.layout.height > original.plot.layout.height
    assert made.layout.margin.t > original.plot.layout.margin.t
    assert original.plot.layout.sliders, "the figure itself stays as it is"


def test_figures_are_data_that_plotly_reads_and_an_earlier_report_leaves_none(tmp_path: Path) -> None:
    first = write_figures([figure("one"), figure("two"), ABSENT], tmp_path, pictures=False)
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["one.json", "two.json"]
    assert plotly.io.read_json(first.data["one"]) == figure("one").plot
    (tmp_path / "figures" / "one.png").write_text("of an earlier report")
    (tmp_path / "figures" / "notes.txt").write_text("of the user")
    large = figure("large", "w" * LARGEST_JSON)
    second = write_figures([figure("two"), large], tmp_path, pictures=False)
    assert set(second.data) == {"two"}
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["notes.txt", "two.json"]
    assert not write_figures([ABSENT], tmp_path / "empty", pictures=True).data


def test_without_a_browser_a_sentence_says_how_to_get_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROWSER_PATH", str(tmp_path / "absent"))
    found = write_figures([figure()], tmp_path, pictures=True)
    assert found.notes == (NO_BROWSER,)
    assert set(found.data) == {"bars"}
    assert not found.pictures
