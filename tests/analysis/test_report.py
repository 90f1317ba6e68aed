import dataclasses
import json
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from analysis.figures.crossover import ratio_figure
from analysis.figures.draft_length import k_figures
from analysis.figures.layouts import layout_figure
from analysis.frame import cells_frame
from analysis.report import render, write_report
from analysis.summary import summarise
from jobs.metric_names import METRICS
from jobs.result import CONFIRMATION, FAILED, INVALID, OPENING, TREATMENT, CellResult, Gate

Sweep = Callable[..., list[CellResult]]
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
    tags.feed(re.sub(r"<script[^>]*>.*?</script>", "<script></script>", html, flags=re.DOTALL))
    return tags


def report(results: list[CellResult], folder: Path, plan: dict[str, Any] | None = None) -> Tags:
    summary = summarise(results, threshold=0.02)
    return parse(render(folder, plan=PLAN if plan is None else plan, results=results, summary=summary))


@pytest.fixture
def troubled(make_sweep: Sweep, true_arm: Any) -> list[CellResult]:
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
    return results


def test_everything_is_in_one_file_that_asks_for_nothing(tmp_path: Path, troubled: list[CellResult]) -> None:
    summary = summarise(troubled, threshold=0.02)
    path = write_report(tmp_path / "sweep", plan=PLAN, results=troubled, summary=summary)
    assert path == tmp_path / "sweep" / "report.html"
    assert [p.name for p in path.parent.iterdir()] == ["report.html"]
    html = path.read_text(encoding="utf-8")
    tags = parse(html)
    for tag, attributes in tags.tags:
        assert "src" not in attributes, (tag, attributes)
        assert tag != "link"
        assert not (attributes.get("href") or "").startswith(("http", "//"))
    assert "default-src 'none'" in html
    assert html.count("plotly.js v") == 1


def test_what_is_untrusted_stays_text(tmp_path: Path, make_sweep: Sweep, true_arm: Any) -> None:
    results = make_sweep([true_arm(label=f"tp1/{EVIL}-k3")], blocks=2, noise=0.01, caveats=(EVIL,))
    results[0] = dataclasses.replace(results[0], outcome=FAILED, reason=EVIL, cause=EVIL, log_tail=EVIL)
    plan = {**PLAN, "sweep": EVIL, "notes": [EVIL], "workload": {**PLAN["workload"], "name": EVIL}}
    summary = summarise(results, threshold=0.02)
    html = render(tmp_path, plan=plan, results=results, summary=summary)
    assert EVIL not in html
    assert "<img" not in re.sub(r"<script[^>]*>.*?</script>", "", html, flags=re.DOTALL)
    assert parse(html).text.count(EVIL) > 5


def test_sections_and_numbers(tmp_path: Path, troubled: list[CellResult]) -> None:
    (tmp_path / "provenance.json").write_text('{"git_commit": "abc123", "python": "3.11"}')
    text = report(troubled, tmp_path).text
    for heading in (
        "Verdicts on total throughput",
        "Crossovers",
        "Figures",
        "Baselines",
        "A/A spread",
        "Methods",
    ):
        assert heading in text
    for fact in (
        "study-0123456789", "f" * 64, "e" * 64, "abc123", "12 conversations are repeated as epochs",
        "tp4/mtp-k3", "4 devices are needed and 2 are there", "longer than the context", "no room",
        "3.24 of 4", "0.8100", "0.9500", "out_of_memory", "Draft length against ratio: tp1/ngram",
        "Layout and drafter", "2 of 42 cells have no measurement that counts",
    ):  # fmt: skip
        assert fact in text, fact
    for name, definition in METRICS.items():
        assert name in text
        assert definition in text


def test_a_confirmation_stands_apart(tmp_path: Path, make_sweep: Sweep, true_arm: Any) -> None:
    planned = make_sweep([true_arm()], blocks=2)
    fresh = [
        dataclasses.replace(cell, block=cell.block + 2, round=1, kind=CONFIRMATION, cell=f"fresh-{cell.cell}")
        for cell in make_sweep([true_arm()], blocks=2, levels=[4])
    ]
    summary = summarise([*planned, *fresh], threshold=0.02)
    page = write_report(tmp_path, plan={}, results=[*planned, *fresh], summary=summary).read_text()
    assert 'id="confirmation"' in page
    assert "tp1/ngram-k3 C=4 confirmed: ratio 1.200" in page
    assert "<b>2</b><span>blocks" in page
    alone = write_report(tmp_path, plan={}, results=planned, summary=summarise(planned, threshold=0.02))
    assert 'id="confirmation"' not in alone.read_text()


@pytest.mark.parametrize(
    ("flag", "word"),
    [("emulated", "EMULATED"), ("synthetic", "SYNTHETIC ACCEPTANCE"), ("oversubscribed", "OVERSUBSCRIBED")],
)
def test_banners_only_where_so(tmp_path: Path, make_sweep: Sweep, flag: str, word: str) -> None:
    assert word in report(make_sweep(levels=(4,), blocks=1, **{flag: True}), tmp_path).text
    assert word not in report(make_sweep(levels=(4,), blocks=1), tmp_path).text


def without(results: list[CellResult], role: str) -> list[CellResult]:
    return [
        dataclasses.replace(r, outcome=FAILED, cause="died", metrics={}) if r.role == role else r
        for r in results
    ]


