"""Fault injection: the ways in which an emulated engine fails when told to, for tests of what follows."""

import socket
import subprocess
import sys
from dataclasses import dataclass

from engines.emulator.memory import OutOfMemoryError
from engines.errors import EngineConfigError

FAILURES = (
    "start",
    "oom_start",
    "bad_flag",
    "missing_model",
    "port_in_use",
    "wrong_config",
    "hang_start",
    "mid",
    "oom_mid",
    "hang_mid",
    "hang_stop",
)
DEAF = """
import signal, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
time.sleep(86400)
"""
"""A process that only SIGKILL ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """How this engine is to fail."""

    at: str
    """Instead of a server: `start` gives a traceback, `oom_start` runs out of memory, `bad_flag` refuses the
    command line, `missing_model` finds no model, `port_in_use` finds its port taken.
    With a server: `wrong_config` serves another configuration than the ordered one, `hang_start` listens and
    is never healthy.
    In mid-stream: `mid` gives a traceback, `oom_mid` runs out of memory, `hang_mid` sends nothing any more.
    At its end: `hang_stop` ignores every signal but SIGKILL, as a child in a session of its own does."""
    k: int | None = None
    """Only an engine with this draft length fails; None for every one. So arms of one sweep can fail in
    different ways, beside baselines that work."""
    after_tokens: int = 100
    """Generated tokens after which those in mid-stream strike."""

    def __post_init__(self) -> None:
        if self.at not in FAILURES:
            message = f"at is {self.at!r}; the emulator fails at {', '.join(FAILURES)}"
            raise ValueError(message)
        if self.k is not None and (type(self.k) is not int or self.k < 0):
            message = f"k is {self.k!r}; it is a draft length: choose 0 or more"
            raise ValueError(message)
        if type(self.after_tokens) is not int or self.after_tokens < 0:
            message = f"after_tokens is {self.after_tokens!r}; it is a count: choose 0 or more"
            raise ValueError(message)


def strike_at_start(fail: Failure, host: str, port: int) -> socket.socket | None:
    """Fail before the server comes up, if `fail` says so.

    Returns:
        The socket that has taken the port, which its caller has to hold; None for every other failure.

    Raises:
        RuntimeError: at `start`.
        OutOfMemoryError: at `oom_start`.
        EngineConfigError: at `bad_flag` and `missing_model`.
    """
    if fail.at == "start":
        message = "injected failure at start"
        raise RuntimeError(message)
    if fail.at == "oom_start":
        message = "out of memory: injected at start"
        raise OutOfMemoryError(message)
    if fail.at in ("bad_flag", "missing_model"):
        what = "an unknown flag" if fail.at == "bad_flag" else "an unknown model"
        message = f"{what}, injected at start"
        raise EngineConfigError(message)
    if fail.at == "hang_stop":
        subprocess.Popen([sys.executable, "-I", "-S", "-c", DEAF], start_new_session=True)
    return socket.create_server((host, port)) if fail.at == "port_in_use" else None


def strike_in_mid_stream(fail: Failure, generated: int) -> bool:
    """Fail after so many `generated` tokens, if `fail` says so; True when nothing is to be sent any more.

    Raises:
        RuntimeError: at `mid`.
        OutOfMemoryError: at `oom_mid`.
    """
    if generated < fail.after_tokens:
        return False
    if fail.at == "mid":
        message = f"injected failure after {generated} generated tokens"
        raise RuntimeError(message)
    if fail.at == "oom_mid":
        message = f"out of memory: injected after {generated} generated tokens"
        raise OutOfMemoryError(message)
    return fail.at == "hang_mid"
