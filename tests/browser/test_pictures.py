"""The report's figures as pictures, drawn by a real headless Chromium, or by one that fails."""

import json
import struct
from pathlib import Path

import plotly.graph_objects as go
import pytest

from analysis.figures import Figure
from analysis.report import write_report
from analysis.report.pictures import SCALE, WIDTH, write_figures
from analysis.summary import summarise
from tests.analysis.made import Arm, made_results

pytestmark = pytest.mark.browser


def size(picture: Path) -> tuple[int, int]:
    """Return width and height of a PNG."""
    head = picture.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", head[16:])
    return int(width), int(height)


def net_events(log: Path) -> list[tuple[str, str]]:
    """Return (type, address) of every event that a browser has written to its network log."""
    text = log.read_text().rstrip().rstrip(",")
    try:
        content = json.loads(text)
    except ValueError:  # it was ended before it closed the list
        content = json.loads(f"{text}]}}")
    names = {number: name for name, number in content["constants"]["logEventTypes"].items()}
    return [
        (names[event["type"]], str(event.get("params", {}).get("address", ""))) for event in content["events"]
    ]


def test_every_figure_is_drawn_by_one_browser_that_asks_the_network_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chromium: str
) -> None:
    # a browser that notes its starts, and all that it does on the network
    wrapper = tmp_path / "chromium"
    wrapper.write_text(
        f'#!/bin/sh\necho x >> {tmp_path}/starts\nexec {chromium} --log-net-log={tmp_path}/net.json "$@"\n'
    )
    wrapper.chmod(0o755)
    monkeypatch.setenv("BROWSER_PATH", str(wrapper))
    arms = [Arm(label=f"tp1/eagle3-k{k}", k=k, tokens=1.0 + k / 4, step=1.0 + k / 10) for k in (1, 3)]
    results = made_results(arms, levels=(1, 16), blocks=2, noise=0.01)
    summary = summarise(results, threshold=0.02)
    report = write_report(tmp_path / "sweep", plan={}, results=results, summary=summary, pictures=True)
    assert report.figures.notes == ()
    assert set(report.figures.pictures) == set(report.figures.data)
    assert len(report.figures.pictures) >= 5
    text = report.markdown.read_text(encoding="utf-8")
    for picture in report.figures.pictures.values():
        width, height = size(picture)
        assert width == SCALE * WIDTH
        assert height > SCALE * 250
        assert picture.stat().st_size > 10_000, "a blank picture is smaller"
        assert f"](figures/{picture.name})" in text
    assert (tmp_path / "starts").read_text().split() == ["x"]
    events = net_events(tmp_path / "net.json")
    assert events, "the browser kept no log"
    # looking for a route for IPv6 sends nothing; all that is sent goes to a proxy that is not there
    assert not [event for event in events if event[0] == "UDP_BYTES_SENT"]
    assert {place for name, place in events if name == "TCP_CONNECT_ATTEMPT"} <= {"127.0.0.1:9", ""}


def test_a_browser_that_fails_costs_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("BROWSER_PATH", str(broken))
    bars = Figure(name="bars", title="Bars?", plot=go.Figure(go.Bar(x=[1], y=[1])), finding="one")
    found = write_figures([bars], tmp_path, pictures=True)
    (note,) = found.notes
    assert "the browser failed" in note
    assert "`specload report` tries again" in note
    assert not found.pictures
