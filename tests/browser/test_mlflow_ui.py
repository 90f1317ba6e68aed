"""MLflow's UI in a real headless Chromium: sweeps, and ratio against load by drafter without set-up."""

import json
import os
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from orchestrator.commands import ui
from orchestrator.plan import Plan
from orchestrator.tracking import direct_recorder_for
from orchestrator.tracking_views import chart
from tests.cluster.conftest import SPECLOAD, line_of, wait_until
from tests.orchestrator.conftest import small_plan as small_plan  # noqa: PLC0414 - a fixture
from tests.orchestrator.test_tracking import cell
from tests.orchestrator.test_tracking_curves import row, said

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright (the dev extra)")
pytestmark = pytest.mark.browser

LEVELS = (1, 4, 16)
LINES = {"eagle3-k3": (1.8, 1.4, 1.1), "ngram-k3": (1.4, 1.2, 0.9)}


@pytest.fixture
def page(browser: "playwright.Browser") -> Iterator["playwright.Page"]:
    made = browser.new_page(viewport={"width": 1600, "height": 1000})
    made.set_default_timeout(30_000)
    yield made
    made.close()


@pytest.fixture
def store(small_plan: Plan, tmp_path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The UI as `specload ui` starts it, on two sweeps of one study: its address, and their names."""
    plans = (small_plan, replace(small_plan, seed=small_plan.seed + 1))
    summary = said(
        *(
            row(label, level, value, drafter=label.partition("-")[0])
            for label, values in LINES.items()
            for level, value in zip(LEVELS, values, strict=True)
        )
    )
    for plan in plans:
        folder = tmp_path / plan.sweep
        folder.mkdir()
        (folder / "plan.json").write_text(json.dumps(plan.to_dict()))
        (folder / "report.html").write_text("<html><body>the report</body></html>")
        recorder = direct_recorder_for(plan, tmp_path)
        assert recorder is not None
        recorder.open(plan, folder)
        recorder.sync([(cell(plan, log_tail="last words"), None)])
        recorder.summary(summary)
        recorder.close(folder / "report.html", "FINISHED")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with (tmp_path / "ui.txt").open("wb") as log:
        words = [str(SPECLOAD), "ui", str(tmp_path), "--port", str(port)]
        server = subprocess.Popen(words, stdout=log, stderr=log)
    base = f"http://127.0.0.1:{port}/"
    try:
        assert wait_until(lambda: answers(base), seconds=120), (tmp_path / "ui.txt").read_text()
        below = psutil.Process(server.pid).children(recursive=True)
        assert not [process for process in below if "mlflow.server.jobs" in line_of(process)]
        yield base, tuple(plan.sweep for plan in plans)
    finally:
        server.terminate()
        server.wait()


def answers(base: str) -> bool:
    try:
        with urllib.request.urlopen(f"{base}health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def shot(page: "playwright.Page", folder: Path, name: str) -> None:
    """Keep a picture: in a folder of the caller's where one is named, to be looked at."""
    page.screenshot(path=str(Path(os.environ.get("SPECLOAD_SCREENSHOTS", folder)) / f"{name}.png"))


def test_ratio_against_concurrency_by_drafter_without_set_up(
    page: "playwright.Page", store: tuple[str, tuple[str, ...]], tmp_path: Path
) -> None:
    base, sweeps = store
    experiment = "1"
    views = ui.views(tmp_path / sweeps[0])
    assert views["ratio against load"] == chart(experiment, sweeps[0])
    assert list(ui.views(tmp_path)) == ["all studies"]

    # The page of the study: its sweeps, with the cells folded up below each.
    page.goto(base + views["runs of the study"])
    for sweep in sweeps:
        page.get_by_role("link", name=sweep, exact=True).wait_for()
    shot(page, tmp_path, "runs")
    target = page.get_by_role("link", name="Chart: ratio against load by drafter").first.get_attribute("href")
    assert target is not None

    # The sweep's run: report and verdicts among its files.
    page.get_by_role("link", name=sweeps[0], exact=True).click()
    page.get_by_role("tab", name="Artifacts").click()
    for name in ("report.html", "verdicts.md", "plan.json"):
        page.get_by_text(name).first.wait_for()
    shot(page, tmp_path, "artifacts")

    # The link in its description: a line an arm over the load levels, of both sweeps.
    page.goto("about:blank")
    page.goto(f"{base}{target}" if target.startswith("#") else target)
    page.get_by_text("at_C", exact=False).first.wait_for()
    drawn = page.locator(".js-plotly-plot")
    drawn.first.wait_for()
    expect_lines = len(sweeps) * len(LINES)
    page.wait_for_function(
        "count => document.querySelectorAll('.scatterlayer .trace').length >= count", arg=expect_lines
    )
    shot(page, tmp_path, "charts")

    # One sweep alone: the lines are what was measured, with the load on the axis.
    page.goto("about:blank")
    page.goto(f"{base}{chart(experiment, sweeps[0])}")
    drawn.first.wait_for()
    page.wait_for_function(
        "() => document.querySelectorAll('.js-plotly-plot .scatterlayer .trace').length > 1"
    )
    lines = page.evaluate(
        "() => [...document.querySelectorAll('.js-plotly-plot')].map("
        "plot => plot.data.filter(line => line.x && line.x.length > 1)"
        ".map(line => [[...line.x].map(Number), [...line.y]]))"
    )
    expected = {(LEVELS, values) for values in LINES.values()}
    # (the UI draws a line twice where it can be smoothed)
    assert expected in [{(tuple(x), tuple(y)) for x, y in plot} for plot in lines]
    assert page.get_by_role("link", name=sweeps[1], exact=False).count() == 0
    shot(page, tmp_path, "chart-of-one-sweep")
