"""Content digests and the seeds derived from them.

Identity is SHA-256 of canonical JSON everywhere (arms, cells, workloads, sweeps): `hash()` changes from one
process to the next and must never decide an order, a seed or a name.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any


def canonical_json(value: Any) -> str:
    """Return the one JSON text of `value`: sorted keys, no spaces, dataclasses as objects, no NaN."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_plain
    )


def digest(value: Any) -> str:
    """Return the 64 hex digits of SHA-256 over `canonical_json(value)`, halves of pairs in texts included."""
    return hashlib.sha256(canonical_json(value).encode(errors="surrogatepass")).hexdigest()


def seed_of(*parts: Any) -> int:
    """Return a 63-bit seed that depends on nothing but `parts`."""
    return int(digest(list(parts))[:16], 16) >> 1


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    message = f"{type(value).__name__} has no canonical JSON"
    raise TypeError(message)
