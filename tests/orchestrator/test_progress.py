"""Lines and `status.json` while reports come in."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.result import FAILED, INFEASIBLE
from jobs.task import CellReport, EngineReport, GpusHeld
from jobs.workload.tokens import TokenWorkload
from orchestrator.errors import SweepFailedError
from orchestrator.pace import Pace
from orchestrator.pending import Segment, block_task, pending
from orchestrator.plan import Plan
from orchestrator.progress import Progress
from orchestrator.secrecy import MASK
from orchestrator.standing import BlockEnded, PoolNote, PoolSnapshot
from orchestrator.status import FILE, FINISHED, RUNNING, STOPPED, Status, read_status
from tests.orchestrator.conftest import Recorded, outcomes

WORKLOAD = TokenWorkload(name="w", conversations=(), validity="synthetic", tokenizer="none")
POOL = PoolSnapshot(running=(), waiting=2, devices_in_use=0, devices_held=0, devices_total=4)


@pytest.fixture
def segments(small_plan: Plan) -> list[Segment]:
    return pending(small_plan, [])


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def recorded(small_plan: Plan) -> Recorded:
    return Recorded(small_plan)


@pytest.fixture
def progress(small_plan: Plan, tmp_path: Path, lines: list[str], recorded: Recorded) -> Progress:
    return Progress(small_plan, tmp_path, count=recorded.count, pace=Pace(), say=lines.append)


def record(progress: Progress, recorded: Recorded, reports: list[CellReport]) -> None:
    """Record and report cells, as a driver does."""
    for report in reports:
        recorded.take(report.result)
        progress.report(report)


def cells(plan: Plan, segments: list[Segment]) -> list[CellReport]:
    return [CellReport(result=result) for segment in segments for result in outcomes(plan, segment)]


def test_a_line_an_event(
    small_plan: Plan, segments: list[Segment], progress: Progress, lines: list[str]
) -> None:
    reports = cells(small_plan, segments)
    failed = replace(
        reports[1].result, outcome=FAILED, cause="hung", reason="token=abcdefghijkl sent nothing"
    )
    with progress, progress.watching(lambda: POOL):
        progress.expect(segments)
        progress.report(EngineReport(run="b0-s0-00", label="tp1/none", ready=True, seconds=2.04))
        progress.report(reports[0])
        progress.report(EngineReport(run="b0-s0-01", label="x", ready=False, seconds=9.0, message="no\nmore"))
        progress.report(CellReport(result=failed))
        progress.report(PoolNote(message="block 1 waits for a node"))
        held = GpusHeld(block=0, segment=0, devices=("0", "3"), message="900 MiB are held")
        progress.report(held)
        progress.report(CellReport(result=replace(reports[2].result, cell="x", outcome=INFEASIBLE)))
    assert lines == [
        "engine b0-s0-00: ready in 2.0 s",
        "[1/16] block 0 opening tp1/none c1: measured",
        "engine b0-s0-01: failed: no",
        f"[2/16] block 0 opening tp1/none c4: failed (hung: token={MASK} sent nothing)",
        "block 1 waits for a node",
        "GPUs 0, 3 are set aside: 900 MiB are held",
    ]


def test_the_status_is_written_while_it_runs_and_says_how_it_ended(
    small_plan: Plan, segments: list[Segment], tmp_path: Path, lines: list[str], recorded: Recorded
) -> None:
    shown: list[Status] = []
    seen = threading.Event()

    def show(status: Status) -> None:
        shown.append(status)
        if status.measured == 1:
            seen.set()

    reports = cells(small_plan, segments)
    made = Progress(small_plan, tmp_path, count=recorded.count, pace=Pace(), say=lines.append, show=show)
    with made as progress:
        with progress.watching(lambda: POOL):
            progress.expect(segments)
            record(progress, recorded, reports[:1])
            assert seen.wait(30)
            first = read_status(tmp_path)
            assert (first.state, first.left, first.waiting, first.devices_total) == (RUNNING, 15, 2, 4)
        record(progress, recorded, reports[1:])
    last = read_status(tmp_path)
    assert (last.state, last.measured, last.left) == (FINISHED, 16, 0)
    assert shown[-1] == last


@pytest.mark.parametrize(
    ("done", "error", "state"),
    [
        (16, None, FINISHED),
        (16, SweepFailedError("nothing was measured"), FINISHED),
        (16, KeyboardInterrupt(), STOPPED),  # its report is not written
        (3, None, STOPPED),  # the budget is spent
        (3, KeyboardInterrupt(), STOPPED),
    ],
)
def test_how_a_run_ends(
    small_plan: Plan,
    segments: list[Segment],
    progress: Progress,
    recorded: Recorded,
    tmp_path: Path,
    done: int,
    error: BaseException | None,
    state: str,
) -> None:
    try:
        with progress:
            progress.expect(segments)
            record(progress, recorded, cells(small_plan, segments)[:done])
            if error is not None:
                raise error
    except (SweepFailedError, KeyboardInterrupt):
        pass
    found = read_status(tmp_path)
    left = sum(segment.cells for segment in pending(small_plan, list(recorded.results.values())))
    assert (found.state, found.left) == (state, left)


def test_a_lost_block_is_told_of_and_its_cells_stay_left(
    small_plan: Plan, segments: list[Segment], progress: Progress, lines: list[str], tmp_path: Path
) -> None:
    with progress:
        progress.expect(segments)
        task = block_task(small_plan, segments[0], WORKLOAD, engine_cores=1, load_cores=1)
        ended = BlockEnded(
            segment=segments[0], task=task, seconds=1.0, cause="node_lost", error="node n left"
        )
        progress.report(ended)
    assert lines == ["block 0: node n left"]
    assert read_status(tmp_path).left == 16
    assert read_status(tmp_path).notes == ("block 0: node n left",)


def test_a_status_that_cannot_be_written_is_said_once_and_stops_nothing(
    small_plan: Plan, segments: list[Segment], progress: Progress, lines: list[str], tmp_path: Path
) -> None:
    (tmp_path / f".{FILE}.part").mkdir()
    with progress:
        progress.expect(segments)
        for report in cells(small_plan, segments)[:2]:
            progress.report(report)
    said = [line for line in lines if "status cannot be written" in line]
    assert len(said) == 1
    assert len(lines) == 3
