"""A report of text that nobody should trust has the markup of a report of harmless words, and no more."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from rich.console import RenderableType

from analysis.frame import Sweep, cells_frame
from analysis.report.context import Page, build_context
from analysis.report.markdown import render_markdown
from analysis.report.page import render_html
from analysis.summary import summarise
from orchestrator.capacity_tables import capacity_tables
from orchestrator.section_tables import section_tables
from orchestrator.tables import PlainConsole, crossover_lines, verdict_table
from tests.untrusted.hostile import HARMLESS, HOSTILE, cells, plan, write_extras
from tests.untrusted.test_channels import SHOWN, hidden, tags

PLOTLY_TAGS = {"b", "br", "extra", "i", "sub", "sup", "span"}
"""Markup of our own in a figure's texts."""
OWN = re.compile(r"<(/?)(\w+)")
SCRIPT = re.compile(r"<script>.*?</script>", re.DOTALL)
"""Our own script and plotly's; what the figures are drawn from stands in scripts with a type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    page: Page
    html: str
    markdown: str


def made(folder: Path, tail: str) -> Report:
    results = cells(tail)
    write_extras(folder, tail, results)
    sweep = Sweep(directory=folder, plan=plan(tail), cells=cells_frame(results), results=results)
    page = build_context(sweep, summarise(results, threshold=0.02))
    return Report(page=page, html=render_html(page), markdown=render_markdown(page, {}))


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Report]:
    """A report of hostile text, and the same of harmless words."""
    folder = tmp_path_factory.mktemp("reports")
    return made(folder / "sweep-of-one", HOSTILE), made(folder / "sweep-of-two", HARMLESS)


class Tags(HTMLParser):
    """Start tags with the names of their attributes, and the text between tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.values: list[str] = []
        self.said: list[str] = []
        self.feed(SCRIPT.sub("<script></script>", text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(sorted(name for name, _ in attrs))))
        self.values += [value or "" for name, value in attrs if name in ("href", "src", "action", "style")]

    def handle_data(self, data: str) -> None:
        self.said.append(data)


def test_the_page_has_the_same_tags(reports: tuple[Report, Report]) -> None:
    hostile, harmless = (Tags(report.html) for report in reports)
    # what is between backquotes becomes code, whoever wrote them
    named = [[entry for entry in tags.found if entry != ("code", ())] for tags in (hostile, harmless)]
    assert named[0] == named[1]
    assert not any(name.startswith("on") for _, names in hostile.found for name in names)
    assert not any("javascript:" in value or "http" in value for value in hostile.values)
    assert not hidden(re.sub(r"<script.*?</script>", "", reports[0].html, flags=re.DOTALL))
    assert "".join(hostile.said).count(SHOWN) > 100


def leaves(value: Any) -> Iterator[str]:
    """Yield the texts of a figure that are shown."""
    if isinstance(value, dict):
        for name, entry in value.items():
            if name != "legendgroup":
                yield from leaves(entry)
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from leaves(entry)
    elif isinstance(value, str):
        yield value


def drawn(report: Report) -> Iterator[tuple[str, list[str]]]:
    for figure in report.page.drawn:
        if figure.plot is not None:
            yield figure.name, list(leaves(json.loads(figure.plot.to_json())))


def test_figures_have_the_same_markup(reports: tuple[Report, Report]) -> None:
    hostile, harmless = (dict(drawn(report)) for report in reports)
    assert list(hostile) == list(harmless)
    assert len(hostile) > 6
    for name, texts in hostile.items():
        assert re.fullmatch(r"[a-z0-9-]+", name)
        found = Counter(OWN.findall("".join(texts)))
        assert {tag for _, tag in found} <= PLOTLY_TAGS, name
        assert found == Counter(OWN.findall("".join(harmless[name]))), name
        assert "".join(texts).count("%{") == "".join(harmless[name]).count("%{"), name
        assert not hidden("".join(texts)), name
    assert sum(SHOWN in text for texts in hostile.values() for text in texts) > 10


def test_markdown_renders_to_the_same(reports: tuple[Report, Report]) -> None:
    # what is between backticks becomes code, whoever wrote them
    inside = ("softbreak", "text", "code_inline")
    hostile, harmless = ([tag for tag in tags(report.markdown) if tag not in inside] for report in reports)
    assert hostile == harmless
    assert not hidden(reports[0].markdown)
    assert reports[0].markdown.count("alert") > 100


def test_tables_in_the_terminal_are_plain(
    reports: tuple[Report, Report], capsys: pytest.CaptureFixture[str]
) -> None:
    page = reports[0].page
    shown: list[RenderableType] = [
        verdict_table(page.summary),
        crossover_lines(page.summary),
        section_tables(page.sections),
        capacity_tables([], []),
    ]
    for part in shown:
        PlainConsole(width=400).print(part)
    printed = capsys.readouterr().out
    assert not hidden(printed)
    assert printed.count("alert") > 50
