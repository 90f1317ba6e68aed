"""The mirror of a sweep's folder at a results URL, kept by a thread that follows the local folder.

The local folder is what the ledger writes and trusts; the mirror only copies, so that a sweep can go on from
another machine, and its results can be fetched, after the driver's disk is gone. A cell's folder appears
whole by a rename, so a new folder is a finished cell. Nothing here ever fails a sweep: a copy that does not
succeed is said once, tried again at the next pass, and a last time at the end.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Self

from jobs.nouns import counted
from orchestrator.mirror_files import in_order, replaced, restore, snapshot
from orchestrator.mirror_owner import MirrorOwner
from orchestrator.remote import RemoteFolder
from orchestrator.results_root import ResultsRoot
from orchestrator.secrecy import redacted

log = logging.getLogger(__name__)

INTERVAL_SECONDS = 2.0
"""From one look at the local folder to the next: what a lost machine can cost, beside the cells in flight."""
CLOSE_SECONDS = 60.0
"""How long the last pass goes on trying when the store fails."""
RETRY_SECONDS = 15.0
"""After a failure the store is left alone for so long."""


def mirrored(
    root: ResultsRoot, sweep: str, *, say: Callable[[str], None], take_over: bool = False
) -> AbstractContextManager[object]:
    """Return what keeps the sweep's copy while it is entered; nothing for results in a folder."""
    if root.url is None:
        return nullcontext()
    return Mirror(root.url, root.folder / sweep, say=say, take_over=take_over)


class Mirror:
    """While entered, keeps `<url>/<sweep>` like the local folder of the sweep."""

    def __init__(
        self,
        url: str,
        folder: Path,
        *,
        say: Callable[[str], None],
        take_over: bool = False,
        interval: float = INTERVAL_SECONDS,
    ) -> None:
        self.folder = folder
        self.remote = RemoteFolder.at(url).child(folder.name)
        self._say = say
        self._owner = MirrorOwner(self.remote, say=say, take_over=take_over)
        self._interval = interval
        self._copied: dict[str, tuple[int, int]] = {}
        """Relative path -> (size, modification time) of what the mirror has."""
        self._failed = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="mirror", daemon=True)

    def __enter__(self) -> Self:
        """Make sure that nobody else writes there, bring what is there, and begin to follow.

        Raises:
            LedgerError: a living driver elsewhere runs this sweep into the same URL.
            ConfigError: the URL cannot be read.
        """
        self._owner.take()
        restored = restore(self.remote, self.folder)
        if restored:
            self._say(f"{counted(restored, 'file')} of this sweep brought back from {self.remote.url}")
        remote = self.remote.files()
        self._copied = {
            name: stamp for name, stamp in snapshot(self.folder).items() if remote.get(name) == stamp[0]
        }
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        deadline = time.monotonic() + CLOSE_SECONDS
        while not self._pass() and not self._owner.lost:
            if time.monotonic() > deadline:
                self._say(
                    f"{self.remote.url} lacks files of this sweep; they are in {self.folder}, and the same "
                    "command again copies them"
                )
                break
            time.sleep(1.0)
        self._owner.release()

    def _follow(self) -> None:
        pause = self._interval
        while not self._stop.wait(pause):
            pause = self._interval if self._pass() else RETRY_SECONDS

    def _pass(self) -> bool:
        """Copy what is new or changed; False when something could not be copied."""
        if self._owner.lost:
            return True
        try:
            present = snapshot(self.folder)
            changed = [name for name, stamp in present.items() if self._copied.get(name) != stamp]
            for name in in_order(changed):
                try:
                    self.remote.put(self.folder / name, name)
                except FileNotFoundError:
                    if (self.folder / name).exists():
                        raise  # it is the store that is missing something
                    continue  # renamed or removed meanwhile: the next pass sees the new state
                self._copied[name] = present[name]
            for name in replaced(self._copied, present):
                self.remote.remove(name)
                del self._copied[name]
        except Exception as error:  # noqa: BLE001 - every back end has its own errors, and none may end a sweep
            if not self._failed:
                log.warning(
                    "results cannot be copied to %s (%s); the sweep goes on, and the copy catches up",
                    self.remote.url,
                    redacted(str(error) or type(error).__name__),
                )
            self._failed = True
            return False
        if self._failed:
            log.warning("results are copied to %s again", self.remote.url)
        self._failed = False
        return True
