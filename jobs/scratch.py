"""A temporary folder that outlives its owner in no case: not a kill of the process, nor one of its group."""

import secrets
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
    """Give a new folder, and have it removed at the end of the `with` or of this process.

    The janitor makes it, once nothing that ends this process reaches the janitor: a folder that this process
    made would stay if it was killed before the janitor runs.

    Raises:
        OSError: it cannot be made.
    """
    folder = Path(tempfile.gettempdir(), f"{prefix}{secrets.token_hex(8)}")
    janitor = subprocess.Popen(
        [sys.executable, "-I", "-S", str(JANITOR), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={},
    )
    assert janitor.stdin is not None
    assert janitor.stdout is not None
    with janitor.stdout:
        said = janitor.stdout.read().decode(errors="replace")  # ends once the folder is there, or cannot be
    janitor.wait()  # what stays is a child of it
    if not folder.is_dir():
        janitor.stdin.close()
        message = f"temporary folder {folder} cannot be made ({said or 'its janitor was killed'})"
        raise OSError(message)
    try:
        yield folder
    finally:
        janitor.stdin.close()
        deadline = time.monotonic() + CLEAN_SECONDS
        while folder.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        shutil.rmtree(folder, ignore_errors=True)  # where somebody killed the janitor
