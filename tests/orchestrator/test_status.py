"""A status in its file: what a reader may believe of it."""

import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from orchestrator.errors import ConfigError
from orchestrator.lock import STALE_SECONDS, Owner
from orchestrator.status import (
    FILE,
    FINISHED,
    RUNNING,
    STOPPED,
    RunningStep,
    Status,
    judged,
    read_status,
    write_status,
)

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def status(owner: Owner, **changes: object) -> Status:
    step = RunningStep(
        block=1, segment=0, node="n", devices=2, arm="tp1/none", role="opening", load="c1", seconds=3.0
    )
    made = Status(
        sweep="study-0123456789",
        state=RUNNING,
        measured=3,
        left=5,
        left_if_stopped=6,
        running=(step,),
        devices_in_use=2,
        devices_total=4,
        seconds_left=60.0,
        owner=owner,
        heartbeat=NOW.isoformat(timespec="seconds"),
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # fields by name


def test_of_a_living_driver_all_is_believed(tmp_path: Path) -> None:
    written = status(Owner.me())
    write_status(tmp_path, written)
    assert read_status(tmp_path) == written
    assert read_status(tmp_path / FILE) == written
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_a_dead_driver_of_this_machine_is_stopped_at_once(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        child = replace(Owner.me(), pid=process.pid)
        assert judged(status(child), now=NOW).state == STOPPED  # it lives, and is another with that number
        child = replace(child, started=psutil.Process(process.pid).create_time())
        assert judged(status(child), now=NOW).state == RUNNING
        process.kill()
    write_status(tmp_path, status(child))
    found = read_status(tmp_path)
    assert (found.state, found.running, found.devices_in_use, found.seconds_left) == (STOPPED, (), 0, None)
    assert (found.measured, found.left) == (3, 6), "its block measures a baseline anew"


@pytest.mark.parametrize(("silent", "state"), [(STALE_SECONDS - 1, RUNNING), (STALE_SECONDS + 1, STOPPED)])
def test_a_driver_elsewhere_is_believed_while_it_beats(silent: float, state: str) -> None:
    elsewhere = replace(Owner.me(), host="another-machine")
    found = judged(status(elsewhere), now=NOW + timedelta(seconds=silent))
    assert found.state == state


def test_what_ended_stays_as_it_ended() -> None:
    dead = replace(Owner.me(), started=0.0)
    assert judged(status(dead, state=FINISHED)).state == FINISHED


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"schema": 99}', '{"schema": 1, "running": []}'])
def test_a_damaged_status_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(ConfigError, match=r"status\.json"):
        read_status(tmp_path)


def test_a_folder_without_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="results/SWEEP"):
        read_status(tmp_path)


def test_the_file_is_plain_json(tmp_path: Path) -> None:
    write_status(tmp_path, status(Owner.me()))
    assert json.loads((tmp_path / FILE).read_text())["running"][0]["arm"] == "tp1/none"
