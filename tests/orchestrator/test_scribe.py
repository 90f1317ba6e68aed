"""Writing results down while the disk fails."""

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.result import FAILED, TREATMENT, CellResult
from jobs.task import CellReport
from orchestrator import scribe
from orchestrator.errors import LedgerError, ResultsWriteError
from orchestrator.interrupts import Interrupts
from orchestrator.ledger import Ledger
from orchestrator.pending import pending
from orchestrator.plan import Plan
from orchestrator.scribe import Scribe
from orchestrator.tracking import NullRecorder
from tests.orchestrator.conftest import outcomes

BIG = {"requests.parquet": bytes(1 << 20)}


def cells(plan: Plan) -> list[CellResult]:
    return [result for segment in pending(plan, []) for result in outcomes(plan, segment)]


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond `size` bytes: a write fails as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_ends_in_one_paragraph_and_nothing_half_written(
    tmp_path: Path, small_plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scribe, "DELAYS", (0.0, 0.0))
    said: list[str] = []
    first, second = cells(small_plan)[:2]
    with Ledger(tmp_path, small_plan) as ledger:
        writer = Scribe(ledger, NullRecorder(), Interrupts(), said.append)
        writer.cell(CellReport(result=first))
        with largest_file(1 << 16), pytest.raises(ResultsWriteError) as caught:
            writer.cell(CellReport(result=second, files=BIG))
        assert "after 3 tries" in str(caught.value)
        assert "what is recorded stays (1 cell: 1 measured)" in str(caught.value)
        assert "the same command goes on" in str(caught.value)
        assert isinstance(caught.value, LedgerError)
        assert caught.value.exit_code == 2
        assert len(said) == 2
        assert [path.name for path in (ledger.directory / "cells").iterdir()] == [first.cell]
    with Ledger(tmp_path, small_plan) as ledger:
        assert ledger.aside == []
        assert [result.cell for result in ledger.results()] == [first.cell]


def test_room_that_is_made_in_time_saves_the_cell(
    tmp_path: Path, small_plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = largest_file(1 << 16)
    monkeypatch.setattr(scribe, "DELAYS", (0.0, 0.0))
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        limits.__exit__(None, None, None)  # somebody empties the disk once it is said

    with Ledger(tmp_path, small_plan) as ledger:
        limits.__enter__()
        result = Scribe(ledger, NullRecorder(), Interrupts(), say).cell(
            CellReport(result=cells(small_plan)[0], files=BIG)
        )
        assert ledger.results() == [result]
    assert len(said) == 1
    assert "cannot be written (File too large)" in said[0]


def test_a_cell_that_was_tried_again_says_so(tmp_path: Path, small_plan: Plan) -> None:
    first = next(result for result in cells(small_plan) if result.role == TREATMENT)
    second = replace(first, cell="again", segment=1)
    with Ledger(tmp_path, small_plan) as ledger:
        writer = Scribe(ledger, NullRecorder(), Interrupts(), lambda line: None)
        writer.cell(CellReport(result=replace(first, outcome=FAILED, cause="hung")))
        writer.cell(CellReport(result=second))
        (result,) = ledger.results()
    assert result.caveats == ("an earlier try of this cell failed (hung) in segment 0",)