def odd_sweeps(make_sweep: Sweep, true_arm: Any) -> Iterator[list[CellResult]]:
    yield []
    yield make_sweep([], blocks=1, levels=(4,))
    yield make_sweep(blocks=1, levels=(4,))
    yield make_sweep(blocks=1, closing=False)
    yield without(make_sweep(blocks=2), TREATMENT)
    yield without(make_sweep(blocks=2, closing=False), OPENING)
    yield [dataclasses.replace(r, outcome="infeasible", metrics={}) for r in make_sweep(blocks=1)]
    yield make_sweep([true_arm(ratios={1: 1e-9, 4: 1e9, 16: 1.0})], blocks=2, noise=3.0)


def test_works_with_missing_things(tmp_path: Path, make_sweep: Sweep, true_arm: Any) -> None:
    for results in odd_sweeps(make_sweep, true_arm):
        tags = report(results, tmp_path, plan={})
        assert "Outcomes and gates" in tags.text


def test_damaged_provenance_is_told(tmp_path: Path, make_sweep: Sweep) -> None:
    (tmp_path / "provenance.json").write_text("{")
    assert "is damaged" in report(make_sweep(levels=(4,), blocks=1), tmp_path).text


def test_configuration_differences_and_command_lines(tmp_path: Path, make_sweep: Sweep) -> None:
    results = [
        dataclasses.replace(result, identity={"run": f"run-{result.role}"})
        for result in make_sweep(levels=(4,), blocks=1)
    ]
    for role, k in ((OPENING, 0), (TREATMENT, 3)):
        folder = tmp_path / "engines" / f"run-{role}"
        folder.mkdir(parents=True)
        (folder / "resolved.json").write_text(
            json.dumps({"block_size": 16, "spec.k": k, "kv_blocks": 900 - k})
        )
        (folder / "r0-command.json").write_text(json.dumps({"argv": ["python", "-m", "engine", f"--k={k}"]}))
    text = report(results, tmp_path).text
    section = text[text.index("Configuration differences") : text.index("Workload")]
    assert "spec.k" in section
    assert "897" in section
    assert "block_size" not in section
    assert "python -m engine --k=3" in text


def test_ratio_figure_marks_the_crossover_and_missing_ratios(make_sweep: Sweep) -> None:
    results = make_sweep(blocks=2, noise=0.01)
    gone = [
        dataclasses.replace(r, outcome=FAILED, metrics={}) if (r.role, r.concurrency) == (TREATMENT, 1) else r
        for r in results
    ]
    figure = ratio_figure(summarise(gone, threshold=0.02), "total")
    assert figure is not None
    line, band, ring, missing = figure.data
    assert list(line.x) == [4, 16]
    assert list(band.x) == [4, 16]
    assert 4 < ring.x[0] < 16
    assert list(missing.x) == [1]
    assert figure.layout.xaxis.type == "log"
    assert list(figure.layout.xaxis.tickvals) == [4, 16]


def test_k_figure_needs_two_draft_lengths(troubled: list[CellResult]) -> None:
    ((family, figure),) = k_figures(summarise(troubled, threshold=0.02))
    assert family == "tp1/ngram"
    assert [trace.name for trace in figure.data] == ["C=1", "C=4", "C=16"]
    assert all(list(trace.x) == [3, 7] for trace in figure.data)


def test_layout_figure_is_per_device_and_indexed_to_the_best(make_sweep: Sweep, true_arm: Any) -> None:
    arms = [true_arm(ratios={4: 1.0}), true_arm(layout="tp2", label="tp2/ngram-k3", ratios={4: 3.0})]
    results = [
        dataclasses.replace(r, devices=2 if r.layout == "tp2" else 1)
        for r in make_sweep(arms, levels=(4,), blocks=2, block_effect=0.0)
    ]
    figure = layout_figure(cells_frame(results))
    assert figure is not None
    heights = {
        (trace.name, layout): height
        for trace in figure.data
        for layout, height in zip(trace.x[1], trace.y, strict=True)
    }
    assert heights[("ngram-k3", "tp2")] == pytest.approx(100.0)
    assert heights[("none", "tp2")] == pytest.approx(100.0 / 3)
    assert heights[("none", "tp1")] == pytest.approx(200.0 / 3)
    assert layout_figure(cells_frame([])) is None


def test_a_sweep_over_rates_says_rates(make_sweep: Sweep, true_arm: Any, tmp_path: Path) -> None:
    arm = true_arm(ratios={0.5: 1.2, 2: 0.9})
    results = make_sweep((arm,), levels=(0.5, 2), axis="rate", noise=0.001)
    results[0] = dataclasses.replace(results[0], outcome=FAILED, cause="died", metrics={})
    summary = summarise(results, threshold=0.02)
    page = render(tmp_path, plan=PLAN, results=results, summary=summary)
    seen = Tags()
    seen.feed(page)
    assert "conv./s" in seen.text
    assert "The arrival rate from which a ratio lies below 1." in seen.text
    assert "falls through 1 between 0.5/s and 2/s" in seen.text
    assert "tp1/none, 0.5/s, block 0" in " ".join(seen.text.split())
    assert "C=" not in seen.text
    figure = ratio_figure(summary, "total")
    assert figure is not None
    assert figure.layout.xaxis.title.text == "arrival rate (conversations/s), log scale"
    assert list(figure.layout.xaxis.ticktext) == ["0.5", "2"]
    bars = layout_figure(cells_frame(results))
    assert bars is not None
    assert set(bars.data[0].x[0]) == {"0.5/s", "2/s"}
