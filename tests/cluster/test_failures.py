"""Engines that fail in every way, beside one that works: each failure has its cause, and stops nobody."""

from pathlib import Path

import pytest

from jobs.result import FAILED, TREATMENT
from tests.cluster.conftest import Grid, Sweeps
from tests.cluster.leftovers import nothing_left
from tests.lateness import played

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

CAUSES = {
    1: None,
    2: ("oom_start", "out_of_memory"),
    3: ("bad_flag", "bad_flag"),
    4: ("missing_model", "missing_model"),
    5: ("port_in_use", "port_in_use"),
    6: ("wrong_config", "wrong_server"),
    7: ("hang_start", "start_timeout"),
    8: ("mid", "died"),
    9: ("oom_mid", "out_of_memory"),
    10: ("hang_mid", "hung"),
    11: ("hang_stop", None),
}
"""Draft length of an arm -> the fault it is given and the cause it has to end with; None: it is measured."""
TRIED_AGAIN = {8, 10}
"""Draft lengths of the arms whose failure may be chance: they are tried once more, in another segment."""


def faults() -> str:
    listed = (
        f"{{at: {fault[0]}, k: {k}, after_tokens: 200}}" for k, fault in CAUSES.items() if fault is not None
    )
    return f"+engine.flags.fail=[{', '.join(listed)}]"


def test_every_failure_has_its_cause_and_the_others_are_measured(tmp_path: Path, grid: Grid) -> None:
    sweeps = Sweeps(tmp_path, common=grid.words)
    with nothing_left(grid.temporary, tmp_path / "results"):
        code, said = sweeps.run(
            "-m",
            "drafter=eagle3",
            f"drafter.k={','.join(map(str, CAUSES))}",
            "load.concurrency=[1]",
            "design.blocks=1",
            "timeouts.ready=20",
            "timeouts.stall=10",
            faults(),
            timeout=600,
        )
    results = sweeps.results()
    assert sweeps.ended(code), said
    treatments = {result.k: result for result in results if result.role == TREATMENT}
    assert sorted(treatments) == sorted(CAUSES), said
    for k, fault in CAUSES.items():
        result = treatments[k]
        if fault is None or fault[1] is None:
            assert played(result), (k, result.cause, result.reason)
            continue
        assert (k, result.outcome, result.cause) == (k, FAILED, fault[1]), (result.reason, said)
        assert result.log_tail, (k, result.reason)
        assert "emulated" in result.log_tail or "Traceback" in result.log_tail, (k, result.log_tail)
    for result in results:
        if result.role != TREATMENT:
            assert played(result), (result.role, result.cause, result.reason)
    assert {k for k, result in treatments.items() if result.segment == 1} == TRIED_AGAIN
    assert {result.segment for result in results} == {0, 1}
