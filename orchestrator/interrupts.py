"""Ctrl-C and SIGTERM in a driver: raised where it waits, put off where it writes."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """A signal asked the program to stop; its text says, for people, what that left."""

    def __init__(self, number: int, message: str = "") -> None:
        super().__init__(message or "interrupted; the same command goes on where it stopped")
        self.number = number

    @property
    def signal(self) -> str:
        """Name of the signal."""
        return signal.Signals(self.number).name

    @property
    def exit_code(self) -> int:
        """What the shell expects of a program that a signal ended: 130 for SIGINT, 143 for SIGTERM."""
        return 128 + self.number


class Interrupts:
    """While entered, either signal raises `Interrupted`, but not inside `held()`.

    An exception in the middle of a database transaction or a rename leaves a store that the last words of the
    sweep cannot be written to. A second signal does not wait any more: a hanging store must not hold a user.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._put_off: int | None = None
        self._latest: int = signal.SIGINT
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
        if isinstance(error, KeyboardInterrupt):
            raise self.told(error) from None

    def told(self, error: KeyboardInterrupt) -> Interrupted:
        """Return which signal `error` was: a library that waits in C raises a plain `KeyboardInterrupt`."""
        return error if isinstance(error, Interrupted) else Interrupted(self._latest)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Put a signal off until the block has ended.

        Raises:
            Interrupted: at the end of the block, when one came meanwhile.
        """
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
        if self._put_off is not None and not self._depth:
            number, self._put_off = self._put_off, None
            raise Interrupted(number)

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002  the signature of a handler
        self._latest = number
        if self._depth and self._put_off is None:
            self._put_off = number
            return
        self._put_off = None
        raise Interrupted(number)


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
