"""KV capacity by arm: what a drafter took, from where requests wait, and what its memory costs."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.capacity import capacity_rows, memory_costs, waiting_from
from analysis.capacity_sections import capacity, memory
from analysis.confirmation import winner
from analysis.frame import Sweep, cells_frame
from analysis.summary import summarise
from jobs.result import CLOSING, FAILED, OPENING, TREATMENT, CellResult

Cell = Callable[..., CellResult]
NATURAL, ARM, MATCHED = ("n" * 64, "a" * 64, "m" * 64)


@pytest.fixture
def cells(make_cell: Cell) -> Callable[..., list[CellResult]]:
    """A sweep of a baseline, an arm and its matched baseline: throughputs of each by block."""

    def make(
        *throughputs: tuple[float, float, float], level: int = 4, **figures: float | None
    ) -> list[CellResult]:
        def cell(arm: str, role: str, block: int, total: float, tokens: float, **extra: Any) -> CellResult:
            names = {NATURAL: "none", ARM: "eagle3-k3", MATCHED: "none-kv-matched-eagle3-k3"}
            values = {
                "throughput/total_tok_s": total,
                "user/speed_tok_s": total,
                "kv/capacity_tokens": tokens,
                "engine/waiting_share": 0.0,
                **figures,
            }
            identity = {"pair_key": "p", "kv_of": ARM if arm == MATCHED else None}
            return make_cell(
                arm=arm,
                arm_label=f"tp1/{names[arm]}",
                drafter="eagle3" if arm == ARM else "none",
                k=3 if arm == ARM else 0,
                block=block,
                role=role,
                concurrency=level,
                metrics=values,
                identity=identity,
                **extra,
            )

        return [
            found
            for block, (natural, arm, matched) in enumerate(throughputs)
            for found in (
                cell(NATURAL, OPENING, block, natural / 1.1, 1000.0),
                cell(ARM, TREATMENT, block, arm, 800.0),
                cell(MATCHED, TREATMENT, block, matched, 800.0, counterfactual="kv_matched"),
                cell(NATURAL, CLOSING, block, natural * 1.1, 1000.0),
            )
        ]

    return make


def test_what_the_drafter_took_is_the_baselines_surplus(cells: Callable[..., list[CellResult]]) -> None:
    rows = capacity_rows(cells((100.0, 150.0, 90.0)))
    assert [(row.label, row.tokens, row.taken, row.taken_share) for row in rows] == [
        ("tp1/none", 1000.0, None, None),
        ("tp1/eagle3-k3", 800.0, 200.0, 0.2),
        ("tp1/none-kv-matched-eagle3-k3", 800.0, 200.0, 0.2),
    ]


def test_an_arm_whose_engine_does_not_tell_has_no_row(cells: Callable[..., list[CellResult]]) -> None:
    assert capacity_rows(cells((100.0, 150.0, 90.0), **{"kv/capacity_tokens": None})) == ()


def test_the_ratio_is_memory_times_all_else(cells: Callable[..., list[CellResult]]) -> None:
    (cost,) = memory_costs(cells((100.0, 150.0, 90.0), (200.0, 330.0, 170.0)))
    assert (cost.label, cost.at, cost.whole.pairs) == ("tp1/eagle3-k3", "C=4", 2)
    assert cost.whole.value == pytest.approx(math.sqrt(1.5 * 1.65))
    assert cost.memory.value == pytest.approx(math.sqrt(0.9 * 0.85))
    assert cost.whole.value == pytest.approx(cost.memory.value * cost.rest.value)
    assert cost.memory.lo is not None
    assert cost.memory.hi is not None
    # t of one degree of freedom on half the difference of the two logs
    half = 12.7062 * abs(math.log(0.9 / 0.85)) / 2
    assert math.log(cost.memory.hi / cost.memory.lo) / 2 == pytest.approx(half, rel=1e-4)


def test_one_block_has_no_interval_and_a_lost_side_no_row(cells: Callable[..., list[CellResult]]) -> None:
    (cost,) = memory_costs(cells((100.0, 150.0, 90.0)))
    assert cost.rest.lo is cost.rest.hi is None
    lost = [
        CellResult.from_dict({**found.to_dict(), "outcome": FAILED}) if found.arm == ARM else found
        for found in cells((100.0, 150.0, 90.0))
    ]
    assert memory_costs(lost) == ()


def test_a_counterfactual_neither_wins_nor_crosses(cells: Callable[..., list[CellResult]]) -> None:
    """The matched baseline is far ahead here: it has its ratio, and nobody would serve with it."""
    summary = summarise(cells(*[(100.0, 150.0, 400.0 + block) for block in range(4)]), threshold=0.02)
    ratios = {row.label: (row.total.value if row.total else None, row.counterfactual) for row in summary.rows}
    assert ratios["tp1/none-kv-matched-eagle3-k3"] == (pytest.approx(4.0, rel=0.01), "kv_matched")
    best = winner(summary.rows, objective="total")
    assert best is None or best.label == "tp1/eagle3-k3"
    assert {row.label for row in summary.crossovers} == {"tp1/eagle3-k3"}


def test_the_natural_baseline_stays_the_denominator(cells: Callable[..., list[CellResult]]) -> None:
    both = cells((100.0, 150.0, 90.0), (100.0, 150.0, 90.0))
    without = [found for found in both if found.arm != MATCHED]
    ratios = [
        next(row.total.value for row in summarise(part, threshold=0.02).rows if row.arm == ARM and row.total)
        for part in (both, without)
    ]
    assert ratios[0] == pytest.approx(ratios[1]) == pytest.approx(1.5)


def test_both_tables(cells: Callable[..., list[CellResult]]) -> None:
    results = cells((100.0, 150.0, 90.0))
    sweep = Sweep(directory=Path("made"), plan={}, cells=cells_frame(results), results=results)
    fits = capacity(sweep).frame.set_index("arm")
    assert fits["taken_share"].max() == pytest.approx(0.2)
    assert set(fits["waits"]) == {"not within the levels sampled (C=4)"}
    assert list(memory(sweep).frame["memory"]) == pytest.approx([0.9])


@pytest.mark.parametrize(
    ("shares", "waits", "words"),
    [
        ({1: 0.0, 4: 0.2, 16: 0.9}, 16.0, "between C=4 and C=16 (KV cache up to 93% full)"),
        ({1: 0.6, 4: 1.0}, 1.0, "at C=1 already (KV cache up to 93% full)"),
        ({1: 0.0, 4: 0.4}, None, "not within the levels sampled (C=1 to C=4)"),
        ({4: 0.0}, None, "not within the levels sampled (C=4)"),
        ({1: None, 4: None}, None, "unknown: no level was sampled long enough"),
        ({1: None, 4: 0.7}, 4.0, "at C=4 already (KV cache up to 93% full)"),
    ],
)
def test_requests_wait_from_the_first_level_with_a_queue_in_most_samples(
    make_cell: Cell, shares: dict[int, float | None], waits: float | None, words: str
) -> None:
    own = [
        make_cell(concurrency=level, metrics={"engine/waiting_share": share, "kv/usage_peak": 0.93})
        for level, share in shares.items()
    ]
    assert waiting_from(own) == (waits, words)
