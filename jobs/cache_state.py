"""The state of the prefix cache before a replay: a machine that ends cold or primed, and says how.

```
unknown --reset confirmed--> cold                        (tried again while requests hold blocks)
unknown --salt nobody used--> cold                       (where no reset is there, or confirmed in time)
unknown --fresh engine--> cold                           (where there is neither; the caller starts one)
unknown --engine without a prefix cache--> cold          (for good: nothing is ever found again)
cold --prefix replayed--> primed, unproven --asked again, cached as expected--> primed
```
The replay itself is judged afterwards, by `jobs/cache_bounds.py`: what the machine did is no proof.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from engines.nearest import did_you_mean
from jobs.errors import JobError

COLD = "cold"
PRIMED = "primed"
STATES = (COLD, PRIMED)
RESET = "reset"
SALT = "salt"
FRESH_ENGINE = "fresh_engine"
OFF = "off"
PREFIX = "prefix"
FIRST_TURNS = "first_turns"
ALL = "all"
PRIMES = (PREFIX, FIRST_TURNS, ALL)
EXACT = "exact"
AT_MOST = "at_most"
EXPECTATIONS = (EXACT, AT_MOST)
PAUSE_SECONDS = 0.5


class FreshEngineNeededError(JobError):
    """The cache of this engine can be neither emptied nor set apart; the cell needs an engine of its own."""

    cause = "cache_not_cold"


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePlan:
    """The cache state that a sweep asks for."""

    state: str = COLD
    """One of `STATES`."""
    prime: str | int = PREFIX
    """What is replayed to prime it: the prefix all first turns share, first-turn prompts, all prompts, or so
    many tokens of each first-turn prompt."""
    expect: str = EXACT
    """`exact`: first turns have to meet what the order of sending decides. `at_most`: no more than that, for
    models of which engines keep less than whole prefixes (sliding windows, recurrent state)."""
    reset_seconds: float = 30.0
    """How long a reset is tried before a salt or a fresh engine has to do."""

    def __post_init__(self) -> None:
        if self.state not in STATES:
            guess = did_you_mean(self.state, STATES)
            message = f"cache.state is {self.state!r}{guess}; choose one of {', '.join(STATES)}"
            raise ValueError(message)
        if self.expect not in EXPECTATIONS:
            guess = did_you_mean(self.expect, EXPECTATIONS)
            message = f"cache.expect is {self.expect!r}{guess}; choose one of {', '.join(EXPECTATIONS)}"
            raise ValueError(message)
        tokens = self.prime if type(self.prime) is int else None
        if self.prime not in PRIMES and (tokens is None or tokens < 1):
            message = (
                f"cache.prime is {self.prime!r}{did_you_mean(self.prime, PRIMES)}; choose one of "
                f"{', '.join(PRIMES)}, or a number of tokens above 0"
            )
            raise ValueError(message)
        if not self.reset_seconds >= 0:
            message = f"cache.reset_seconds is {self.reset_seconds!r}; it is in seconds: choose 0 or more"
            raise ValueError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Primed prompts asked again."""

    requests: int
    expected: int
    """Tokens of them that a warm cache serves."""
    cached: int | None
    """Tokens that the engine reports; None where usage does not say."""
    short: int
    """Requests that got fewer than expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheState:
    """The state that was reached, and how."""

    state: str
    how: str
    """`reset`, `salt`, `fresh_engine`, or `off` where the engine keeps nothing."""
    salt: str | None
    """Salt of the cell's requests, the epoch to be appended; None where the engine has no salts."""
    reset_tries: int = 0
    """Resets that were asked for."""
    seconds: float = 0.0
    """Time it took to make it cold."""
    primed_prompts: int = 0
    """Prompts that each replica was primed with."""
    primed_tokens: int = 0
    """Tokens of them."""
    proof: Proof | None = None
    """None for a cold cache."""


def make_cold(
    plan: CachePlan,
    *,
    reset: Callable[[], bool] | None,
    salt: str | None,
    fresh: bool,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> CacheState:
    """Make the cache cold and say how.

    Args:
        plan: What is asked for.
        reset: Empties every replica's cache, True when all confirmed; None where the engine cannot.
        salt: A salt nobody used before; None where the engine has no salts.
        fresh: Whether this engine has not seen the workload yet.
        clock: Seconds.
        sleep: Waits so many seconds.

    Raises:
        FreshEngineNeededError: no reset was confirmed, there are no salts, and the engine is not fresh.
    """
    begun = clock()
    tries = 0
    if reset is not None:
        while True:
            tries += 1
            if reset():
                return CacheState(
                    state=COLD, how=RESET, salt=salt, reset_tries=tries, seconds=clock() - begun
                )
            if clock() - begun >= plan.reset_seconds:
                break
            sleep(PAUSE_SECONDS)
    if salt is None and not fresh:
        told = f"did not confirm a reset in {clock() - begun:.0f} s" if tries else "cannot empty it"
        message = (
            f"the engine's prefix cache may hold the workload: it {told}, and knows no cache salt. The cell "
            "needs a fresh engine"
        )
        raise FreshEngineNeededError(message)
    how = SALT if salt is not None else FRESH_ENGINE
    return CacheState(state=COLD, how=how, salt=salt, reset_tries=tries, seconds=clock() - begun)
