"""Gates on accounting: client and engine counted the same tokens and drafts."""

from collections.abc import Mapping

from engines.counters import Counters
from jobs.measures.drafts import drafts_of
from jobs.replay.data import ReplayData
from jobs.result import Gate


def identity_gates(
    data: ReplayData, metrics: Mapping[str, float | None], counters: Counters
) -> tuple[Gate, ...]:
    """Return the identities of output, prompt and computed tokens, of prompt lengths, and of drafts."""
    drafts = (_drafts(data, counters),) if counters.drafts or not counters.knows("drafts") else ()
    return (
        _identity("output", "output", metrics),
        _identity("prompt", "prompt", metrics),
        _computed(metrics),
        _prompt_lengths(data),
        *drafts,
    )


def _identity(name: str, kind: str, metrics: Mapping[str, float | None]) -> Gate:
    mine, theirs = metrics[f"tokens/client_{name}"] or 0.0, metrics[f"tokens/engine_{name}"]
    if theirs is None:
        message = f"not checked: the engine has no counter of {kind} tokens; the client counted {mine:.0f}"
        return Gate(name=f"{name}_identity", passed=None, message=message)
    message = f"the client counted {mine:.0f} {kind} tokens, the engine {theirs:.0f}"
    return Gate(
        name=f"{name}_identity", passed=mine == theirs, message=message, value=mine - theirs, limit=0.0
    )


def _computed(metrics: Mapping[str, float | None]) -> Gate:
    """Hold uncached prompt + output tokens against the engine's locally computed prompt + generated."""
    if metrics["tokens/client_computed"] is None:
        message = "not checked: usage has no cached tokens, so the client knows no computed tokens"
        return Gate(name="computed_identity", passed=None, message=message)
    return _identity("computed", "computed (uncached prompt + output)", metrics)


def _prompt_lengths(data: ReplayData) -> Gate:
    known = [request for request in data.requests if request.prompt_tokens is not None]
    wrong = [request for request in known if request.prompt_tokens != request.expected_prompt_tokens]
    message = f"{len(wrong)} of {len(known)} prompts had another length in the engine than was sent"
    if wrong:
        first = wrong[0]
        message += (
            f"; the first: {first.conversation} turn {first.turn} with {first.prompt_tokens} tokens instead "
            f"of {first.expected_prompt_tokens}"
        )
    return Gate(name="prompt_lengths", passed=not wrong, message=message, value=float(len(wrong)), limit=0.0)


def _drafts(data: ReplayData, counters: Counters) -> Gate:
    """Hold the accounts of single requests against the counters, which are summed over all ranks."""
    name = "drafts_identity"
    if not counters.knows("drafts", "draft_tokens", "accepted_tokens"):
        message = "not checked: the engine does not count drafts, or not what of them was accepted"
        return Gate(name=name, passed=None, message=message)
    mine = drafts_of(data.requests)
    if mine.unknown:
        message = (
            f"not checked: {mine.unknown} of {len(data.requests)} answers have no account of their drafts"
        )
        return Gate(name=name, passed=None, message=message)
    found = (mine.steps, mine.drafted, mine.accepted)
    counted = (counters.drafts, counters.draft_tokens, counters.accepted_tokens)
    message = (
        f"the answers tell of {found[0]} drafts with {found[1]} tokens, {found[2]} of them accepted; the "
        f"engine counted {counted[0]}, {counted[1]} and {counted[2]}"
    )
    passed = found == counted
    return Gate(name=name, passed=passed, message=message, value=float(found[2] - counted[2]), limit=0.0)
