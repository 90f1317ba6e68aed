"""Ctrl-C and SIGTERM: raised where the driver waits, put off where it writes."""

import os
import signal

import pytest

from orchestrator.interrupts import SIGNALS, Interrupted, Interrupts, handlers_kept

pytestmark = pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)


def test_a_signal_outside_a_hold_is_raised_at_once(number: signal.Signals) -> None:
    with Interrupts(), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), number)


def test_a_hold_ends_before_its_signal_is_raised(number: signal.Signals) -> None:
    written = []

    def write(interrupts: Interrupts) -> None:
        with interrupts.held():
            with interrupts.held():
                os.kill(os.getpid(), number)
                written.append("inner")
            written.append("outer")
        written.append("never")

    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt):
            write(interrupts)
        with interrupts.held():
            written.append("after")
    assert written == ["inner", "outer", "after"]


def test_a_second_signal_does_not_wait(number: signal.Signals) -> None:
    written = []

    def write(interrupts: Interrupts) -> None:
        with interrupts.held():
            os.kill(os.getpid(), number)
            written.append("one signal")
            os.kill(os.getpid(), number)
            written.append("two signals")

    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt):
            write(interrupts)
        with interrupts.held():
            written.append("after")
    assert written == ["one signal", "after"]


def test_an_error_inside_a_hold_is_not_hidden(number: signal.Signals) -> None:
    def fail(interrupts: Interrupts) -> None:
        with interrupts.held():
            os.kill(os.getpid(), number)
            raise ZeroDivisionError

    def write(interrupts: Interrupts) -> None:
        with interrupts.held():
            pass

    with Interrupts() as interrupts:
        with pytest.raises(ZeroDivisionError):
            fail(interrupts)
        with pytest.raises(KeyboardInterrupt):
            write(interrupts)


def test_a_signal_that_a_library_turned_into_another_exception_keeps_its_number(
    number: signal.Signals,
) -> None:
    def wait_in_a_library() -> None:
        try:
            os.kill(os.getpid(), number)
        except Interrupted:
            raise KeyboardInterrupt from None

    with pytest.raises(Interrupted) as caught, Interrupts():
        wait_in_a_library()
    assert caught.value.exit_code == 128 + number


def test_the_former_handlers_come_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with Interrupts():
        assert signal.getsignal(number) != before
        with handlers_kept():
            signal.signal(number, signal.SIG_IGN)
        assert signal.getsignal(number) not in (before, signal.SIG_IGN)
    assert signal.getsignal(number) == before
