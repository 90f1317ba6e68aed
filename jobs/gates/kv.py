"""Gate on a baseline with matched KV: it got the cache that the drafter leaves, and no other."""

from engines.base import KVCapacity
from engines.spec import EngineConfig
from jobs.result import Gate

SHARE = 0.01
"""Largest difference of the two caches, as a share: vLLM rounds its figure by single tokens."""


def kv_gate(config: EngineConfig, wanted: KVCapacity, found: KVCapacity) -> Gate:
    """Return whether the engine of `config`, a baseline with matched KV, `found` what was `wanted`."""
    assert config.kv_match is not None
    drafter = config.kv_match.drafter
    message = f"{found.tokens} KV tokens; {wanted.tokens} are left beside {drafter}"
    if found.tokens is None or wanted.tokens is None:
        return Gate(name="kv_matched", passed=None, message=f"{message}: the engine does not say")
    off = abs(found.tokens - wanted.tokens) / wanted.tokens
    return Gate(name="kv_matched", passed=off <= SHARE, message=message, value=off, limit=SHARE)
