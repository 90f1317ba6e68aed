"""Published repeats of one and the same configuration: nothing may ever be said to win or lose on them."""

import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.fit import fit_level
from analysis.frame import cells_frame
from analysis.pairs import aa_spreads
from analysis.verdict import LOSES, WINS, decide
from jobs.result import CLOSING, OPENING, TREATMENT, CellResult

SIX = (35.3, 35.7, 34.7, 35.2, 36.1, 37.1)
REPLICAS = (23255.9, 24054.0)
SESSIONS = (242.5, 199.9)

Make = Callable[..., CellResult]


def cells(make_cell: Make, blocks: Iterable[dict[str, float]]) -> list[CellResult]:
    results = []
    for block, values in enumerate(blocks):
        for role, value in values.items():
            baseline = role != TREATMENT
            results.append(
                make_cell(
                    block=block,
                    role=role,
                    arm="b" * 64 if baseline else "a" * 64,
                    arm_label="tp1/none" if baseline else "tp1/ngram-k3",
                    drafter="none" if baseline else "ngram",
                    k=0 if baseline else 3,
                    metrics={"throughput/total_tok_s": value},
                )
            )
    return results


def words(frame: pd.DataFrame) -> set[str]:
    """The verdicts on total throughput at one level; t is never smaller than without an A/A spread."""
    fit = fit_level(frame, "total")
    return {decide(contrast, fit, practical=0.02, spread=None).word for contrast in fit.contrasts.values()}


def with_values(frame: pd.DataFrame, values: Iterable[float]) -> pd.DataFrame:
    """The same cells with other throughputs."""
    return frame.assign(**{"throughput/total_tok_s": list(values)})


def test_six_repeats_in_every_arrangement_of_two_blocks(make_cell: Make) -> None:
    """All 6! / (2! 2! 2!) ways to call two of each three values baselines, orders within a role set aside."""
    frame = cells_frame(cells(make_cell, [{OPENING: 1.0, CLOSING: 1.0, TREATMENT: 1.0}] * 2))
    seen = set()
    for order in itertools.permutations(SIX):
        first, second = order[:3], order[3:]
        key = frozenset([(frozenset(first[:2]), first[2]), (frozenset(second[:2]), second[2])])
        if key not in seen:
            seen.add(key)
            assert not words(with_values(frame, order)) & {WINS, LOSES}, order
    assert len(seen) == 90


def test_six_repeats_in_every_arrangement_of_three_blocks_without_closing(make_cell: Make) -> None:
    frame = cells_frame(cells(make_cell, [{OPENING: 1.0, TREATMENT: 1.0}] * 3))
    for order in itertools.permutations(SIX):
        pairs = [order[0:2], order[2:4], order[4:6]]
        if pairs == sorted(pairs):  # the order of the blocks does not matter
            assert not words(with_values(frame, order)) & {WINS, LOSES}, order


@pytest.mark.parametrize(("first", "second"), [REPLICAS, SESSIONS, REPLICAS[::-1], SESSIONS[::-1]])
def test_two_sessions(make_cell: Make, first: float, second: float) -> None:
    """As baseline against arm, as two baselines around an arm, and over two blocks on either side."""
    assert not words(cells_frame(cells(make_cell, [{OPENING: first, TREATMENT: second}]))) & {WINS, LOSES}
    for treated in (first, second):
        around = {OPENING: first, TREATMENT: treated, CLOSING: second}
        assert not words(cells_frame(cells(make_cell, [around]))) & {WINS, LOSES}
        assert not words(cells_frame(cells(make_cell, [around, around]))) & {WINS, LOSES}
    mixed = [{OPENING: first, TREATMENT: second}, {OPENING: second, TREATMENT: first}]
    assert not words(cells_frame(cells(make_cell, mixed))) & {WINS, LOSES}


def test_the_spread_of_published_replicas(make_cell: Make) -> None:
    frame = cells_frame(cells(make_cell, [{OPENING: REPLICAS[0], CLOSING: REPLICAS[1]}]))
    spread = aa_spreads(frame)["total"]
    assert spread is not None
    assert math.expm1(spread) == pytest.approx(0.0343, abs=5e-5)


def test_identical_arms_hardly_ever_win_or_lose(make_sweep: Any, true_arm: Any) -> None:
    """A/A sweeps of 3 arms in 2 blocks, 3 % noise: the interval alone misjudges 5 %, t makes it rarer."""
    arms = [true_arm(label=f"tp1/x-k{k}", k=k, ratios={8: 1.0}) for k in (1, 3, 5)]
    frame = cells_frame(make_sweep(arms, levels=(8,), blocks=2))
    wrong = 0
    for seed in range(50):
        logs = np.random.default_rng(seed).normal(0.0, 0.03, size=len(frame))
        wrong += bool(words(with_values(frame, np.exp(logs))) & {WINS, LOSES})
    assert wrong <= 5
