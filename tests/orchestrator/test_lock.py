"""The driver's lock: one writer, on this machine or another, and a way past a dead one."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from orchestrator.errors import LockedError, LockLostError
from orchestrator.ledger import Ledger
from orchestrator.lock import LOCK, STALE_SECONDS, DriverLock, Owner
from orchestrator.pending import pending
from orchestrator.plan import Plan
from tests.orchestrator.conftest import outcomes

HOLD = """
import sys, time
from pathlib import Path
from orchestrator.lock import DriverLock
with DriverLock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that holds the lock."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def elsewhere(folder: Path, *, silent: float) -> None:
    """Leave the lock of a driver on another machine, which gave its last sign of life so long ago."""
    path = folder / LOCK
    path.write_text(json.dumps(asdict(replace(Owner.me(), host="node-7", pid=42))))
    then = time.time() - silent
    os.utime(path, (then, then))


def test_the_second_driver_is_refused_and_told_who_and_since_when(
    tmp_path: Path, holder: "subprocess.Popen[str]"
) -> None:
    for take_over in (False, True):
        with pytest.raises(LockedError, match=rf"is being run by process {holder.pid} on .*, since 20\d\d-"):
            DriverLock(tmp_path, take_over=take_over).__enter__()


def test_a_killed_driver_leaves_no_lock(tmp_path: Path, holder: "subprocess.Popen[str]") -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert json.loads((tmp_path / LOCK).read_text())["pid"] == holder.pid
    with DriverLock(tmp_path) as lock:
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()
        lock.check()
    assert (tmp_path / LOCK).read_bytes() == b"", "a clean ending leaves no owner"


def test_a_stopped_driver_that_is_alive_here_is_never_taken_over(
    tmp_path: Path, holder: "subprocess.Popen[str]"
) -> None:
    """SIGSTOP: it gives no sign of life, but it is there and would go on writing."""
    holder.send_signal(signal.SIGSTOP)
    old = time.time() - 10 * STALE_SECONDS
    os.utime(tmp_path / LOCK, (old, old))
    with pytest.raises(LockedError, match="is being run by process"):
        DriverLock(tmp_path, take_over=True).__enter__()


def test_a_driver_elsewhere_that_gave_a_sign_of_life_is_not_taken_over(tmp_path: Path) -> None:
    elsewhere(tmp_path, silent=STALE_SECONDS / 2)
    for take_over in (False, True):
        with pytest.raises(
            LockedError, match=r"process 42 on node-7.*last sign of life \d+ s ago.*--take-over"
        ):
            DriverLock(tmp_path, take_over=take_over).__enter__()


def test_a_silent_driver_elsewhere_is_taken_over_only_when_asked(tmp_path: Path) -> None:
    elsewhere(tmp_path, silent=STALE_SECONDS * 2)
    with pytest.raises(LockedError, match=r"node-7.*silent for 18\d s.*--take-over"):
        DriverLock(tmp_path).__enter__()
    with DriverLock(tmp_path, take_over=True) as lock:
        lock.check()


def test_a_driver_whose_lock_was_taken_stops_writing_at_once(tmp_path: Path, small_plan: Plan) -> None:
    first, second = outcomes(small_plan, pending(small_plan, [])[0])[:2]
    with Ledger(tmp_path, small_plan) as ledger:
        ledger.record(first, {})
        # What a driver on a machine without the first one's flock does: a lock file of its own.
        taken = ledger.directory / "theirs"
        taken.write_text(json.dumps(asdict(replace(Owner.me(), host="node-8"))))
        taken.replace(ledger.directory / LOCK)
        with pytest.raises(LockLostError, match=r"another driver has taken over .*node-8"):
            ledger.record(second, {})
        with pytest.raises(LockLostError):
            ledger.record_engine("run", {"log": b""})
    assert [path.name for path in (ledger.directory / "cells").iterdir()] == [first.cell]
    assert "node-8" in (ledger.directory / LOCK).read_text(), "the loser leaves the winner's lock alone"


def test_a_number_that_another_process_has_now_is_not_the_owner(tmp_path: Path) -> None:
    path = tmp_path / LOCK
    path.write_text(json.dumps(asdict(replace(Owner.me(), started=Owner.me().started - 3600))))
    with DriverLock(tmp_path):
        pass
