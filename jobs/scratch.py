"""A temporary folder that outlives its owner in no case: not a kill of the process, nor one of its group."""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

JANITOR = Path(__file__).with_name("janitor.py")
CLEAN_SECONDS = 30.0
"""Longest wait for the janitor at a regular end."""


@contextmanager
def scratch(prefix: str) -> Iterator[Path]:
    """Give a new folder, and have it removed at the end of the `with` or of this process."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    janitor = subprocess.Popen(
        [sys.executable, "-I", "-S", str(JANITOR), str(folder)], stdin=subprocess.PIPE, env={}
    )
    janitor.wait()  # what stays is a child of it
    assert janitor.stdin is not None
    try:
        yield folder
    finally:
        janitor.stdin.close()
        deadline = time.monotonic() + CLEAN_SECONDS
        while folder.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        shutil.rmtree(folder, ignore_errors=True)  # where somebody killed the janitor
