"""Where a step of real vLLM on the CPU goes: the baseline's, and one with a draft model."""

from array import array
from dataclasses import replace
from pathlib import Path

import pytest

from engines.spec import Drafter, EngineConfig
from jobs.profile.parts import (
    ATTENTION,
    DRAFTING,
    MOST_REST,
    PLAIN,
    REST,
    SAMPLING,
    SCHEDULER,
    VERIFICATION,
    of_arm,
    of_baseline,
)
from jobs.profile.runner import ProfileRunner, can_trace
from jobs.profile.task import EngineProfile, ProfileFailed, ProfileTask

pytestmark = [pytest.mark.real_engine, pytest.mark.timeout(900)]

REQUESTS, CONTEXT, STEPS, K = 4, 400, 24, 3


def test_a_steps_time_is_told_apart(tiny: EngineConfig, tiny_models: Path) -> None:
    arm = replace(tiny, drafter=Drafter(method="draft_model", k=K, model=str(tiny_models / "draft60")))
    assert can_trace(tiny)
    task = ProfileTask(
        configs=(tiny, arm),
        prompts=tuple(
            array("I", (20 + (7 * at + number) % 400 for at in range(CONTEXT))) for number in range(REQUESTS)
        ),
        contexts=(CONTEXT,),
        steps=STEPS,
        repeats=2,
        traced=True,
        devices=1,
        engine_cores=1,
        load_cores=1,
        resource="engine_slot",
        seed=0,
        ready_seconds=300.0,
        stop_seconds=30.0,
        patience=120.0,
    )
    reports = list(ProfileRunner().run(task))
    assert not [report for report in reports if isinstance(report, ProfileFailed)], reports
    plain, speculative = (report for report in reports if isinstance(report, EngineProfile))
    assert plain.traced is not None
    assert speculative.traced is not None
    assert (plain.traced.requests, plain.traced.positions) == (REQUESTS, 1.0)
    assert (speculative.traced.requests, speculative.traced.positions) == (REQUESTS, K + 1.0)
    # a server that lags behind its engine merges outputs
    assert plain.timed[0].tokens_per_step == pytest.approx(1.0, abs=0.1)
    assert 1.7 < speculative.timed[0].tokens_per_step < 2.7  # the drafter agrees 60 % of the time: 2.18
    assert abs(speculative.timed[0].context - CONTEXT) < 0.25 * CONTEXT
    assert len(plain.windows[0]) == len(plain.traces) == 2
    for profile, breakdown in (
        (plain, of_baseline(plain.traced)),
        (speculative, of_arm(speculative.traced, plain.traced)),
    ):
        assert profile.traced is not None
        assert profile.traced.steps >= STEPS - 6
        assert sum(part.ms for part in breakdown.parts) == pytest.approx(breakdown.step_ms)
        assert breakdown.ms(REST) / breakdown.step_ms <= MOST_REST
        for name in (PLAIN, ATTENTION, SAMPLING, SCHEDULER):
            assert breakdown.ms(name) > 0, name
    assert of_baseline(plain.traced).ms(DRAFTING) == 0.0
    found = of_arm(speculative.traced, plain.traced)
    assert found.ms(DRAFTING) > found.ms(SAMPLING)
    # Two engines, one after the other: on a busy machine the baseline's forward can have been the slower one.
    unseen = any("too small to be seen" in note for note in found.notes)
    assert (found.ms(VERIFICATION) == 0.0) is unseen
    assert found.ms(VERIFICATION) >= 0
