"""A status for people, on a terminal and in a pipe."""

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from orchestrator.live import screen, span, status_view
from orchestrator.lock import Owner
from orchestrator.status import FINISHED, RUNNING, STOPPED, PairSoFar, RunningStep, Status

STEPS = (
    RunningStep(
        block=3,
        segment=0,
        node="10.0.0.4",
        devices=2,
        arm="tp2/eagle3-k3",
        role="treatment",
        load="c16",
        seconds=80.0,
    ),
    RunningStep(
        block=4, segment=1, node="10.0.0.5", devices=2, arm="tp2/none", role="opening", load="", seconds=9.0
    ),
    RunningStep(block=5, segment=0, node="", devices=1, arm="", role="", load="", seconds=1.0),
)
STATUS = Status(
    sweep="study-0123456789",
    state=RUNNING,
    measured=34,
    invalid=2,
    failed=1,
    causes={"cache_state": 2, "hung": 1},
    left=59,
    running=STEPS,
    waiting=3,
    resource="GPU",
    devices_in_use=5,
    devices_held=1,
    devices_total=10,
    seconds=4320.0,
    seconds_left=2400.0,
    pairs=(PairSoFar(arm="tp2/eagle3-k3", load="c16", block=2, ratio=1.321, blocks=3, mean=1.298),),
    notes=("block 6 waits: no node has 8 GPU [8]",),
    owner=Owner.me(),
    heartbeat="2026-03-01T12:00:00+00:00",
)


def text(status: Status, *, go_on: str = "") -> list[str]:
    console = Console(file=io.StringIO(), width=160)
    console.print(status_view(status, go_on=go_on))
    assert isinstance(console.file, io.StringIO)
    return [re.sub(r"[ │]+", " ", line).strip() for line in console.file.getvalue().splitlines()]


def test_everything_is_said() -> None:
    lines = text(STATUS)
    assert lines[0] == "study-0123456789: running for 1 h 12 min, about 40 min left"
    assert lines[1] == (
        "37 of 96 cells: 34 measured, 2 invalid, 1 failed, 0 infeasible, 59 left (cache_state 2, hung 1)"
    )
    assert lines[2] == "5 of 10 GPU in use, 1 set aside; 3 blocks running, 3 waiting"
    assert "3 10.0.0.4 2 tp2/eagle3-k3 c16 1 min 20 s" in lines
    assert "4 10.0.0.5 2 tp2/none (opening) engine starts 9 s" in lines
    assert "5 1 starts or stops 1 s" in lines
    assert lines[-2].startswith(
        "pair tp2/eagle3-k3 c16: 1.32 x the baseline's total throughput in block 2; 1.30"
    )
    assert lines[-2].endswith("(preliminary)")
    assert lines[-1] == "note: block 6 waits: no node has 8 GPU [8]"


def test_one_that_stopped_says_how_to_go_on() -> None:
    stopped = replace(STATUS, state=STOPPED, running=(), waiting=0, devices_total=0, pairs=(), notes=())
    assert text(stopped, go_on="specload sweep --from results/x")[0] == (
        "study-0123456789: stopped; 59 cells left; go on with: specload sweep --from results/x"
    )
    assert text(replace(stopped, state=FINISHED, left=0))[0].endswith("finished; every cell has its outcome")


def test_a_rest_that_nobody_knows_is_not_guessed() -> None:
    assert text(replace(STATUS, seconds_left=None))[0].endswith("time left unknown")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "0 s"),
        (59.6, "1 min"),
        (200, "3 min 20 s"),
        (3600, "1 h"),
        (4320, "1 h 12 min"),
        (183_600, "2 d 3 h"),
        (-5, "0 s"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert span(seconds) == words


def test_a_pipe_gets_lines_only() -> None:
    out = io.StringIO()
    with screen(Console(file=out, width=100)) as (say, show):
        say("block 1: [bold]no markup[/]")
        assert show is None
    assert out.getvalue() == "block 1: [bold]no markup[/]\n"


def test_a_terminal_gets_lines_above_a_display_that_goes_away() -> None:
    out = io.StringIO()
    console = Console(file=out, width=100, force_terminal=True, color_system=None)
    with screen(console) as (say, show):
        assert show is not None
        show(STATUS)
        say("engine b0 is ready")
        show(replace(STATUS, measured=35, left=58))
    printed = out.getvalue()
    assert "34 measured" in printed
    assert "35 measured" in printed
    assert printed.index("34 measured") < printed.index("engine b0 is ready") < printed.index("35 measured")
    assert printed.rstrip().endswith("\x1b[2K") or "\x1b[1A" in printed[printed.index("35 measured") :]
