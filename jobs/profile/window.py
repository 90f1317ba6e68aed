"""Windows of decode steps: how long a step takes while a fixed number of requests is held."""

import time
from dataclasses import dataclass

from engines.counters import Counters
from jobs.errors import ProfileError
from jobs.fleet import Fleet
from jobs.nouns import counted
from jobs.profile.hold import Hold

POLL_SECONDS = 0.25
"""Pause between looks at the counters: every look costs the engine a little."""
NEEDED = ("first_tokens", "generation_tokens", "step_intervals", "step_seconds", "running")
"""Counters without which steps cannot be timed."""
LOOKS = 8
"""Looks in a row at requests that began and run no more: some engines refresh what runs every few steps."""
QUIET_SECONDS = 10.0
"""Longest wait for an engine to give up the requests of a hold that has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """Steps of one window as the engine's own counters tell them."""

    steps: float
    """Decode steps of the window, a mean over requests."""
    step_ms: float
    """Mean step interval in ms: what a request waits from one of its output steps to the next."""
    tokens_per_step: float
    """Mean output tokens of a request and step; 1 without a drafter."""
    context: float
    """Mean KV length of a request in tokens, over the window."""
    lead_tokens: float
    """Tokens each request had, on average, when the window began: others were still in prefill."""


class Window:
    """One window on a hold: opened once every request decodes, closed after so many steps.

    It is made before the hold begins: what the counters say then is what first tokens are counted from.
    """

    def __init__(self, fleet: Fleet, *, requests: int, prompt: int, patience: float) -> None:
        self._fleet = fleet
        self._requests = requests
        self._prompt = prompt
        self._patience = patience
        self._before = fleet.counters()
        if not self._before.knows(*NEEDED):
            message = (
                f"the server of {fleet.config.label} does not tell how long its steps take "
                f"({', '.join(sorted(self._before.absent & set(NEEDED)))}): it cannot be profiled"
            )
            raise ProfileError(message)
        self._opened: Counters | None = None

    def open(self, hold: Hold) -> None:
        """Wait until every request of a hold is in decode.

        Raises:
            ProfileError: they do not all fit into the batch or the KV cache, were refused, or have ended.
            EngineError: the engine is gone.
        """
        deadline = time.monotonic() + self._patience
        gone = 0
        while True:
            now = self._look(hold)
            started = now.since(self._before).first_tokens
            if started >= self._requests and now.running >= self._requests:
                self._opened = now
                return
            gone = gone + 1 if started >= self._requests and not now.waiting else 0
            if gone == LOOKS:
                raise self._ended(now)
            if time.monotonic() > deadline:
                message = (
                    f"{now.running} of {counted(self._requests, 'request')} run and {now.waiting} wait after "
                    f"{self._patience:.0f} s: the batch or the KV cache of {self._fleet.config.label} does "
                    "not hold so many at this context; choose a smaller --concurrency or --context"
                )
                raise ProfileError(message)
            time.sleep(POLL_SECONDS)

    def wait(self, hold: Hold, steps: int) -> StepTime:
        """Wait until the window has so many steps, and return what it shows.

        Raises:
            ProfileError: a request ended before.
            EngineError: the engine is gone.
        """
        opened = self._opened
        assert opened is not None, "open comes first"
        deadline = time.monotonic() + self._patience
        pause = POLL_SECONDS
        while True:
            time.sleep(pause)
            now = self._look(hold)
            passed = now.since(opened)
            made = passed.step_intervals / self._requests
            if now.running < self._requests:
                raise self._ended(now)
            if made >= steps:
                return self._shown(opened, passed)
            if time.monotonic() > deadline:
                told = f"{made:.0f} of {counted(steps, 'step')} came in {self._patience:.0f} s"
                message = f"{told}; choose fewer --steps"
                raise ProfileError(message)
            pause = _pause(made, steps, passed.time)

    def _ended(self, now: Counters) -> ProfileError:
        gone = self._requests - now.running
        message = (
            f"{gone} of {counted(self._requests, 'request')} ended, or were thrown out of the KV cache of "
            f"{self._fleet.config.label}, before its steps were timed; choose a smaller --concurrency or "
            "--context, or fewer --steps"
        )
        return ProfileError(message)

    def _shown(self, opened: Counters, passed: Counters) -> StepTime:
        lead = opened.since(self._before).generation_tokens / self._requests
        grown = passed.generation_tokens / self._requests
        return StepTime(
            steps=passed.step_intervals / self._requests,
            step_ms=1000.0 * passed.step_seconds / passed.step_intervals,
            tokens_per_step=passed.generation_tokens / passed.step_intervals,
            context=self._prompt + lead + grown / 2,
            lead_tokens=lead,
        )

    def _look(self, hold: Hold) -> Counters:
        self._fleet.check()
        hold.check()
        return self._fleet.counters()


def quiet(fleet: Fleet) -> None:
    """Wait until the engine has given up the requests of a hold that has ended."""
    deadline = time.monotonic() + QUIET_SECONDS
    while fleet.counters().running and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)


def _pause(made: float, steps: int, seconds: float) -> float:
    """Return how long the steps that are missing will take at the pace so far, within limits."""
    if not made:
        return POLL_SECONDS
    return min(30.0, max(POLL_SECONDS, (steps - made) * seconds / made))
