"""The parts of a step: they add up, and known models come back."""

from dataclasses import replace

import pytest

from engines.trace_steps import StepTimes
from jobs.profile.estimate import DRAFTS, FIXED, SPECULATION, arm_estimate, baseline_estimate
from jobs.profile.estimate import PLAIN as ESTIMATED_PLAIN
from jobs.profile.parts import (
    ATTENTION,
    DRAFTING,
    PARTS,
    PLAIN,
    REST,
    SAMPLING,
    SCHEDULER,
    VERIFICATION,
    Breakdown,
    of_arm,
    of_baseline,
)
from jobs.profile.task import EngineProfile
from jobs.profile.window import StepTime

BASELINE = StepTimes(
    steps=36,
    step_ms=10.0,
    forward_ms=5.0,
    attention_ms=2.0,
    draft_ms=0.0,
    sample_ms=0.5,
    overhead_ms=2.0,
    rest_ms=0.5,
    requests=4.0,
    positions=1.0,
    device="cpu",
)
ARM = StepTimes(
    steps=36,
    step_ms=20.0,
    forward_ms=7.0,
    attention_ms=4.0,
    draft_ms=4.0,
    sample_ms=1.0,
    overhead_ms=3.0,
    rest_ms=1.0,
    requests=4.0,
    positions=4.0,
    device="cpu",
)


def adds_up(found: Breakdown) -> bool:
    return sum(part.ms for part in found.parts) == pytest.approx(found.step_ms) and sum(
        part.share for part in found.parts
    ) == pytest.approx(1.0)


def test_the_baselines_step_has_neither_drafts_nor_verification() -> None:
    found = of_baseline(BASELINE)
    assert adds_up(found)
    assert [part.name for part in found.parts] == list(PARTS)
    assert (found.ms(PLAIN), found.ms(ATTENTION)) == (5.0, 2.0)
    assert (found.ms(VERIFICATION), found.ms(DRAFTING)) == (0.0, 0.0)


def test_verification_is_what_the_forward_takes_more_than_the_baselines() -> None:
    found = of_arm(ARM, BASELINE)
    assert adds_up(found)
    assert found.ms(VERIFICATION) == pytest.approx((7.0 + 4.0) - (5.0 + 2.0))
    assert (found.ms(PLAIN), found.ms(ATTENTION), found.ms(DRAFTING)) == (5.0, 2.0, 4.0)
    assert (found.ms(SAMPLING), found.ms(SCHEDULER), found.ms(REST)) == (1.0, 3.0, 1.0)


def test_a_forward_that_is_no_longer_than_the_baselines_still_adds_up() -> None:
    arm = replace(ARM, forward_ms=4.0, attention_ms=2.0, step_ms=15.0)
    found = of_arm(arm, BASELINE)
    assert adds_up(found)
    assert found.ms(VERIFICATION) == 0.0
    assert found.ms(PLAIN) + found.ms(ATTENTION) == pytest.approx(6.0)
    assert "1.00 ms less" in found.notes[0]


def timed(step_ms: float, context: float) -> StepTime:
    return StepTime(steps=40, step_ms=step_ms, tokens_per_step=1.0, context=context, lead_tokens=2.0)


def engine(
    k: int, *, fixed: float = 1.5, draft: float = 0.8, contexts: tuple[float, ...] = (500, 2000)
) -> EngineProfile:
    """Step times of a machine that is a straight line: 8 ms, 2 ms per thousand tokens, a cost a draft."""
    windows = tuple(
        (timed(8.0 + 0.002 * context + (fixed + draft * k if k else 0.0), context),) for context in contexts
    )
    return EngineProfile(arm=f"k{k}", label=f"k{k}", k=k, windows=windows)


def test_an_estimate_finds_a_straight_line_again() -> None:
    plain = baseline_estimate(engine(0))
    assert adds_up(plain)
    assert plain.ms(ATTENTION) == pytest.approx(1.0)
    assert plain.ms(ESTIMATED_PLAIN) == pytest.approx(8.0)
    found = arm_estimate(engine(7), engine(0), engine(3))
    assert adds_up(found)
    assert found.ms(DRAFTS) == pytest.approx(5.6)
    assert found.ms(FIXED) == pytest.approx(1.5)


def test_the_windows_and_traces_that_were_disturbed_least_count() -> None:
    traces = tuple(replace(BASELINE, step_ms=step_ms) for step_ms in (14.0, 9.9, 12.0))
    steps = tuple(timed(step_ms, 500) for step_ms in (13.0, 9.0, 9.5))
    found = replace(engine(0), windows=(steps, (timed(20.0, 2000), timed(12.0, 2000))), traces=traces)
    assert [window.step_ms for window in found.timed] == [9.0, 12.0]
    assert found.step_ms == 9.0
    assert found.traced is traces[1]
    assert found.inflation == pytest.approx(0.1)
    assert found.spread == pytest.approx(4.0 / 9.0)


def test_an_engine_without_a_profiler_has_no_inflation() -> None:
    assert engine(0).traced is None
    assert engine(0).inflation is None


def test_without_another_draft_length_the_cost_is_not_told_apart() -> None:
    found = arm_estimate(engine(7), engine(0), None)
    assert adds_up(found)
    assert found.ms(SPECULATION) == pytest.approx(7.1)


def test_noise_is_said() -> None:
    shrinking = replace(engine(0), windows=((timed(9.0, 500),), (timed(8.5, 2000),)))
    assert baseline_estimate(shrinking).ms(ATTENTION) == 0.0
    found = arm_estimate(engine(7, fixed=-2.0), engine(0), engine(3, fixed=-2.0))
    assert adds_up(found)
    assert any("-2.00 ms: noise" in note for note in found.notes)
