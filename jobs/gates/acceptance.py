"""The gate on forced acceptance: what was asked for came out."""

import math
from collections.abc import Mapping

from engines.acceptance import Acceptance
from engines.counters import Counters
from jobs.result import Gate

ACCEPTANCE_ERRORS = 4.0
"""Standard errors by which a realised mean acceptance length may miss the requested one by chance."""
ACCEPTANCE_SHARE = 0.02
"""Share by which it may miss besides: answers end within a draft, and engines pad the last one."""


def acceptance_gate(counters: Counters, metrics: Mapping[str, float | None], acceptance: Acceptance) -> Gate:
    """Return the gate on realised against requested mean acceptance length."""
    name = "synthetic_acceptance"
    requested, realised = metrics["spec/requested_mal"], metrics["spec/mal"]
    if not counters.drafts or requested is None or realised is None:
        message = f"acceptance {acceptance.label} was asked for and nothing was drafted"
        return Gate(name=name, passed=False, message=message, value=realised)
    limit = acceptance_tolerance(acceptance, len(counters.accepted_per_position), counters.drafts)
    limit += ACCEPTANCE_SHARE * requested
    message = (
        f"mean acceptance length is {realised:.3f} over {counters.drafts} drafts; {requested:.3f} was "
        f"asked for, allowed difference {limit:.3f}"
    )
    passed = abs(realised - requested) <= limit
    return Gate(name=name, passed=passed, message=message, value=realised - requested, limit=limit)


def acceptance_tolerance(acceptance: Acceptance, k: int, drafts: int) -> float:
    """Return the chance error allowed on a mean acceptance length: so many standard errors of the mean.

    The number X of accepted drafts has P(X >= i) = rates[i], so E[X] is their sum, and E[X^2] the sum of
    (2i - 1) rates[i].
    """
    rates = acceptance.rates(k)
    mean = sum(rates)
    square = sum((2 * position - 1) * rate for position, rate in enumerate(rates, start=1))
    return ACCEPTANCE_ERRORS * math.sqrt(max(0.0, square - mean**2) / drafts)
