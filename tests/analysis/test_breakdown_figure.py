"""The picture of a step."""

import re
from pathlib import Path

from analysis.breakdown_figure import Bar, draw_breakdown

BARS = (
    Bar(label="tp1/none", parts=(("plain decode", 6.0), ("verification overhead", 0.0), ("rest", 4.0))),
    Bar(label="tp1/<b>k3", parts=(("plain decode", 6.0), ("verification overhead", 10.0), ("rest", -0.1))),
)


def test_bars_have_labels_shares_and_lengths(tmp_path: Path) -> None:
    files = [tmp_path / "one.svg", tmp_path / "two.svg", tmp_path / "p.png"]
    draw_breakdown(BARS, files[:1], title="a step", notes=["a note"])
    draw_breakdown(BARS, files[1:], title="a step", notes=["a note"])
    svg = files[0].read_text()
    assert svg == files[1].read_text()  # the same figures make the same file
    texts = [text.strip() for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]
    for wanted in ("a step", "a note", "tp1/none", "tp1/&lt;b&gt;k3", "60%", "40%", "10.00 ms", "rest"):
        assert wanted in texts
    assert files[2].read_bytes().startswith(b"\x89PNG")


def test_a_part_that_no_bar_has_is_not_in_the_legend(tmp_path: Path) -> None:
    draw_breakdown(BARS[:1], [tmp_path / "p.svg"], title="", notes=[])
    assert "verification overhead" not in (tmp_path / "p.svg").read_text()
