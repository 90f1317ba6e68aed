"""A report of hostile text in a real headless Chromium: nothing in it runs, links or asks for anything."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from analysis.frame import Sweep, cells_frame
from analysis.report.context import build_context
from analysis.report.page import render_html
from analysis.summary import summarise
from tests.untrusted.hostile import HOSTILE, cells, plan, write_extras

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright (the dev extra)")
pytestmark = pytest.mark.browser

FOUND = """() => ({
    ran: document.querySelectorAll('img, iframe, object, embed, form, base, svg a, svg image').length,
    links: [...document.querySelectorAll('a')].filter(a => !a.getAttribute('href').startsWith('#')).length,
    handlers: [...document.querySelectorAll('*')].filter(
        element => element.getAttributeNames().some(name => name.startsWith('on'))).length,
    scripts: [...document.scripts].filter(script => script.src).length,
    shown: document.body.innerText.split('alert(1)').length,
    labels: [...document.querySelectorAll('svg text')]
        .filter(text => text.textContent.includes('alert(1)')).length,
})"""


@pytest.fixture
def report(tmp_path: Path) -> Path:
    results = cells(HOSTILE)
    folder = tmp_path / "sweep"
    write_extras(folder, HOSTILE, results)
    sweep = Sweep(directory=folder, plan=plan(HOSTILE), cells=cells_frame(results), results=results)
    file = tmp_path / "report.html"
    file.write_text(render_html(build_context(sweep, summarise(results, threshold=0.02))), encoding="utf-8")
    return file


@pytest.fixture
def page(browser: "playwright.Browser") -> Iterator["playwright.Page"]:
    made = browser.new_page(viewport={"width": 1280, "height": 900})
    made.set_default_timeout(60_000)
    yield made
    made.close()


def test_nothing_in_it_acts(page: "playwright.Page", report: Path) -> None:
    said: list[str] = []
    page.on("dialog", lambda dialog: (said.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.on("console", lambda message: said.append(f"{message.type} {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error {error}"))
    page.on("request", lambda request: said.append(request.url) if request.url != report.as_uri() else None)
    page.on("popup", lambda opened: said.append(f"popup {opened.url}"))
    page.goto(report.as_uri(), wait_until="load")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.plot')].every(plot => plot.querySelector('.main-svg'))"
    )
    page.evaluate("() => document.querySelectorAll('details').forEach(details => { details.open = true; })")
    for area in page.locator(".plot .nsewdrag").all():
        area.hover()
    for slider in page.locator("input[type=range]").all():
        slider.press("ArrowRight")
    found = page.evaluate(FOUND)
    assert found.pop("shown") > 100
    assert found.pop("labels") > 5
    assert found == dict.fromkeys(found, 0)
    assert said == []
    assert page.title().count("alert(1)") == 1
