"""What a caller holds of an engine that is ready, whether we started it or somebody else did."""

from collections.abc import Mapping
from typing import Any, Protocol

from engines.base import Server
from engines.process import StopReport


class Running(Protocol):
    """A ready engine: `engines/launch.py` starts one, `engines/attach.py` finds one."""

    @property
    def server(self) -> Server:
        """The server as its adapter sees it."""

    @property
    def start_seconds(self) -> float:
        """Seconds until it was ready, a first completion included."""

    @property
    def resolved(self) -> Mapping[str, Any]:
        """Its own resolved configuration as flat keys; empty where it tells none."""

    def check(self) -> None:
        """Raise `EngineDiedError` if its process has ended."""

    def check_service(self) -> None:
        """Raise `EngineDiedError` or `EngineHungError` unless it serves."""

    def log_tail(self) -> str:
        """Return the last lines of its log; empty where we have none."""

    def stop(self, grace: float) -> StopReport:
        """Let go of it."""
