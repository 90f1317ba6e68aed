"""The gate on the prefix cache: it was in the stated state, by what the engine reports of first turns."""

from jobs.cache_bounds import FirstTurns
from jobs.cache_state import FRESH_ENGINE, OFF, PRIMED, RESET, SALT, CacheState
from jobs.result import Gate

_HOW = {
    RESET: "the cache was emptied, as the engine confirmed",
    SALT: "the requests carried a cache salt nobody used before",
    FRESH_ENGINE: "the engine was fresh",
    OFF: "the engine keeps no prefix cache",
}


def cache_gate(cache: CacheState, turns: FirstTurns | None) -> Gate:
    """Return the gate `cold_cache`, or `primed_cache` where a primed one was asked for.

    Every first turn has to have met what it could and had to meet, by the order of sending; a primed cache
    has to have been proven warm besides.
    """
    name = "primed_cache" if cache.state == PRIMED else "cold_cache"
    told = _HOW[cache.how]
    proof = cache.proof
    if cache.state == PRIMED:
        if proof is None or proof.cached is None:
            message = (
                f"{told} and primed with {cache.primed_tokens} tokens; it cannot be proven warm, as the "
                "engine does not report cached tokens or its block size"
            )
            return Gate(name=name, passed=False, message=message)
        told += (
            f" and primed with {cache.primed_tokens} tokens in {cache.primed_prompts} prompts; asked again, "
            f"{proof.requests} of them met {proof.cached} tokens of {proof.expected} expected"
        )
        if proof.short:
            message = f"{told}, {proof.short} of them too few: the prefix is not kept (KV cache too small?)"
            return Gate(
                name=name,
                passed=False,
                message=message,
                value=float(proof.cached),
                limit=float(proof.expected),
            )
    if turns is None or turns.cached is None:
        absent = "the KV block size" if turns is None else "cached tokens in usage"
        message = f"{told}; not checked further, as the engine does not report {absent}"
        return Gate(name=name, passed=None, message=message)
    expected = f"{turns.least}" if turns.least == turns.most else f"{turns.least} to {turns.most}"
    message = (
        f"{told}; {turns.requests} {turns.what} met {turns.cached} tokens in it, and by the order of sending "
        f"{expected} were expected"
    )
    if turns.loose:
        message += f" (no least: {turns.loose})"
    if turns.above or turns.below:
        message += (
            f"; {turns.above} met more than they could, {turns.below} less than they had to: {turns.worst}"
        )
    return Gate(
        name=name,
        passed=not turns.above and not turns.below,
        message=message,
        value=float(turns.cached),
        limit=float(turns.most),
    )
