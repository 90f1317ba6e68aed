"""Known acceptance against realised: pooling, errors, verdicts."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from analysis.acceptance import (
    AGREES,
    ASKED,
    BUILT,
    DIFFERS,
    NO_DRAFTS,
    NOTHING_KNOWN,
    acceptance_rows,
)
from jobs.result import FAILED, INVALID, CellResult

Cell = Callable[..., CellResult]
RATES = (0.74, 0.74**2, 0.74**3)


def spec(
    rates: Sequence[float] = RATES, *, drafts: int = 6000, requested: float | None = None
) -> dict[str, float | None]:
    positions = {f"spec/acceptance_pos_{index}": rate for index, rate in enumerate(rates, start=1)}
    return {
        "spec/mal": 1 + sum(rates),
        "spec/drafts": drafts,
        "spec/requested_mal": requested,
        **positions,
    }


def test_cells_of_an_arm_are_pooled_by_their_steps(make_cell: Cell) -> None:
    cells = [
        make_cell(concurrency=1, metrics=spec((1.0, 0.5, 0.0), drafts=1000)),
        make_cell(concurrency=4, metrics=spec((0.5, 0.25, 0.0), drafts=3000), outcome=INVALID),
        make_cell(concurrency=8, metrics={}, outcome=FAILED),
        make_cell(arm="b" * 64, arm_label="tp1/none", drafter="none", k=0),
    ]
    (row,) = acceptance_rows(cells, {})
    assert (row.steps, row.cells, row.verdict) == (4000, 2, NOTHING_KNOWN)
    assert row.realised == pytest.approx((1000 * 2.5 + 3000 * 1.75) / 4000)
    # P(X >= 1) = .625, P(X >= 2) = .3125: E[X] = .9375, E[X^2] = .625 + 3 * .3125.
    assert row.error == pytest.approx(math.sqrt((1.5625 - 0.9375**2) / 4000))
    assert (row.share, row.errors) == (None, None)


@pytest.mark.parametrize(
    ("away", "verdict"), [(2.9, AGREES), (-2.9, AGREES), (3.1, DIFFERS), (-3.1, DIFFERS)]
)
def test_what_was_asked_for_is_judged_in_standard_errors(make_cell: Cell, away: float, verdict: str) -> None:
    square = RATES[0] + 3 * RATES[1] + 5 * RATES[2]
    error = math.sqrt((square - sum(RATES) ** 2) / 12_000)
    metrics = spec(drafts=12_000, requested=1 + sum(RATES) - away * error)
    # A length that was built in is of no account where another one was asked for.
    (row,) = acceptance_rows([make_cell(metrics=metrics)], {"a" * 64: 1.0})
    assert (row.source, row.verdict, row.few_steps) == (ASKED, verdict, False)
    assert row.errors == pytest.approx(away)


@pytest.mark.parametrize(("factor", "verdict"), [(1.019, AGREES), (0.981, AGREES), (1.021, DIFFERS)])
def test_what_was_built_in_is_judged_as_a_share(make_cell: Cell, factor: float, verdict: str) -> None:
    (row,) = acceptance_rows([make_cell(metrics=spec())], {"a" * 64: (1 + sum(RATES)) / factor})
    assert (row.source, row.verdict, row.few_steps) == (BUILT, verdict, False)
    assert row.share == pytest.approx(factor - 1)


def test_few_steps_are_said(make_cell: Cell) -> None:
    (row,) = acceptance_rows([make_cell(metrics=spec(drafts=11_999, requested=1 + sum(RATES)))], {})
    assert row.few_steps


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_all_or_nothing_has_no_spread_and_is_still_judged(make_cell: Cell, rate: float) -> None:
    metrics: dict[str, Any] = spec((rate,) * 3, requested=1 + 3 * rate)
    (row,) = acceptance_rows([make_cell(metrics=metrics)], {})
    assert (row.error, row.errors, row.verdict) == (0.0, None, AGREES)
    metrics["spec/requested_mal"] = 2.0
    (row,) = acceptance_rows([make_cell(metrics=metrics)], {})
    assert row.verdict == DIFFERS


def test_a_drafter_that_never_drafted_has_no_length(make_cell: Cell) -> None:
    (row,) = acceptance_rows([make_cell(metrics=spec(drafts=0))], {"a" * 64: 2.0})
    assert (row.realised, row.steps, row.verdict) == (None, 0, NO_DRAFTS)


def test_an_engine_that_counts_no_positions_is_judged_by_share(make_cell: Cell) -> None:
    metrics = {"spec/mal": 2.7, "spec/drafts": 20_000, "spec/requested_mal": 2.6928}
    (row,) = acceptance_rows([make_cell(metrics=metrics)], {})
    assert (row.error, row.errors, row.verdict) == (None, None, AGREES)
