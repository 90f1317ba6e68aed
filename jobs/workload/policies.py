"""Policies: what a workload's owner decides about it. Explicit keys, checked before a file is read."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from engines.nearest import did_you_mean
from jobs.errors import WorkloadError

DROP = "drop"
TRUNCATE = "truncate_oldest"
SCALE = "scale"
FITS = (DROP, TRUNCATE, SCALE)
RECORDED_OUTPUT = "recorded"
FIXED = "fixed"
OUTPUTS = (RECORDED_OUTPUT, FIXED)
NO_GAPS = "none"
RECORDED_GAPS = "recorded"
SCALED = "scaled"
GAPS = (NO_GAPS, RECORDED_GAPS, SCALED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """How conversations are chosen, fitted to the context, and timed; keys of group `workload`."""

    fit: str = DROP
    """What happens to what is longer than the model's context.

    `drop`: the conversation is left out, with the reason. `truncate_oldest`: each turn that is too long
    loses its oldest messages after the system prompt, or its oldest blocks. `scale`: all lengths of a trace
    shrink by one factor, so that the longest turn fits and all sharing is kept.
    """
    sample: float | None = None
    """Share of the conversations to use, above 0 up to 1, chosen by a hash of their ids; None for all."""
    limit: int | None = None
    """Use at most so many of those that fit, chosen by a hash of their ids; None for all."""
    max_turns: int | None = None
    """Play at most so many turns of a conversation, the first ones; None for all."""
    output: str = RECORDED_OUTPUT
    """`recorded`: each turn is pinned to the length of its recorded reply; `fixed`: to `output_tokens`."""
    output_tokens: int | None = None
    """Length of every reply in tokens, for `output=fixed`."""
    max_output_tokens: int | None = None
    """Cap of a recorded length in tokens, for `output=recorded`; None for none."""
    gaps: str = NO_GAPS
    """Pauses between a reply and the next turn: `none`, as `recorded`, or `scaled` by `gap_scale`."""
    gap_scale: float | None = None
    """Factor of the recorded pauses, for `gaps=scaled`: 0.1 plays them ten times as fast."""

    def __post_init__(self) -> None:
        for key, known in (("fit", FITS), ("output", OUTPUTS), ("gaps", GAPS)):
            value = getattr(self, key)
            if value not in known:
                guess = did_you_mean(value, known)
                message = f"workload.{key} is {value!r}{guess}; choose {', '.join(known[:-1])} or {known[-1]}"
                raise WorkloadError(message)
        for key in ("limit", "max_turns", "output_tokens", "max_output_tokens"):
            value = getattr(self, key)
            if value is not None and value < 1:
                message = f"workload.{key} is {value}; choose 1 or more, or null for no limit"
                raise WorkloadError(message)
        if self.sample is not None and not 0 < self.sample <= 1:
            message = f"workload.sample is {self.sample}; it is a share, above 0 up to 1, or null for all"
            raise WorkloadError(message)
        self._check_output()
        self._check_gaps()

    def _check_output(self) -> None:
        if self.output == FIXED and self.output_tokens is None:
            message = "workload.output=fixed needs the length: set workload.output_tokens"
            raise WorkloadError(message)
        if self.output == FIXED and self.max_output_tokens is not None:
            message = (
                "workload.max_output_tokens caps recorded lengths and workload.output=fixed uses none; "
                "set one of the two to null"
            )
            raise WorkloadError(message)
        if self.output != FIXED and self.output_tokens is not None:
            message = (
                "workload.output_tokens is the length for workload.output=fixed, but the output is "
                "'recorded'; set workload.output=fixed, or cap them with workload.max_output_tokens"
            )
            raise WorkloadError(message)

    def _check_gaps(self) -> None:
        if self.gaps == SCALED and self.gap_scale is None:
            message = "workload.gaps=scaled needs the factor: set workload.gap_scale"
            raise WorkloadError(message)
        if self.gaps != SCALED and self.gap_scale is not None:
            message = (
                f"workload.gap_scale is the factor for workload.gaps=scaled, but the gaps are {self.gaps!r}; "
                "set workload.gaps=scaled, or workload.gap_scale to null"
            )
            raise WorkloadError(message)
        if self.gap_scale is not None and not 0 < self.gap_scale < float("inf"):
            message = (
                f"workload.gap_scale is {self.gap_scale}; give a factor above 0, or set workload.gaps=none"
            )
            raise WorkloadError(message)

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Return the policies among the keys of group `workload`; a key that is missing has its default.

        Raises:
            WorkloadError: a value out of its range, or two settings that contradict each other.
        """
        names = {field.name for field in fields(cls)}
        return cls(**{key: value for key, value in settings.items() if key in names})

    def to_dict(self) -> dict[str, Any]:
        """Return every key with its value."""
        return asdict(self)

    def output_of(self, recorded: int) -> int:
        """Return the pinned length of a turn whose recorded reply has so many tokens."""
        if self.output_tokens is not None:
            return self.output_tokens
        return max(1, recorded if self.max_output_tokens is None else min(recorded, self.max_output_tokens))

    def gap_of(self, recorded: float | None) -> float | None:
        """Return the pause to play before a turn, in seconds; None for none."""
        if recorded is None or self.gaps == NO_GAPS:
            return None
        return recorded if self.gap_scale is None else recorded * self.gap_scale
