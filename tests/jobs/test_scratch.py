"""A temporary folder is gone after every ending of its owner."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from jobs.scratch import scratch

ROOT = Path(__file__).parents[2]
OWNER = """
import os, sys, time
from jobs.scratch import scratch
with scratch("specload-test-") as folder:
    (folder / "sub").mkdir()
    (folder / "sub" / "file").write_text("x")
    print(folder, flush=True)
    time.sleep(600)
"""


def test_it_is_gone_after_a_regular_end_and_after_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with scratch("specload-test-") as folder:
        assert folder.parent == tmp_path
        (folder / "file").write_text("x")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(KeyError), scratch("specload-test-"):
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with (
        pytest.raises(OSError, match=r"none/specload-test-\w+ cannot be made \(No such file"),
        scratch("specload-test-"),
    ):
        pass


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.02, 0.03, 0.05, 0.08])
def test_nothing_is_left_of_an_owner_that_is_killed_while_its_janitor_starts(
    tmp_path: Path, seconds: float
) -> None:
    owner = start_owner(tmp_path)
    with owner:
        process = psutil.Process(owner.pid)
        while not (children := process.children()):
            assert owner.poll() is None
        time.sleep(seconds)
        for child in [*children, *process.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                child.kill()
        os.killpg(owner.pid, signal.SIGKILL)
    deadline = time.monotonic() + 15
    while list(tmp_path.iterdir()):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def start_owner(temporary: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", OWNER],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_it_is_gone_after_its_owners_process_group_was_killed(tmp_path: Path) -> None:
    owner = start_owner(tmp_path)
    with owner:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        assert (folder / "sub" / "file").exists()
        for child in psutil.Process(owner.pid).children():
            child.kill()  # as a worker of Ray does when it ends
        os.killpg(owner.pid, signal.SIGKILL)
    deadline = time.monotonic() + 15
    while folder.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
