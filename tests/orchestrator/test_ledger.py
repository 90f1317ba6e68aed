"""The ledger: atomic, one writer, and honest about what it cannot read."""

import json
from pathlib import Path

import pytest

from orchestrator.errors import LedgerError
from orchestrator.ledger import Ledger
from orchestrator.pending import pending
from orchestrator.plan import Plan
from tests.orchestrator.conftest import outcomes


def test_a_cell_comes_back_as_it_was_recorded(tmp_path: Path, small_plan: Plan) -> None:
    result = outcomes(small_plan, pending(small_plan, [])[0])[0]
    with Ledger(tmp_path, small_plan) as ledger:
        folder = ledger.record(result, {"requests.parquet": b"rows"})
        assert (folder / "requests.parquet").read_bytes() == b"rows"
        assert ledger.results() == [result]
    with Ledger(tmp_path, small_plan) as again:
        assert again.results() == [result]


def test_what_a_kill_left_half_written_is_no_result(tmp_path: Path, small_plan: Plan) -> None:
    with Ledger(tmp_path, small_plan) as ledger:
        half = ledger.directory / "cells" / ".tmp-x"
        half.mkdir()
        (half / "result.json").write_text("{")
    with Ledger(tmp_path, small_plan) as ledger:
        assert ledger.results() == []
        assert not half.exists()


def test_a_damaged_result_is_named(tmp_path: Path, small_plan: Plan) -> None:
    result = outcomes(small_plan, pending(small_plan, [])[0])[0]
    with Ledger(tmp_path, small_plan) as ledger:
        path = ledger.record(result, {}) / "result.json"
        path.write_text(path.read_text()[:100])
        with pytest.raises(LedgerError, match=r"result\.json cannot be read"):
            ledger.results()


def test_the_second_driver_is_refused(tmp_path: Path, small_plan: Plan) -> None:
    with Ledger(tmp_path, small_plan), pytest.raises(LedgerError, match="is being run by process"):
        Ledger(tmp_path, small_plan).__enter__()
    with Ledger(tmp_path, small_plan):  # and the lock is free again
        pass


def test_a_folder_of_another_plan_is_refused(tmp_path: Path, small_plan: Plan) -> None:
    with Ledger(tmp_path, small_plan) as ledger:
        path = ledger.directory / "plan.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "digest": "0" * 64}))
    with pytest.raises(LedgerError, match="belongs to another sweep"):
        Ledger(tmp_path, small_plan).__enter__()


def test_a_retried_cell_keeps_its_earlier_outcome_beside_it(tmp_path: Path, small_plan: Plan) -> None:
    result = outcomes(small_plan, pending(small_plan, [])[0])[0]
    with Ledger(tmp_path, small_plan) as ledger:
        ledger.record(result, {"mark": b"first"})
        ledger.record(result, {"mark": b"second"})
        earlier = list((ledger.directory / "cells").glob(".earlier-*/mark"))
        assert [path.read_bytes() for path in earlier] == [b"first"]
        assert len(ledger.results()) == 1


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, small_plan: Plan) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(LedgerError, match="cannot be written"):
        Ledger(blocked, small_plan).__enter__()
