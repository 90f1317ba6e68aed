"""Who counted the tokens of an AIPerf run: its own tokenizer, or the server in its usage.

AIPerf's own rates count what its tokenizer makes of the texts. A text does not tell its tokens: the prompt's
template is not in it, and an answer cut into pieces may be spelt with fewer or more of them. So the server's
counts are taken where every answered request has them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analysis.others.values import inner, known, number, positive

_APART = 0.02
"""Share from which on two counts are said to differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Tokens of the answered requests."""

    prompt: float | None
    """Cached ones too; None where not told."""
    output: float | None
    cached: float | None
    """Prompt tokens from the cache; None where the server tells none."""
    counted_prompt: float | None
    """The same prompts as the client's tokenizer counts them."""
    counted_output: float | None
    served: bool
    """Whether `prompt` and `output` are the server's counts."""

    @property
    def total(self) -> float | None:
        """Prompts and answers together."""
        return None if self.prompt is None or self.output is None else self.prompt + self.output

    @property
    def counted_total(self) -> float | None:
        """The same by the client's tokenizer."""
        if self.counted_prompt is None or self.counted_output is None:
            return None
        return self.counted_prompt + self.counted_output

    @property
    def caveats(self) -> tuple[str, ...]:
        """What has to be said where the two counts differ."""
        own, server = self.counted_output, self.output
        if not self.served or not own or not server or abs(own / server - 1.0) <= _APART:
            return ()
        told = (
            f"AIPerf's tokenizer and the server's usage count output tokens more than {_APART:.0%} apart: "
            "rates and speeds here are by the server's, unlike AIPerf's own"
        )
        return (told,)


def tokens_of(document: Mapping[str, Any]) -> Tokens:
    """Return the tokens of an export, the server's where it told them of every answered request."""
    answered = number(inner(document, "request_count", "avg"))
    told = [number(inner(document, f"usage_{part}_tokens", "count")) for part in ("prompt", "completion")]
    served = positive(answered) is not None and all(count == answered for count in told)
    prompt, output = (_total(document, name) for name in ("isl", "osl"))
    cached = _total(document, "usage_prompt_cache_read_tokens")
    if not served:
        return Tokens(
            prompt=prompt,
            output=output,
            cached=cached,
            counted_prompt=prompt,
            counted_output=output,
            served=False,
        )
    return Tokens(
        prompt=_total(document, "usage_prompt_tokens"),
        output=_total(document, "usage_completion_tokens"),
        cached=cached,
        counted_prompt=prompt,
        counted_output=output,
        served=True,
    )


def speculation(document: Mapping[str, Any]) -> dict[str, float]:
    """Return what the server told of its drafts, over all answered requests."""
    steps = positive(_total(document, "spec_decode_steps"))
    drafted = number(inner(document, "spec_decode_draft_tokens", "sum"))
    accepted = number(inner(document, "spec_decode_accepted_draft_tokens", "sum"))
    metrics: dict[str, float | None] = {
        "spec/mal": positive(inner(document, "spec_decode_token_weighted_acceptance_length", "avg")),
        "spec/drafts": steps,
    }
    if drafted and accepted is not None:
        metrics["spec/acceptance_rate"] = accepted / drafted
    histogram = document.get("pooled_spec_decode_acceptance_histogram")
    if isinstance(histogram, Mapping) and steps:
        counts = {int(length): number(count) or 0.0 for length, count in histogram.items()}
        for place in range(1, max(draft_length(document), *counts, 0) + 1):
            reached = sum(count for length, count in counts.items() if length >= place)
            metrics[f"spec/acceptance_pos_{place}"] = reached / steps
    return known(metrics)


def draft_length(document: Mapping[str, Any]) -> int:
    """Return the draft length where every step drafted as many tokens; 0 where that is not told."""
    steps = positive(_total(document, "spec_decode_steps"))
    drafted = number(inner(document, "spec_decode_draft_tokens", "sum"))
    if steps is None or drafted is None or drafted % steps:
        return 0
    return int(drafted / steps)


def _total(document: Mapping[str, Any], name: str) -> float | None:
    return number(inner(document, f"total_{name}", "avg"))
