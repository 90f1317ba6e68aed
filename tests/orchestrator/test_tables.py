"""What the terminal shows."""

from dataclasses import replace

from rich.console import Console

from analysis.rows import Ratio, VerdictRow
from analysis.summary import Summary
from orchestrator.estimate import Estimate, Timing, device_time, estimate, read_timings
from orchestrator.plan import Refused
from orchestrator.tables import crossover_lines, plan_tables, ratio_text, verdict_table

ROW = VerdictRow(
    arm="a" * 64,
    label="tp1/free-k7-a0.74",
    pair="p",
    layout="tp1",
    drafter="free",
    k=7,
    axis="concurrency",
    level=16.0,
    blocks=2,
    verdict="loses",
    reason="the interval lies below",
    threshold=0.02,
    total=Ratio(value=0.81, lo=0.78, hi=0.84, pairs=2),
    output=Ratio(value=0.8),
    mal=3.5003,
)


def shown(renderable):
    console = Console(width=190, record=True, file=None, quiet=False)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def test_a_verdict_row():
    out = shown(
        verdict_table(Summary(objective="total", threshold=0.02, rows=(ROW,), outcomes={"measured": 8}))
    )
    assert "0.81 [0.78, 0.84]" in out
    assert "3.50" in out
    assert "loses" in out
    assert "cells: 8 measured" in out
    assert "EMULATED" not in out


def test_banners_say_what_the_figures_are():
    summary = Summary(
        objective="total", threshold=0.02, rows=(ROW,), emulated=True, synthetic=True, oversubscribed=True
    )
    out = shown(verdict_table(summary))
    for banner in ("EMULATED", "SYNTHETIC ACCEPTANCE", "OVERSUBSCRIBED"):
        assert banner in out


def test_an_invalid_row_says_why_and_an_undecided_one_how_many_blocks():
    invalid = replace(ROW, verdict="invalid", reason="loop_lag: 9 ms; allowed 5 ms", total=None)
    undecided = replace(ROW, level=4.0, verdict="undecided", more_blocks=3)
    out = shown(verdict_table(Summary(objective="total", threshold=0.02, rows=(undecided, invalid))))
    assert "tp1/free-k7-a0.74 C=16: loop_lag: 9 ms; allowed 5 ms" in out
    assert "undecided (3 more blocks)" in out


def test_markup_in_names_is_text():
    row = replace(ROW, label="tp1/[bold]x[/bold]")
    assert "[bold]x[/bold]" in shown(verdict_table(Summary(objective="total", threshold=0.02, rows=(row,))))


def test_nothing_measured():
    out = shown(verdict_table(Summary(objective="total", threshold=0.02)))
    assert "No treatment has a result yet." in out
    assert shown(crossover_lines(Summary(objective="total", threshold=0.02)))


def test_ratio_text():
    assert ratio_text(None) == "-"
    assert ratio_text(Ratio(value=1.5)) == "1.50"
    assert ratio_text(Ratio(value=1.5, lo=1.25, hi=1.75)) == "1.50 [1.25, 1.75]"


def test_a_plan_with_a_refused_arm(small_plan):
    refused = Refused(arm=small_plan.arms[1], rule="k_limit", reason="K is at most 2")
    plan = replace(small_plan, refused=(refused,), notes=("four points are one",))
    out = shown(plan_tables(plan, estimate(plan, [])))
    assert "K is at most 2" in out
    assert "note: four points are one" in out
    assert "(tp1/none) > tp1/ngram-k3 > tp1/ngram-k7 > (tp1/none)" in out


def test_size_and_time_of_a_plan(small_plan):
    """2 blocks x 4 runs x 2 levels on one device."""
    assert estimate(small_plan, []) == Estimate(
        engine_starts=8, cells=16, device_seconds=None, guessed_cells=16
    )
    baseline, treatment = small_plan.arms[0].digest, small_plan.arms[1].digest
    foreign = Timing(arm="x", load="c1", seconds=1e6, start_seconds=1e6)
    timings = [
        Timing(arm=baseline, load="c1", seconds=10.0, start_seconds=2.0),
        Timing(arm=baseline, load="c4", seconds=20.0, start_seconds=None),
        Timing(arm=treatment, load="c1", seconds=6.0, start_seconds=4.0),
        foreign,
    ]
    # starts: 2 x (2 + 4 + 3 + 2), 3 being the mean of the known ones
    # cells: baselines 4 x 30, one treatment 2 x (6 + 12), the other 4 x 12, 12 being the mean likewise
    found = estimate(small_plan, timings)
    assert found.device_seconds == 22.0 + 120.0 + 36.0 + 48.0
    assert found.guessed_cells == 6
    assert estimate(small_plan, [foreign]).device_seconds is None


def test_device_time_in_words():
    assert device_time(None, ["gpu"]).startswith("GPU time unknown")
    assert device_time(7200.0, ["gpu"]) == "about 2.0 GPU-hours"
    assert device_time(90.0, ["cpu"]) == "about 2 device-minutes"


def test_unreadable_results_are_left_to_the_sweep(tmp_path):
    cell = tmp_path / "s" / "cells" / "c"
    cell.mkdir(parents=True)
    (cell / "result.json").write_text("{")
    assert read_timings(tmp_path) == []
    assert read_timings(tmp_path / "absent") == []
