"""The janitor: makes one folder, and removes it once the program that owns it has ended, however that was.

Run as a script (`python -I -S jobs/janitor.py FOLDER`), standard library only. Its owner holds the write end
of its standard input; the end of file is the owner's end. The process that was started ends at once, and a
child of it stays: Ray's workers kill their own children as they end. Only when it is on its own does it make
the folder; it says why if it cannot, and closes its standard output, for which the owner waits. Engines below
the folder may still be on their way down at the end and write to it, so it tries again until the folder is
gone.
"""

import os
import shutil
import signal
import sys
import time
from pathlib import Path

GIVE_UP = 120.0
"""Seconds of trying after which what is left is left."""
PAUSE = 0.2
"""Seconds between two tries."""


def main() -> int:
    """Make the folder, wait for the end of standard input, and remove it; 1 if something of it is left."""
    parent = os.getpid()
    if os.fork():
        os._exit(0)
    os.setsid()
    while os.getppid() == parent:
        time.sleep(0.001)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # meant for the owner: its end is the signal for us
    folder = Path(sys.argv[1])
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        os.write(1, str(error.strerror).encode())
        return 1
    os.close(1)
    sys.stdin.buffer.read()
    deadline = time.monotonic() + GIVE_UP
    while True:
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return 0
        if time.monotonic() > deadline:
            return 1
        time.sleep(PAUSE)


if __name__ == "__main__":
    sys.exit(main())
