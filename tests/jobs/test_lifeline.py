"""A process that runs blocks ends with the one that Ray named as its manager."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from jobs.lifeline import RAYLET, ends_with_raylet

ROOT = Path(__file__).parents[2]
WORKER = """
import os, time
from jobs.lifeline import RAYLET, ends_with_raylet
os.environ[RAYLET] = str(os.getppid())
with ends_with_raylet():
    print(os.getpid(), flush=True)
    time.sleep(600)
"""
MANAGER = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", sys.argv[1]])
time.sleep(600)
"""


def test_a_worker_ends_with_its_raylet() -> None:
    manager = subprocess.Popen(
        [sys.executable, "-c", MANAGER, WORKER], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    with manager:
        assert manager.stdout is not None
        worker = psutil.Process(int(manager.stdout.readline()))
        manager.kill()
        worker.wait(timeout=15)


def test_elsewhere_nothing_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RAYLET, str(os.getpid()))
    with ends_with_raylet():
        assert "raylet" not in {thread.name for thread in threading.enumerate()}
