"""What the tests of sweeps let pass on a busy machine, and what they do not."""

from dataclasses import replace

import pytest

from jobs.result import FAILED, INVALID, CellResult
from tests.analysis.made import Arm, made_results
from tests.lateness import ended, played

MEASURED_CELL = made_results([Arm(label="tp1/eagle3-k3")])[0]
LATE = replace(MEASURED_CELL, outcome=INVALID, cause="loop_lag")
WRONG = replace(MEASURED_CELL, outcome=INVALID, cause="same_config")
LOST = replace(MEASURED_CELL, outcome=FAILED, cause="died")
NOTHING = "specload: no cell of study-1 was measured"


def test_a_cell_was_played_that_was_measured_or_only_late() -> None:
    assert [played(cell) for cell in (MEASURED_CELL, LATE, WRONG, LOST)] == [True, True, False, False]


@pytest.mark.parametrize(
    ("code", "said", "cells", "expected"),
    [
        (0, "", [MEASURED_CELL, LATE], True),
        (1, NOTHING, [LATE, LOST], True),
        (1, NOTHING, [WRONG, LOST], False),
        (1, NOTHING, [], False),
        (1, NOTHING, [MEASURED_CELL, LATE], False),
        (1, "Traceback (most recent call last)", [LATE], False),
        (2, NOTHING, [LATE], False),
    ],
)
def test_a_sweep_ended_with_0_or_where_it_was_late_in_all_it_could_measure(
    code: int, said: str, cells: list[CellResult], expected: bool
) -> None:
    assert ended(code, said, cells) is expected
