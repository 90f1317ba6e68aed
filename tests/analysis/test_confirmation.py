"""Who is the winner, and whether it wins again."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from analysis.confirmation import confirmations, winner
from analysis.rows import Ratio, VerdictRow
from analysis.summary import summarise
from jobs.result import CONFIRMATION, CellResult

ROW = VerdictRow(
    arm="a",
    label="a",
    pair="p",
    layout="tp1",
    drafter="ngram",
    k=3,
    axis="concurrency",
    level=4.0,
    blocks=2,
    verdict="wins",
    reason="why",
    threshold=0.02,
    total=Ratio(value=1.3, lo=1.2, hi=1.4),
)


def with_lo(row: VerdictRow, lo: float | None, **changes: Any) -> VerdictRow:
    return replace(row, total=Ratio(value=1.3, lo=lo, hi=2.0), **changes)


def test_the_winner_has_the_highest_lower_limit() -> None:
    noisy = replace(ROW, label="noisy", total=Ratio(value=2.0, lo=1.1, hi=3.0))
    sure = with_lo(ROW, 1.25, label="sure")
    loser = with_lo(ROW, 1.9, label="loser", verdict="undecided")
    forced = with_lo(ROW, 1.8, label="forced", synthetic=True)
    assert winner([noisy, sure, ROW, loser, forced], objective="total") is sure
    assert winner([loser, forced], objective="total") is None
    assert winner([], objective="total") is None


def test_of_latencies_the_surest_is_the_one_whose_upper_limit_is_lowest() -> None:
    noisy = replace(ROW, label="noisy", ttft_p95=Ratio(value=0.5, lo=0.3, hi=0.9))
    sure = replace(ROW, label="sure", ttft_p95=Ratio(value=0.7, lo=0.6, hi=0.8))
    assert winner([noisy, sure], objective="ttft_p95") is sure


def test_of_equals_the_higher_level_wins_then_the_name() -> None:
    high, other = replace(ROW, level=16.0), replace(ROW, level=16.0, label="b")
    assert winner([ROW, other, high], objective="total") is high


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "a C=4 confirmed: ratio 1.300 [1.200, 1.400] over 2 fresh blocks"),
        (
            {"verdict": "undecided", "blocks": 1, "total": Ratio(value=1.3)},
            "a C=4 not confirmed: ratio 1.300 over 1 fresh block (undecided: why)",
        ),
        (
            {"verdict": "invalid", "blocks": 0, "total": None},
            "a C=4 not confirmed: no ratio over 0 fresh blocks (invalid: why)",
        ),
    ],
)
def test_what_is_said(changes: dict[str, Any], text: str) -> None:
    (found,) = confirmations([replace(ROW, **changes)], objective="total")
    assert found.text == text
    assert found.confirmed == (not changes)


def test_fresh_blocks_are_judged_by_themselves(
    make_sweep: Callable[..., list[CellResult]], true_arm: Callable[..., Any]
) -> None:
    planned = make_sweep([true_arm(ratios={4: 1.5})], levels=[4], noise=0.01, seed=3)
    fresh = [
        replace(cell, block=cell.block + 3, round=1, kind=CONFIRMATION, cell=f"fresh-{cell.cell}")
        for cell in make_sweep([true_arm(ratios={4: 1.0})], levels=[4], blocks=2, noise=0.001, seed=4)
    ]
    alone, both = summarise(planned, threshold=0.02), summarise([*planned, *fresh], threshold=0.02)
    assert alone.confirmations == ()
    assert (both.rows, both.baselines, both.aa_spread, both.crossovers) == (
        alone.rows, alone.baselines, alone.aa_spread, alone.crossovers,
    )  # fmt: skip
    assert sum(both.outcomes.values()) == len(planned) + len(fresh)
    (found,) = both.confirmations
    assert (found.blocks, found.verdict, found.confirmed) == (2, "no difference", False)
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx(1.0, abs=0.01)
