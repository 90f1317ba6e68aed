"""What the terminal shows of a sweep's verdicts."""

from dataclasses import replace

from rich.console import Console

from analysis.confirmation import Confirmation
from analysis.rows import Ratio, VerdictRow
from analysis.summary import Summary
from orchestrator.tables import crossover_lines, ratio_text, verdict_table

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


def test_a_confirmation_is_a_line_of_its_own():
    again = Confirmation(
        arm="a",
        label="tp1/x",
        at="C=4",
        blocks=2,
        verdict="wins",
        ratio=None,
        text="tp1/x C=4 confirmed: ...",
    )
    out = shown(
        verdict_table(Summary(objective="total", threshold=0.02, rows=(ROW,), confirmations=(again,)))
    )
    assert "tp1/x C=4 confirmed: ..." in out
