"""The report as Markdown, and the files that come with it."""

import dataclasses
import itertools
import re

import pandas as pd
import plotly.io
import pytest
from markdown_it import MarkdownIt

from analysis.frame import Sweep, cells_frame
from analysis.report.context import Page, build_context
from analysis.report.files import Report, write_page
from analysis.report.markdown import render_markdown
from analysis.report.markdown_table import MOST_ROWS, section_lines
from analysis.report.markdown_text import code, prose
from analysis.section import Section
from analysis.sections import SECTIONS
from analysis.summary import summary_of
from jobs.result import FAILED, TREATMENT, CellResult, Gate
from tests.analysis.made import Arm, made_results

GFM = MarkdownIt("commonmark").enable(["table", "strikethrough"])
OWN_HTML = re.compile(r"<details><summary>[\w ']+</summary>|</details>")
PLAN = {"sweep": "made-0123", "seed": 7, "threshold": 0.02, "notes": ["12 conversations are repeated"]}


@pytest.fixture(scope="module")
def results() -> list[CellResult]:
    arms = [
        Arm(label="tp1/eagle3-k3", tokens={1: 2.4, 16: 2.4}, step={1: 1.2, 16: 3.0}),
        Arm(label="tp1/eagle3-k7", k=7, tokens={1: 3.0, 16: 3.0}, step={1: 1.4, 16: 4.0}),
    ]
    made = made_results(arms, levels=(1, 16), blocks=3, noise=0.01, emulated=True)
    gate = Gate(name="occupancy", passed=False, message="3.24 of 4", value=0.81, limit=0.95)
    last = max(index for index, cell in enumerate(made) if cell.role == TREATMENT)
    told = {"cause": "out_of_memory", "reason": "no room", "log_tail": "one\n```\ntwo", "metrics": {}}
    made[last] = dataclasses.replace(made[last], outcome=FAILED, gates=(gate,), **told)
    return made


@pytest.fixture(scope="module")
def page(results: list[CellResult], tmp_path_factory: pytest.TempPathFactory) -> Page:
    folder = tmp_path_factory.mktemp("results") / "made-0123"
    sweep = Sweep(directory=folder, plan=PLAN, cells=cells_frame(results), results=results)
    return build_context(sweep, summary_of(sweep, threshold=0.02))


@pytest.fixture(scope="module")
def report(page: Page) -> Report:
    """The report of a sweep with a failed cell, written once and without pictures."""
    figures = page.directory / "figures"
    figures.mkdir(parents=True)
    (figures / "ratio-total.png").write_text("of an earlier report")
    return write_page(page)


@pytest.fixture(scope="module")
def text(report: Report) -> str:
    return report.markdown.read_text(encoding="utf-8")


def headings(text: str) -> list[tuple[int, str]]:
    tokens = GFM.parse(text)
    return [
        (int(token.tag[1]), "".join(part.content for part in tokens[index + 1].children or ()))
        for index, token in enumerate(tokens)
        if token.type == "heading_open"
    ]


def test_it_opens_with_the_decision_and_has_every_table(text: str) -> None:
    found = headings(text)
    assert found[0] == (1, "made-0123")
    assert found[1] == (2, "Decision")
    assert "**EMULATED**" in text.partition("## Decision")[0]
    told = text.partition("## Decision")[2].partition("\n## ")[0]
    assert "serve eagle3-k7 on tp1" in told
    assert "Strongest caveats" in told
    names = [name for _, name in found]
    for wanted in ("Outcomes and gates", "Methods", "Provenance"):
        assert wanted in names
    for level, following in itertools.pairwise(found):
        assert following[0] <= level[0] + 1, following
    numbers = [int(name.partition(".")[0]) for _, name in found if re.match(r"\d+\. ", name)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 3


def test_every_part_of_the_analysis_is_in_it(page: Page, text: str) -> None:
    names = "; ".join(name for _, name in headings(text))
    absent = [figure.missing for figure in page.drawn if figure.plot is None]
    for section in page.sections:
        assert section.title in names or (section.frame.empty and section.missing in absent), section.name
    assert len(page.sections) > len(SECTIONS)


def test_its_only_html_is_its_own(text: str) -> None:
    tokens = GFM.parse(text)
    raw = [token.content for token in tokens if token.type == "html_block"]
    raw += [
        child.content for token in tokens for child in token.children or () if child.type == "html_inline"
    ]
    assert raw
    for piece in raw:
        assert not OWN_HTML.sub("", piece).strip(), piece
    fences = [token for token in tokens if token.type == "fence"]
    assert any(token.content == "one\n```\ntwo\n" for token in fences), "the last lines of the failed engine"
    assert not [token for token in tokens if token.type in ("code_block", "hr")]


def test_tables_are_whole(text: str) -> None:
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) > 20
    assert any(r"| tp1/eagle3-k3 *(emulated)* | 1 | wins |" in row for row in rows)
    cells = [token for token in GFM.parse(text) if token.type == "td_open"]
    assert len(cells) > 100


def test_a_picture_is_shown_where_there_is_one_and_old_ones_are_gone(report: Report, page: Page) -> None:
    assert not list(report.html.parent.glob("figures/*.png"))
    assert "![" not in report.markdown.read_text(encoding="utf-8")
    shown = render_markdown(page, {"ratio-total": "figures/ratio-total.png"})
    (image,) = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", shown)
    assert image == "figures/ratio-total.png"


def test_an_absent_figure_and_an_empty_table_say_what_would_measure_them(page: Page, text: str) -> None:
    for figure in page.drawn:
        if figure.plot is None:
            assert prose(figure.missing) in text
    for section in page.sections:
        if section.frame.empty:
            assert prose(section.missing) in text
    assert "`specload sweep -m drafter=... drafter.k=... drafter.kv=matched`" in text


def test_a_long_table_is_cut_and_says_where_the_rest_is() -> None:
    frame = pd.DataFrame({"level": [float(place) for place in range(MOST_ROWS + 5)]})
    long = Section(name="part", title="A | part", frame=frame, columns={"level": "load `C`"})
    lines = list(section_lines(long, {}, sweep="results/x", level=3))
    assert lines[0] == r"### A \| part"
    assert sum(line.startswith("| ") for line in lines) == MOST_ROWS + 2
    assert "5 more rows: `specload analyse results/x part` has them." in lines
    assert "- **level**: load `C`" in lines


def test_code_and_sentences_hold_whatever_is_put_in() -> None:
    assert prose("run `specload x --y <z>`, then *wait*") == r"run `specload x --y <z>`, then \*wait\*"
    assert code("a`b``c") == "``` a`b``c ```"
    assert code("a|b") == r"a\|b"
    assert code("") == ""
    assert prose("open ` and <b>") == r"open \` and \<b\>"
    assert "\n" not in prose("a\nb") + code("a\nb")


def test_each_figure_is_a_file_that_plotly_reads(report: Report, page: Page) -> None:
    drawn = {figure.name: figure.plot for figure in page.drawn if figure.plot is not None}
    assert set(report.figures.data) == set(drawn)
    assert report.paths[:2] == (report.html, report.markdown)
    name, path = next(iter(report.figures.data.items()))
    assert plotly.io.read_json(path) == drawn[name]
