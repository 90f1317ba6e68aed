"""The load process' account of itself."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CHILD = "from jobs.replay.clock import SelfCheck; print(SelfCheck().peak_rss_mib)"
PARENT = f"""
import subprocess, sys
held = bytearray(300 << 20)
held[::4096] = b"x" * len(held[::4096])
print(subprocess.run([sys.executable, "-c", {CHILD!r}], capture_output=True, text=True, check=True).stdout)
"""


def test_the_peak_memory_is_the_processs_own_not_that_of_the_one_which_started_it() -> None:
    run = subprocess.run([sys.executable, "-c", PARENT], cwd=ROOT, capture_output=True, text=True, check=True)
    assert 5 < float(run.stdout) < 200
