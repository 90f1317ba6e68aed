"""What a step is made of where no profiler tells: from mean step times at two contexts and two draft lengths.

```
attention        slope of the baseline's step time in its context x context
plain            the baseline's step - attention: forward, sampling, scheduler, launches
drafts           slope of the arm's step time in its draft length K x K: drafting and verification
fixed cost       the arm's step - the baseline's - drafts: what speculation costs at any K
```
An estimate, and labelled as one wherever it is shown: it takes step times for straight lines.
"""

from collections.abc import Sequence

from jobs.profile.parts import ATTENTION, Breakdown, Part
from jobs.profile.task import EngineProfile
from jobs.profile.window import StepTime

PLAIN = "plain decode, sampling, scheduler"
DRAFTS = "drafting and verification"
FIXED = "fixed cost of speculation"
SPECULATION = "speculation, not told apart"
ESTIMATED_PARTS = (PLAIN, ATTENTION, DRAFTS, FIXED, SPECULATION)
"""In the order in which they are shown."""
LABEL = "ESTIMATE from mean step times"


def baseline_estimate(baseline: EngineProfile) -> Breakdown:
    """Return the estimated parts of the baseline's step."""
    step = baseline.timed[0].step_ms
    attention, notes = _attention(baseline.timed)
    return _breakdown(step, {PLAIN: step - attention, ATTENTION: attention}, notes)


def arm_estimate(arm: EngineProfile, baseline: EngineProfile, other: EngineProfile | None) -> Breakdown:
    """Return the estimated parts of an arm's step.

    Args:
        arm: the arm.
        baseline: its baseline, at the same batch and contexts.
        other: the arm with another draft length; None where there is none.
    """
    plain = baseline.timed[0].step_ms
    step = arm.timed[0].step_ms
    attention, _ = _attention(baseline.timed)
    parts = {PLAIN: plain - attention, ATTENTION: attention}
    notes: list[str] = []
    if other is None:
        parts[SPECULATION] = step - plain
    else:
        slope = (step - other.timed[0].step_ms) / (arm.k - other.k)
        parts[DRAFTS] = slope * arm.k
        parts[FIXED] = step - plain - slope * arm.k
        notes.append(f"drafts by the step times of K={other.k} and K={arm.k}")
    notes += [f"{name} comes out as {ms:.2f} ms: noise" for name, ms in parts.items() if ms < 0]
    return _breakdown(step, parts, notes)


def _attention(timed: Sequence[StepTime]) -> tuple[float, list[str]]:
    """Return the milliseconds of attention in the first window, and how they were found."""
    first, second = timed[:2]
    slope = (first.step_ms - second.step_ms) / (first.context - second.context)
    how = f"attention by the baseline's step times at {first.context:.0f} and {second.context:.0f} tokens"
    if slope < 0:
        return 0.0, [f"{how}, which are as long in either: it is too short to be seen, and stands as 0"]
    return min(first.step_ms, slope * first.context), [how]


def _breakdown(step: float, parts: dict[str, float], notes: Sequence[str]) -> Breakdown:
    return Breakdown(
        step_ms=step,
        parts=tuple(Part(name=name, ms=ms, share=ms / step) for name, ms in parts.items()),
        notes=tuple(notes),
    )
