"""What a user can have measured again, and what becomes of the tries before."""

from dataclasses import replace
from pathlib import Path

import pytest

from jobs.result import CLOSING, FAILED, INVALID, MEASURED, OPENING, TREATMENT, CellResult
from orchestrator.ledger import Ledger
from orchestrator.pending import infeasible_cells, pending
from orchestrator.plan import Plan, Refused
from orchestrator.tries import asked_again, replaced_among, retry_words
from tests.orchestrator.conftest import outcomes


def with_outcomes(plan: Plan, bad: dict[tuple[str, int], str]) -> list[CellResult]:
    """The cells of the first block at C=1, with other outcomes for some: (role, K) -> outcome."""
    first, second = pending(plan, [])
    return [
        replace(cell, outcome=bad.get((cell.role, cell.k), MEASURED) if cell.load == "c1" else MEASURED)
        for cell in outcomes(plan, first)
    ] + outcomes(plan, second)


@pytest.mark.parametrize(
    ("bad", "asked", "again"),
    [
        ({(TREATMENT, 3): INVALID}, [INVALID], [3]),
        ({(TREATMENT, 3): INVALID}, [FAILED], []),
        ({(TREATMENT, 3): INVALID, (TREATMENT, 7): FAILED}, [FAILED, INVALID], [3, 7]),
        ({(OPENING, 0): INVALID}, [INVALID], []),  # its pairs stand on the closing one
        ({(OPENING, 0): INVALID, (CLOSING, 0): FAILED}, [FAILED], [3, 7]),  # all pairs of the level are lost
        ({(OPENING, 0): INVALID, (CLOSING, 0): INVALID, (TREATMENT, 3): FAILED}, [INVALID], [7]),
    ],
)
def test_who_asks_gets_the_cells_without_a_measurement_that_counts(
    small_plan: Plan, bad: dict[tuple[str, int], str], asked: list[str], again: list[int]
) -> None:
    results = with_outcomes(small_plan, bad)
    found = asked_again(results, asked)
    cells = [cell for cell in results if cell.cell in found]
    assert [(cell.block, cell.load, cell.role, cell.k) for cell in cells] == [
        (0, "c1", TREATMENT, k) for k in again
    ]


def test_what_is_measured_again_replaces_what_it_was_and_that_stays_as_history(
    tmp_path: Path, small_plan: Plan
) -> None:
    results = with_outcomes(
        small_plan, {(OPENING, 0): INVALID, (CLOSING, 0): INVALID, (TREATMENT, 7): INVALID}
    )
    with Ledger(tmp_path, small_plan) as ledger:
        for result in results:
            ledger.record(result, {})
        again = asked_again(ledger.results(), [INVALID])
        (segment,) = pending(small_plan, ledger.results(), again=again)
        assert [(run.role, [level.label for level in run.levels]) for run in segment.runs] == [
            (OPENING, ["c1"]), (TREATMENT, ["c1"]), (TREATMENT, ["c1"]), (CLOSING, ["c1"]),
        ]  # fmt: skip
        new = outcomes(small_plan, segment)
        for done, result in enumerate(new, start=1):
            ledger.record(result, {})
            # however far it comes, what is left is what was asked for and is not done
            rest = pending(small_plan, ledger.results(), again=again)
            assert sum(each.cells for each in rest) == (4, 3, 0, 0)[done - 1]
    with Ledger(tmp_path, small_plan) as ledger:
        now, before = ledger.results(), ledger.earlier()
    assert {result.outcome for result in now} == {MEASURED}
    assert len(now) == len(results)
    assert sorted((cell.role, cell.k, cell.outcome) for cell in before) == [
        (CLOSING, 0, INVALID), (OPENING, 0, INVALID), (TREATMENT, 3, MEASURED), (TREATMENT, 7, INVALID),
    ]  # fmt: skip
    assert asked_again(now, [FAILED, INVALID]) == set()


def test_of_all_tries_in_a_copy_the_last_ones_count(small_plan: Plan, tmp_path: Path) -> None:
    results = with_outcomes(
        small_plan, {(OPENING, 0): INVALID, (CLOSING, 0): INVALID, (TREATMENT, 7): INVALID}
    )
    with Ledger(tmp_path, small_plan) as ledger:
        for result in results:
            ledger.record(result, {})
        (segment,) = pending(small_plan, results, again=asked_again(results, [INVALID]))
        for result in outcomes(small_plan, segment):
            ledger.record(result, {})
        now, before = ledger.results(), ledger.earlier()
    found = replaced_among([*now, *before])
    assert set(found) == {result.cell for result in before}
    treatments = [result.sequence for result in now if result.segment == 1 and result.role == TREATMENT]
    assert sorted(set(found.values())) == treatments, "baselines go with the last one"
    assert replaced_among(now) == {}


def test_baselines_alone_are_measured_again_for_their_own_sake(small_plan: Plan, tmp_path: Path) -> None:
    block = small_plan.blocks[0]
    alone = replace(block, runs=tuple(run for run in block.runs if run.role != TREATMENT))
    plan = replace(small_plan, blocks=(alone,))
    first = outcomes(plan, pending(plan, [])[0])
    first[0] = replace(first[0], outcome=INVALID)
    refused = Refused(arm=plan.arms[1], rule="heads", reason="9 heads do not divide by 2")
    first += infeasible_cells(replace(plan, refused=(refused,)), [])
    first = [
        replace(cell, identity={"pair_key": "one"}) for cell in first
    ]  # of the same pair, but of no block
    with Ledger(tmp_path, plan) as ledger:
        for result in first:
            ledger.record(result, {})
        again = asked_again(first, [INVALID])
        assert again == {first[0].cell}
        (segment,) = pending(plan, first, again=again)
        assert (segment.index, segment.cells) == (1, 2)
        for result in outcomes(plan, segment):
            ledger.record(replace(result, identity={"pair_key": "one"}), {})
        assert pending(plan, ledger.results(), again=again) == []
        assert [result.cell for result in ledger.earlier()] == [first[0].cell]


def test_how_to_ask_is_said_where_there_is_something_to_ask_for() -> None:
    assert retry_words({MEASURED: 9, FAILED: 0, INVALID: 0}, "X") == ""
    assert retry_words({INVALID: 1}, "X") == "measure 1 invalid cell again: add --retry invalid to X"
    assert retry_words({FAILED: 2, INVALID: 1}, "X") == (
        "measure 3 failed or invalid cells again: add --retry failed,invalid to X"
    )
