"""What a step of an arm is made of: its own trace against that of its baseline, at one batch and context.

```
plain decode            baseline's forward at one position, without its attention
attention               baseline's attention
verification overhead   arm's forward and attention at K + 1 positions - the baseline's at one
drafting                the drafter
sampling                sampling, or verification of drafts
scheduler and launches  scheduler, input preparation, bookkeeping, time in which nothing is computed
rest                    what no rule attributes
```
The parts add up to the arm's step. The baseline's own step has no drafting and no verification overhead.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from engines.trace_steps import StepTimes

PLAIN = "plain decode"
ATTENTION = "attention"
VERIFICATION = "verification overhead"
DRAFTING = "drafting"
SAMPLING = "sampling"
SCHEDULER = "scheduler and launches"
REST = "rest"
PARTS = (PLAIN, ATTENTION, VERIFICATION, DRAFTING, SAMPLING, SCHEDULER, REST)
"""In the order in which they are shown."""

MOST_REST = 0.15
"""Share of a step that may stay unattributed."""
MOST_INFLATION = 0.10
"""By how much a profiled step may differ from one that is not, as a share of the latter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a step."""

    name: str
    ms: float
    """Milliseconds of a mean step."""
    share: float
    """Share of the step, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """A step and its parts."""

    step_ms: float
    parts: tuple[Part, ...]
    """They add up to the step."""
    notes: tuple[str, ...] = ()
    """What a reader must know."""

    def ms(self, name: str) -> float:
        """Return a part's milliseconds; 0 where there is none of that name."""
        return sum(part.ms for part in self.parts if part.name == name)


def of_baseline(baseline: StepTimes) -> Breakdown:
    """Return the parts of the baseline's step."""
    return _breakdown(baseline.forward_ms, baseline.attention_ms, 0.0, baseline, ())


def of_arm(arm: StepTimes, baseline: StepTimes) -> Breakdown:
    """Return the parts of an arm's step, whose baseline was traced at the same batch and context."""
    plain, attention = baseline.forward_ms, baseline.attention_ms
    target = arm.forward_ms + arm.attention_ms
    extra = target - plain - attention
    notes: list[str] = []
    if extra < 0:
        notes.append(
            f"the target's forward took {-extra:.2f} ms less than the baseline's: its verification overhead "
            "is too small to be seen beside the noise, and stands as 0"
        )
        scale = target / (plain + attention)
        plain, attention, extra = plain * scale, attention * scale, 0.0
    return _breakdown(plain, attention, extra, arm, notes)


def _breakdown(
    plain: float, attention: float, extra: float, step: StepTimes, notes: Sequence[str]
) -> Breakdown:
    times = {
        PLAIN: plain,
        ATTENTION: attention,
        VERIFICATION: extra,
        DRAFTING: step.draft_ms,
        SAMPLING: step.sample_ms,
        SCHEDULER: step.overhead_ms,
        REST: step.rest_ms,
    }
    parts = tuple(Part(name=name, ms=ms, share=ms / step.step_ms) for name, ms in times.items())
    return Breakdown(step_ms=step.step_ms, parts=parts, notes=tuple(notes))
