"""Ctrl-C and SIGTERM in a driver: raised where it waits, put off where it writes."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """While entered, either signal raises `KeyboardInterrupt`, but not inside `held()`.

    An exception in the middle of a database transaction or a rename leaves a store that the last words of the
    sweep cannot be written to. A second signal does not wait any more: a hanging store must not hold a user.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._put_off = False
        self._former: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # Python handles signals nowhere else
            self._former = {number: signal.signal(number, self._handle) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Put a signal off until the block has ended.

        Raises:
            KeyboardInterrupt: at the end of the block, when one came meanwhile.
        """
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
        if self._put_off and not self._depth:
            self._put_off = False
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002  the signature of a handler
        if self._depth and not self._put_off:
            self._put_off = True
            return
        self._put_off = False
        raise KeyboardInterrupt


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Put back the handlers that the block replaces: `ray.init` installs one for SIGTERM that aborts."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
