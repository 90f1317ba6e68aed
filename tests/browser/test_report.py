"""The report in a real headless Chromium: it asks for nothing, moves, sorts, fits a phone, prints, and can be
used by keyboard.
"""

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.report import render
from analysis.summary import summarise
from tests.analysis.made import Arm, made_results

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright (the dev extra)")
pytestmark = pytest.mark.browser

LEVELS = (1, 8, 64)
FALLING = {1: 1.0, 8: 1.2, 64: 2.4}
Open = Callable[..., "playwright.Page"]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of cells whose truth is known: two draft lengths, two layouts, one forced acceptance."""
    arms = [
        Arm(label=f"{layout}/eagle3-k{k}", k=k, layout=layout, tokens=1.0 + 0.5 * k**0.7, step=FALLING)
        for layout, k in (("tp1", 3), ("tp1", 7), ("tp2", 3))
    ]
    arms.append(Arm(label="tp1/free-k3", drafter="free", tokens=2.8, step=1.1, synthetic=True))
    results = [
        replace(result, caveats=("mind this: " + "a long sentence " * 8,)) if result.k == 7 else result
        for result in made_results(arms, levels=LEVELS, blocks=2, noise=0.01)
    ]
    folder = tmp_path_factory.mktemp("made-sweep")
    summary = summarise(results, threshold=0.02)
    path = folder / "report.html"
    path.write_text(render(folder, plan={"sweep": "made"}, results=results, summary=summary))
    return path


@pytest.fixture(scope="module")
def opened(browser: "playwright.Browser", report: Path) -> Iterator[Open]:
    """Open the report and wait until every figure is drawn; fails on errors, messages and requests."""
    said: list[str] = []

    def open_page(width: int = 1280, **options: Any) -> "playwright.Page":
        page = browser.new_page(viewport={"width": width, "height": 900}, **options)
        page.set_default_timeout(30_000)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: said.append(request.url))
        page.goto(report.as_uri())
        page.wait_for_function(DRAWN, timeout=90_000)
        return page

    yield open_page
    assert set(said) == {report.as_uri()}


@pytest.fixture(scope="module")
def page(opened: Open) -> "playwright.Page":
    """The page on a wide, light screen; tests leave it as they found it, or as it makes no difference."""
    return opened()


DRAWN = "() => [...document.querySelectorAll('.plot')].every(plot => plot.querySelector('svg.main-svg'))"
FIGURE_TEXT = (".xtick text", ".ytick text", ".legendtext", ".g-xtitle text", ".annotation-text")
WIDTHS = "plots => plots.map(plot => plot.getBoundingClientRect().width)"
STATE = """slider => {
    const plot = slider.closest('.figure').querySelector('.plot');
    return JSON.stringify([plot.data, plot.layout.shapes, plot.layout.annotations, plot.layout.title]);
}"""
CONTRAST = """([text, property]) => {
    const luminance = color => {
        const [r, g, b] = color.match(/[\\d.]+/g).map(Number).map(c => c / 255)
            .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ground = luminance(getComputedStyle(document.body).backgroundColor);
    return [...document.querySelectorAll(text)].map(element => {
        const ink = luminance(getComputedStyle(element)[property]);
        return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
    });
}"""


def shot(page: "playwright.Page", folder: Path, name: str) -> None:
    """Keep a picture: in a folder of the caller's where one is named, to be looked at."""
    target = Path(os.environ.get("SPECLOAD_SCREENSHOTS", folder)) / f"report-{name}.png"
    page.screenshot(path=str(target), full_page=True)


def test_the_keyboard_reaches_the_decision_and_a_slider(page: "playwright.Page") -> None:
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.url.endswith("#decision")
    for _ in range(300):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.type") == "range":
            break
    else:
        pytest.fail("no slider was reached in 300 steps")
    outline = page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"


def test_every_slider_moves_its_figure_by_keyboard(page: "playwright.Page", tmp_path: Path) -> None:
    sliders = page.locator(".control input[type=range]")
    assert sliders.count() >= 3
    for slider in sliders.all():
        label = slider.evaluate("slider => slider.labels[0].textContent")
        output = slider.locator("xpath=../output")
        before, words = slider.evaluate(STATE), output.text_content()
        slider.focus()
        slider.press("Home" if slider.input_value() != "0" else "End")
        assert output.text_content() != words, label
        assert slider.get_attribute("aria-valuetext") == output.text_content()
        page.wait_for_function(
            f"([slider, before]) => ({STATE})(slider) !== before", arg=[slider.element_handle(), before]
        )
    assert page.locator(".updatemenu-container, .slider-container").count() == 0  # plotly's own are gone
    shot(page, tmp_path, "light")


def test_a_heading_sorts_up_down_and_back(page: "playwright.Page") -> None:
    table = page.locator("#table-verdicts table")
    heading = table.locator("th").filter(has_text="total")
    rows = "table => [...table.tBodies[0].rows].filter(row => !row.className)"
    column = f"{rows}.map(row => row.cells[3].dataset.value)"
    below = (
        f"{rows}.map(row => row.nextElementSibling?.className === 'more' ? row.cells[3].dataset.value : '')"
    )
    lines = table.evaluate(below)
    first = table.evaluate(column)
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    up = [float(value) for value in table.evaluate(column)]
    assert up == sorted(up)
    assert up != [float(value) for value in first]
    heading.locator("button").press("Enter")
    assert heading.get_attribute("aria-sort") == "descending"
    assert [float(value) for value in table.evaluate(column)] == up[::-1]
    assert sorted(table.evaluate(below)) == sorted(lines)  # lines of text stay with their rows
    assert any(lines)
    heading.locator("button").click()
    assert (heading.get_attribute("aria-sort"), table.evaluate(column)) == ("none", first)
    assert table.evaluate(below) == lines
    words = f"{rows}.map(row => row.cells[0].firstChild.textContent.trim())"
    table.locator("th button").first.click()
    names = table.evaluate(words)
    assert all(above <= below for above, below in itertools.pairwise(names))


def test_a_phone_scrolls_only_downwards(opened: Open, tmp_path: Path) -> None:
    page = opened(width=360)
    page.evaluate("() => document.querySelectorAll('details').forEach(details => details.open = true)")
    assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    widths = page.evaluate(
        "() => [...document.querySelectorAll('.plot svg.main-svg')].map(svg => svg.clientWidth)"
    )
    assert max(widths) <= 360
    assert page.evaluate(
        "() => { const box = document.querySelector('#table-verdicts .scroll');"
        " return box.scrollWidth > box.clientWidth; }"
    )
    page.evaluate("() => document.querySelectorAll('details.table').forEach(details => details.open = false)")
    shot(page, tmp_path, "phone")


def test_text_can_be_read_on_a_dark_ground_and_a_light_one(
    page: "playwright.Page", opened: Open, tmp_path: Path
) -> None:
    dark = opened(color_scheme="dark")
    shot(dark, tmp_path, "dark")
    readable(dark)
    dark.close()
    readable(page)


def readable(page: "playwright.Page") -> None:
    """Hold WCAG's contrast of all text that stands on the page's own ground."""
    for text, ink in (
        ("p, h1, h2, h3, dt, summary .title, .soft", "color"),
        (", ".join(f".plot {part}" for part in FIGURE_TEXT), "fill"),
    ):
        found = page.evaluate(CONTRAST, [text, ink])
        assert len(found) > 5
        assert min(found) >= 4.5, (text, page.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_paper_shows_what_is_folded_and_nothing_is_cut(page: "playwright.Page", tmp_path: Path) -> None:
    folded = page.locator("details:not([open], .long)").count()
    assert folded > 3
    page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator("details:not([open], .long)").count() == 0
    assert page.locator("nav").evaluate("nav => getComputedStyle(nav).display") == "none"
    widths = page.locator(".plot svg.main-svg").evaluate_all(WIDTHS)
    assert 0 < max(widths) <= 690
    page.set_viewport_size({"width": 718, "height": 1000})
    assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    shot(page, tmp_path, "paper")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open], .long)").count() == folded
    page.emulate_media(media="screen")
    page.pdf(path=str(Path(os.environ.get("SPECLOAD_SCREENSHOTS", tmp_path)) / "report.pdf"), format="A4")


def test_a_link_opens_what_is_folded(page: "playwright.Page") -> None:
    assert page.locator("#table-implied").evaluate("details => details.open") is False
    page.locator("nav a[href='#table-implied']").click()
    page.wait_for_function("() => document.querySelector('#table-implied').open")
