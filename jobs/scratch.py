"""A temporary folder that outlives its owner in no case: not a kill of the process, nor one of its group."""

import shutil
import subprocess
import sys
import tempfile
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
        [sys.executable, "-I", "-S", str(JANITOR), str(folder)],
        stdin=subprocess.PIPE,
        env={},
        start_new_session=True,  # Ray kills a dead worker's process group: stay out of it
    )
    assert janitor.stdin is not None
    try:
        yield folder
    finally:
        janitor.stdin.close()
        try:
            janitor.wait(CLEAN_SECONDS)
        except subprocess.TimeoutExpired:
            janitor.kill()
            janitor.wait()
        shutil.rmtree(folder, ignore_errors=True)  # where somebody killed the janitor
