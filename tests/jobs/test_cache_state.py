from collections.abc import Iterator
from itertools import count

import pytest

from jobs.cache_state import CachePlan, FreshEngineNeededError, make_cold


class Clock:
    """Time that passes only by waiting."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Iterator[Clock]:
    return Clock()  # type: ignore[return-value]  # pytest takes a plain value


def test_a_reset_is_tried_again_while_blocks_are_held(clock: Clock) -> None:
    answers = iter([False, False, True])
    state = make_cold(
        CachePlan(), reset=lambda: next(answers), salt="s", fresh=False, clock=clock, sleep=clock.sleep
    )
    assert (state.state, state.how, state.salt, state.reset_tries) == ("cold", "reset", "s", 3)
    assert state.seconds == pytest.approx(1.0)


def test_after_the_deadline_a_salt_has_to_do(clock: Clock) -> None:
    tries = count()
    state = make_cold(
        CachePlan(reset_seconds=2.0),
        reset=lambda: next(tries) < 0,
        salt="s",
        fresh=False,
        clock=clock,
        sleep=clock.sleep,
    )
    assert (state.how, state.reset_tries) == ("salt", 5)
    assert state.seconds == pytest.approx(2.0)


def test_without_a_reset_the_salt_is_enough(clock: Clock) -> None:
    state = make_cold(CachePlan(), reset=None, salt="s", fresh=False, clock=clock, sleep=clock.sleep)
    assert (state.how, state.reset_tries, state.seconds) == ("salt", 0, 0.0)


def test_without_either_the_engine_has_to_be_fresh(clock: Clock) -> None:
    state = make_cold(CachePlan(), reset=None, salt=None, fresh=True, clock=clock, sleep=clock.sleep)
    assert (state.how, state.salt) == ("fresh_engine", None)
    with pytest.raises(FreshEngineNeededError, match="cannot empty it"):
        make_cold(CachePlan(), reset=None, salt=None, fresh=False, clock=clock, sleep=clock.sleep)
    with pytest.raises(FreshEngineNeededError, match="did not confirm a reset in 2 s"):
        make_cold(
            CachePlan(reset_seconds=2.0),
            reset=lambda: False,
            salt=None,
            fresh=False,
            clock=clock,
            sleep=clock.sleep,
        )


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"state": "warm"}, "cache.state"),
        ({"prime": "most"}, "cache.prime"),
        ({"prime": 0}, "cache.prime"),
        ({"prime": True}, "cache.prime"),
        ({"expect": "some"}, "cache.expect"),
        ({"reset_seconds": float("nan")}, "cache.reset_seconds"),
    ],
)
def test_a_bad_plan_names_its_key(settings: dict[str, object], key: str) -> None:
    with pytest.raises(ValueError, match=key):
        CachePlan(**settings)  # type: ignore[arg-type]  # wrong on purpose
