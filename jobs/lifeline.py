"""Ending with the Ray that started this process.

A worker of Ray notices the death of its raylet late, after half a minute on a busy machine, and its engines
would hold the devices for as long.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

RAYLET = "RAY_RAYLET_PID"
"""Variable in which Ray tells its workers the process that manages them: their parent."""
POLL_SECONDS = 0.5


@contextmanager
def ends_with_raylet() -> Iterator[None]:
    """Inside, be killed within a second of the raylet's death; elsewhere than in a worker of Ray, do nothing.

    The kill is what guards and janitors wait for: they free what this process held.
    """
    parent = os.getppid()
    if os.environ.get(RAYLET) != str(parent):
        yield
        return
    over = threading.Event()

    def watch() -> None:
        while not over.wait(POLL_SECONDS):
            if os.getppid() != parent:
                os.kill(os.getpid(), signal.SIGKILL)

    watcher = threading.Thread(target=watch, name="raylet", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
