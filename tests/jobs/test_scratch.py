"""A temporary folder is gone after every ending of its owner."""

import os
import signal
import subprocess
import sys
import time
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


def test_it_is_gone_after_its_owners_process_group_was_killed(tmp_path: Path) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
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
