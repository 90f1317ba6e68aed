"""What MLflow shows of a sweep as a whole: a curve per arm, the description, and views by address."""

from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from analysis.rows import Ratio, VerdictRow
from analysis.summary import Summary
from analysis.untrusted import markdown
from orchestrator.plan import Plan
from orchestrator.tracking_curves import Curve, curves
from orchestrator.tracking_note import LIMIT, sweep_note
from orchestrator.tracking_views import chart


def row(label: str, level: float, value: float, **changes: Any) -> VerdictRow:
    ratio = Ratio(value=value, lo=value * 0.9, hi=value * 1.1, pairs=2)
    known: dict[str, Any] = {
        "arm": label.ljust(64, "."),
        "label": label,
        "pair": "p",
        "layout": "tp1",
        "drafter": "eagle3",
        "k": 3,
        "axis": "concurrency",
        "level": level,
        "blocks": 2,
        "verdict": "wins" if value > 1 else "loses",
        "reason": "measured",
        "threshold": 0.02,
        "total": ratio,
        "mal": 2.5,
    }
    return VerdictRow(**{**known, **changes})


def said(*rows: VerdictRow, **changes: Any) -> Summary:
    return Summary(objective="total", threshold=0.02, rows=rows, **changes)


def points(curve: Curve, name: str) -> list[tuple[int, float]]:
    return [(point.step, point.value) for point in curve.points if point.name == name]


def test_an_arm_is_a_curve_with_its_interval(small_plan: Plan) -> None:
    found = curves(small_plan, said(row("a", 1, 1.5), row("a", 16, 0.9), row("b", 1, 1.2)))
    assert [curve.name for curve in found] == [f"{label} ({small_plan.sweep})" for label in "ab"]
    assert points(found[0], "at_C/ratio_total") == [(1, 1.5), (16, 0.9)]
    assert points(found[0], "interval_at_C/ratio_total_lo") == [
        (1, pytest.approx(1.35)),
        (16, pytest.approx(0.81)),
    ]
    assert points(found[0], "at_C/mal") == [(1, 2.5), (16, 2.5)]
    assert points(found[0], "at_C/ratio_goodput") == []


def test_levels_that_are_no_whole_numbers_are_logged_in_thousandths(small_plan: Plan) -> None:
    rows = (row("a", 0.5, 1.5, axis="rate"), row("a", 2, 1.1, axis="rate"))
    (curve,) = curves(small_plan, said(*rows, axis="rate"))
    assert points(curve, "at_rate_x1000/ratio_total") == [(500, 1.5), (2000, 1.1)]


def test_what_is_not_comparable_is_marked_and_apart(small_plan: Plan) -> None:
    rows = (
        row("a", 1, 1.5, emulated=True),
        row("a", 4, 1.4, emulated=True, oversubscribed=True),
        row("c", 1, 1.6, counterfactual="kv_matched"),
        row("lost", 1, 1.0, total=None, mal=None, capacity_failure=True),
    )
    a, shared, cause = curves(small_plan, said(*rows))
    assert a.name.startswith("a, emulated (")
    assert shared.name.startswith("a, emulated, oversubscribed (")
    assert points(a, "at_C/ratio_total") == [(1, 1.5)]
    assert points(shared, "at_C/ratio_total") == [(4, 1.4)]
    assert a.id != shared.id
    assert cause.name.startswith("c, counterfactual (")
    assert cause.tags["specload.counterfactual"] == "kv_matched"


def test_the_description_says_who_wins_where_and_what_restricts_it(small_plan: Plan) -> None:
    rows = (
        row("a", 1, 1.5),
        row("b", 1, 1.7),
        row("cause", 1, 3.0, counterfactual="kv_matched"),
        row("ceiling", 1, 4.0, synthetic=True),
        row("a", 4, 0.8),
    )
    note = sweep_note(small_plan, said(*rows, emulated=True, caveats=("one block",)), "#/x")
    assert "](#/x)" in note
    assert "**Some or all figures are emulated.**" in note
    assert "- C=1: **b**, 1.70 \\[1.53, 1.87\\]" in note
    assert "| a | 4 | 0.80 \\[0.72, 0.88\\] | loses |" in note
    assert "- one block" in note
    assert "**cause**" not in note
    assert "**ceiling**" not in note


def test_of_a_latency_the_lowest_ratio_wins(small_plan: Plan) -> None:
    low, high = (Ratio(value=value, lo=value, hi=value) for value in (0.5, 0.8))
    rows = (
        row("a", 1, 1.5, ttft_p95=high),
        row("b", 1, 1.5, ttft_p95=low),
    )
    assert "- C=1: **b**, 0.50" in sweep_note(small_plan, replace(said(*rows), objective="ttft_p95"))


def test_untrusted_words_stay_words(small_plan: Plan) -> None:
    evil = "<script>alert(1)</script> [x](http://e) `c` \u202egpj.exe |"
    shown = markdown(evil)
    assert "\u202e" not in shown
    assert "<" not in shown.replace("\\<", "")
    assert "[" not in shown.replace("\\[", "")
    assert "|" not in shown.replace("\\|", "")
    note = sweep_note(small_plan, said(row(evil, 1, 1.5, reason=evil), caveats=(evil,)))
    assert "<script" not in note.replace("\\<", "")


def test_a_long_description_ends_at_a_line(small_plan: Plan) -> None:
    note = sweep_note(small_plan, said(*(row(f"arm-{index}", 1, 1.5) for index in range(500))))
    assert len(note) < LIMIT + 100
    assert note.endswith("... the report has all.")


def test_a_view_is_an_address() -> None:
    address = chart("7", "quickstart-1")
    path, _, query = urlsplit(address).fragment.partition("?")
    assert path == "/experiments/7/runs"
    assert parse_qs(query) == {
        "searchFilter": ["tags.`specload.kind` = 'curve' AND tags.`specload.sweep_id` = 'quickstart-1'"],
        "compareRunsMode": ["CHART"],
        "workflowType": ["machine_learning"],
    }
