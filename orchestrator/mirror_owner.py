"""Who writes a sweep's copy at a results URL: a lock for machines that share nothing but that URL.

A URL knows no file locks, and the clocks of two machines need not agree. So the owner renews a small file,
and who comes later watches it: one that does not change for long enough belongs to a driver that is gone.
"""

import json
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict

from orchestrator.errors import LedgerError
from orchestrator.lock import Owner
from orchestrator.mirror_files import OWNER
from orchestrator.remote import RemoteFolder

HEARTBEAT_SECONDS = 10.0
SILENT_SECONDS = 45.0
"""An owner that has not renewed its file for so long is taken for dead."""
_POLL_SECONDS = 1.0


class MirrorOwner:
    """This process as the owner of one folder at a URL."""

    def __init__(
        self,
        remote: RemoteFolder,
        *,
        say: Callable[[str], None],
        take_over: bool = False,
        silent_seconds: float = SILENT_SECONDS,
    ) -> None:
        self.lost = False
        """Whether another driver took over: nothing may be written any more."""
        self._remote = remote
        self._say = say
        self._take_over = take_over
        self._silent = silent_seconds
        self._id = uuid.uuid4().hex
        self._me = Owner.me()
        self._beats = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="mirror-owner", daemon=True)

    def take(self) -> None:
        """Become the owner.

        Raises:
            LedgerError: another driver lives.
        """
        before = self._read()
        if before is not None and not self._take_over and not self._is_gone(before):
            self._watch(before)
        self._write()
        self._thread.start()

    def _beat(self) -> None:
        while not self.lost and not self._end.wait(HEARTBEAT_SECONDS):
            self._renew()

    def _renew(self) -> None:
        """Write the file anew; a store that fails is tried again at the next beat."""
        try:
            found = self._read()
            if found is not None and found.get("id") != self._id:
                self.lost = True
                self._say(
                    f"another driver ({_name(found)}) took over {self._remote.url}: nothing more is copied"
                )
                return
            self._write()
        except Exception:  # noqa: BLE001 - every back end has its own errors; the copying itself reports them
            return

    def release(self) -> None:
        """Give the ownership back."""
        self._end.set()
        self._thread.join()
        if self.lost:
            return
        try:
            self._remote.remove(OWNER)
        except Exception:  # noqa: BLE001 - as above; who comes next waits until the file is old
            return

    def _watch(self, before: dict[str, object]) -> None:
        self._say(
            f"{self._remote.url} was last written by {_name(before)}, which did not say that it ended; "
            f"watching for {self._silent:.0f} s whether it still lives"
        )
        deadline = time.monotonic() + self._silent
        while time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
            found = self._read()
            if found is None:
                return
            if found != before:
                message = (
                    f"this sweep is being run into {self._remote.url} by {_name(found)}; wait for it, or "
                    "stop it first (`specload stop`). --take-over takes the folder away from it"
                )
                raise LedgerError(message)

    def _is_gone(self, before: dict[str, object]) -> bool:
        """Whether the owner was a process of this machine that has ended, or an earlier sweep of this one."""
        owner = Owner.from_dict(before.get("owner"))
        if owner is None or not owner.here:
            return False
        return owner.pid == self._me.pid or not owner.lives()

    def _read(self) -> dict[str, object] | None:
        content = self._remote.read(OWNER)
        if content is None:
            return None
        try:
            found = json.loads(content)
        except ValueError:
            return None
        return found if isinstance(found, dict) else None

    def _write(self) -> None:
        self._beats += 1
        content = {"id": self._id, "beats": self._beats, "owner": asdict(self._me)}
        self._remote.write(OWNER, json.dumps(content).encode())


def _name(content: dict[str, object]) -> str:
    return str(Owner.from_dict(content.get("owner")) or "an unknown process")
