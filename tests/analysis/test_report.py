import base64
import dataclasses
import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import pytest

from analysis.figures import FIGURES
from analysis.figures.style import add_slider
from analysis.frame import Sweep, cells_frame
from analysis.report.context import Page, build_context
from analysis.report.page import render_html
from analysis.report.page.plots import in_script, plot_of
from analysis.report.page.tables import MOST_ROWS, arm_marks, table_of
from analysis.section import Section
from analysis.sections import SECTIONS
from analysis.summary import summary_of
from jobs.metric_names import METRICS
from jobs.result import CONFIRMATION, FAILED, INVALID, OPENING, TREATMENT, CellResult, Gate

Make = Callable[..., list[CellResult]]
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"

PLAN: dict[str, Any] = {
    "name": "study",
    "sweep": "study-0123456789",
    "digest": "f" * 64,
    "seed": 7,
    "threshold": 0.02,
    "overrides": ["drafter=ngram", "drafter.k=3"],
    "notes": ["12 conversations are repeated as epochs"],
    "workload": {
        "name": "builtin", "format": "builtin", "paths": [], "digest": "e" * 64, "conversations": 24,
        "turns": 70, "dropped": [["c9", "longer than the context"]], "options": {},
    },
    "refused": [
        {"arm": {"config": {"drafter": {"method": "mtp", "k": 3}, "layout": {"tp": 4}}}, "rule": "devices",
         "reason": "4 devices are needed and 2 are there"},
    ],
}  # fmt: skip


class Tags(HTMLParser):
    """Start tags with their attributes, and the text outside of scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._hidden = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._hidden = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._hidden = False

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.text += data


def parse(html: str) -> Tags:
    tags = Tags()
    tags.feed(re.sub(r"<script>.*?</script>", "<script></script>", html, flags=re.DOTALL))
    return tags


def page_of(results: list[CellResult], folder: Path, plan: dict[str, Any] | None = None) -> str:
    plan = PLAN if plan is None else plan
    sweep = Sweep(directory=folder, plan=plan, cells=cells_frame(results), results=results)
    return render_html(build_context(sweep, summary_of(sweep, threshold=0.02)))


def troubled(make_sweep: Make, true_arm: Any) -> list[CellResult]:
    arms = [
        true_arm(),
        true_arm(label="tp1/ngram-k7", k=7, ratios={1: 2.0, 4: 1.1, 16: 0.6}),
        true_arm(label="dp2/ngram-k3", layout="dp2"),
    ]
    results = make_sweep(arms, blocks=2, noise=0.01)
    gate = Gate(name="occupancy", passed=False, message=f"3.24 of 4 {EVIL}", value=0.81, limit=0.95)
    results[4] = dataclasses.replace(
        results[4], outcome=INVALID, cause="occupancy", reason="81 % of 95 %", gates=(gate,)
    )
    last = next(index for index, r in enumerate(results) if r.role == TREATMENT and r.block == 1)
    results[last] = dataclasses.replace(
        results[last],
        outcome=FAILED,
        cause="out_of_memory",
        reason="no room",
        log_tail=f"Traceback {EVIL}",
        metrics={},
    )
    return [
        dataclasses.replace(result, identity={"run": f"run-{result.role}"})
        if result.layout == "tp1" and result.k in (0, 3)
        else result
        for result in results
    ]


@pytest.fixture(scope="module")
def page(make_sweep: Make, true_arm: Any, tmp_path_factory: pytest.TempPathFactory) -> Page:
    """What the report of a sweep with troubles of all kinds shows, made once."""
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "provenance.json").write_text('{"git_commit": "abc123", "python": "3.11"}')
    for role, k in ((OPENING, 0), (TREATMENT, 3)):
        run = folder / "engines" / f"run-{role}"
        run.mkdir(parents=True)
        (run / "resolved.json").write_text(json.dumps({"block_size": 16, "spec.k": k, "kv_blocks": 900 - k}))
        (run / "r0-command.json").write_text(json.dumps({"argv": ["python", "-m", "engine", f"--k={k}"]}))
    results = troubled(make_sweep, true_arm)
    sweep = Sweep(directory=folder, plan=PLAN, cells=cells_frame(results), results=results)
    return build_context(sweep, summary_of(sweep, threshold=0.02))


@pytest.fixture(scope="module")
def html(page: Page) -> str:
    return render_html(page)


@pytest.fixture(scope="module")
def tags(html: str) -> Tags:
    return parse(html)


def test_everything_is_in_one_file_that_asks_for_nothing(html: str, tags: Tags) -> None:
    for tag, attributes in tags.tags:
        assert "src" not in attributes, (tag, attributes)
        assert tag != "link"
        assert not (attributes.get("href") or "").startswith(("http", "//"))
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
    assert html.count("plotly.js v") == 1


def test_only_the_scripts_that_the_policy_knows_run(html: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    scripts = re.findall(r"<script>(.*?)</script>", html, flags=re.DOTALL)
    assert len(scripts) == 2
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy[1]
    assert "unsafe" not in policy[1].partition("style-src")[0]


def test_what_is_untrusted_stays_text(html: str, tags: Tags) -> None:
    assert EVIL not in html
    assert "img" not in [tag for tag, _ in tags.tags]
    assert tags.text.count(EVIL) == 2  # a gate's message and a log tail


def test_chapters_and_tables_are_those_of_the_tables(page: Page, tags: Tags) -> None:
    places = {attributes["id"] for _, attributes in tags.tags if attributes.get("id")}
    assert places >= set(FIGURES)
    made = {section.name for section in page.sections if not section.frame.empty}
    assert made >= {"verdicts", "crossovers", "baselines", "aa_spread", "recommendation"}
    assert places >= {f"table-{name}" for name in made}
    shown = [section.name for chapter in page.chapters for section in chapter.boxes] + [
        section.name for section in page.rest
    ]
    reasons = [section.missing for section in page.sections if section.name in shown and section.frame.empty]
    assert len(reasons) == len(set(reasons)), "what is missing for one reason is said once"
    reasons += [figure.missing for figure in page.drawn if figure.plot is None]
    assert all(section.missing in reasons for section in page.sections if section.frame.empty)
    ids = [attributes["id"] for _, attributes in tags.tags if attributes.get("id")]
    assert len(ids) == len(set(ids))
    targets = {
        (attributes["href"] or "")[1:] for tag, attributes in tags.tags if tag == "a" and "href" in attributes
    }
    assert targets <= places


def test_every_figure_names_tables_that_exist(page: Page) -> None:
    known = {*SECTIONS, "verdicts", "crossovers", "baselines", "aa_spread", "implied"}
    for figure in page.drawn:
        assert set(figure.sections) <= known, figure.name
        assert re.fullmatch(r"[a-z0-9-]+", figure.name)


def test_the_page_can_be_read_by_everybody(tags: Tags) -> None:
    names = [tag for tag, _ in tags.tags]
    for landmark in ("header", "nav", "main"):
        assert names.count(landmark) == 1
    levels = [int(tag[1]) for tag in names if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(below - above <= 1 for above, below in itertools.pairwise(levels))
    assert names.count("table") == names.count("caption")
    for tag, attributes in tags.tags:
        if tag == "th":
            assert attributes.get("scope") == "col"
        if attributes.get("class") == "plot":
            assert attributes["role"] == "img"
            assert len(attributes["aria-label"] or "") > 20
        if tag == "input":
            assert attributes["type"] == "range"
            assert attributes["aria-valuetext"]


def test_numbers_words_and_troubles(tags: Tags) -> None:
    for fact in (
        "Decision", "The strongest caveats", "Verdicts on total throughput", "Methods and definitions",
        "study-0123456789", "f" * 64, "e" * 64, "abc123", "12 conversations are repeated as epochs",
        "tp4/mtp-k3", "4 devices are needed and 2 are there", "longer than the context", "no room",
        "3.24 of 4", "0.8100", "0.9500", "out_of_memory", "2 of 42 cells have no measurement that counts",
        "python -m engine --k=3", "plan.json --retry failed,invalid measures them again",
    ):  # fmt: skip
        assert fact in tags.text, fact
    for name, definition in METRICS.items():
        assert name in tags.text
        assert definition in tags.text


def test_configuration_differences_leave_out_what_is_equal(tags: Tags) -> None:
    part = tags.text[tags.text.rindex("Configuration differences\n") : tags.text.rindex("All cells\n")]
    assert "spec.k" in part
    assert "897" in part
    assert "block_size" not in part


def test_a_confirmation_stands_apart(tmp_path: Path, make_sweep: Make, true_arm: Any) -> None:
    planned = make_sweep([true_arm()], blocks=2, levels=[1, 4])
    fresh = [
        dataclasses.replace(cell, block=cell.block + 2, round=1, kind=CONFIRMATION, cell=f"fresh-{cell.cell}")
        for cell in make_sweep([true_arm()], blocks=2, levels=[4])
    ]
    page = page_of([*planned, *fresh], tmp_path, plan={})
    assert 'id="confirmation"' in page
    assert "tp1/ngram-k3 C=4 confirmed: ratio 1.200" in page
    assert "<b>2</b> blocks" in page


def test_what_is_no_measurement_of_a_drafter_is_unmistakable(
    tmp_path: Path, make_sweep: Make, html: str
) -> None:
    results = make_sweep(levels=(4,), blocks=1, emulated=True, synthetic=True, oversubscribed=True)
    page = page_of(results, tmp_path)
    title = page[page.index("<title>") : page.index("</title>")]
    for word in ("EMULATED", "SYNTHETIC ACCEPTANCE", "OVERSUBSCRIBED"):
        assert word in title
        assert f"<b>{word}</b>" in page
        assert f"<b>{word}</b>" not in html
    verdicts = page[page.index('id="table-verdicts"') :]
    row = verdicts[verdicts.index("<tbody>") : verdicts.index("</tr>", verdicts.index("<tbody>"))]
    for mark in ("emulated", "forced acceptance", "shared cores"):
        assert f'<span class="mark">{mark}</span>' in row


def without(results: list[CellResult], role: str) -> list[CellResult]:
    return [
        dataclasses.replace(r, outcome=FAILED, cause="died", metrics={}) if r.role == role else r
        for r in results
    ]


def odd_sweeps(make_sweep: Make, true_arm: Any) -> Iterator[list[CellResult]]:
    yield []
    yield make_sweep([], blocks=1, levels=(4,))
    yield make_sweep(blocks=1, closing=False, levels=(4,))
    yield without(make_sweep(blocks=2, levels=(1, 4)), TREATMENT)
    yield without(make_sweep(blocks=2, closing=False, levels=(1, 4)), OPENING)
    infeasible = make_sweep(blocks=1, levels=(4,))
    yield [dataclasses.replace(result, outcome="infeasible", metrics={}) for result in infeasible]
    yield make_sweep([true_arm(ratios={1: 1e-9, 4: 1e9})], blocks=2, levels=(1, 4), noise=3.0)


def test_works_with_missing_things(tmp_path: Path, make_sweep: Make, true_arm: Any) -> None:
    (tmp_path / "provenance.json").write_text("{")
    for results in odd_sweeps(make_sweep, true_arm):
        page = page_of(results, tmp_path, plan={})
        assert "Outcomes and gates" in page
        assert "is damaged" in page


def test_a_sweep_over_rates_says_rates(make_sweep: Make, true_arm: Any, tmp_path: Path) -> None:
    results = make_sweep((true_arm(ratios={0.5: 1.2, 2: 0.9}),), levels=(0.5, 2), axis="rate", noise=0.001)
    results[0] = dataclasses.replace(results[0], outcome=FAILED, cause="died", metrics={})
    text = " ".join(parse(page_of(results, tmp_path)).text.split())
    assert "conv./s" in text
    assert "falls through 1 between 0.5/s and 2/s" in text
    assert "Up to about 1." in text
    assert "tp1/none, 0.5/s, block 0" in text
    assert "C=" not in text


def test_a_plot_is_rounded_and_cannot_leave_its_script() -> None:
    figure = go.Figure(go.Scatter(x=[1.23456789, float("nan")], y=[2, 3], name="</script><!--"))
    plot = plot_of(figure)
    assert "<" not in plot.json
    content = json.loads(plot.json)
    assert content["data"][0]["x"] == [1.2346, None]
    assert content["data"][0]["name"] == "</script><!--"
    assert plot.slider is None
    assert json.loads(in_script({"a": "\u2028&"})) == {"a": "\u2028&"}


def test_a_slider_leaves_plotlys_layout_for_a_control_of_the_page() -> None:
    figure = go.Figure(go.Scatter(x=[1], y=[1]))
    steps = [(f"C={c}", {"y": [[c]]}, {}) for c in (1, 2, 4)]
    add_slider(figure, name="concurrency", steps=steps, active=1, traces=[0])
    plot = plot_of(figure)
    content = json.loads(plot.json)
    assert "sliders" not in content["layout"]
    assert [step[0] for step in content["steps"]] == [{"y": [[1]]}, {"y": [[2]]}, {"y": [[4]]}]
    assert content["steps"][0][2] == [0]
    assert plot.slider is not None
    assert (plot.slider.name, plot.slider.labels, plot.slider.active) == (
        "concurrency",
        ("C=1", "C=2", "C=4"),
        1,
    )


def section(**columns: Any) -> Section:
    frame = pd.DataFrame(columns)
    return Section(name="made", title="Made", frame=frame, columns=dict.fromkeys(columns, "a column"))


def test_a_table_sorts_by_values_and_marks_its_rows(make_sweep: Make) -> None:
    made = section(
        arm=["tp1/ngram-k3", "tp1/none"],
        total=[1234.5678, float("nan")],
        verdict=["no difference", "wins"],
        note=["x" * 50, ""],
        emulated=[False, True],
    )
    cells = cells_frame(make_sweep(levels=(4,), blocks=1, synthetic=True))
    table = table_of(made, arm_marks(cells))
    assert [column.kind for column in table.columns] == ["word", "number", "state", "wide", "word"]
    first, second = table.rows
    assert (first.cells[1].text, first.cells[1].value) == ("1,235", "1234.5678")
    assert (second.cells[1].text, second.cells[1].value) == ("\N{EN DASH}", "")
    assert first.cells[2].chip == "no-difference"
    assert first.marks == ("forced acceptance",)
    assert second.marks == ("emulated", "forced acceptance")
    assert table.marked == 0


def test_a_long_table_says_how_much_it_leaves_out() -> None:
    table = table_of(section(arm=[str(row) for row in range(MOST_ROWS + 5)]), {})
    assert (len(table.rows), table.count) == (MOST_ROWS, MOST_ROWS + 5)
