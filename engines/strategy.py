"""How an engine keeps its KV cache and how it decodes: neutral settings, equal in both arms of a pair.

None leaves a value to the engine (or to `engine.flags`). Each adapter translates these settings into its
engine's own, or refuses what its engine cannot do; none is ever dropped in silence.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from engines.nearest import did_you_mean

ENGINE_RUNNER = ("v1", "v2")
CUDA_GRAPHS = ("none", "piecewise", "full", "full_decode_only", "full_and_piecewise")


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    """A KV cache outside the engine's own memory."""

    name: str
    """The engine's name for it."""
    chunk_tokens: int | None = None
    """Tokens it stores and finds as one piece, a multiple of the block size; None leaves it to the
    connector."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Its own settings, by its own names."""

    def __post_init__(self) -> None:
        _count("cache.connector.chunk_tokens", self.chunk_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStrategy:
    """What is kept of the keys and values, where, and how."""

    prefix_caching: bool | None = None
    """Whether blocks of earlier requests are found again."""
    block_size: int | None = None
    """Tokens of a KV block."""
    kv_dtype: str | None = None
    """Type of the stored keys and values, by the engine's name: `auto`, `fp8`, ..."""
    kv_offload_gib: float | None = None
    """Host memory that evicted blocks go to, in GiB a data-parallel rank."""
    connector: Connector | None = None
    """An external KV cache; None for none."""

    def __post_init__(self) -> None:
        _count("cache.block_size", self.block_size)
        if self.kv_offload_gib is not None and not self.kv_offload_gib > 0:
            message = (
                f"cache.kv_offload_gib is {self.kv_offload_gib!r}; it is host memory in GiB: choose more "
                "than 0, or null for no offload"
            )
            raise ValueError(message)

    @property
    def given(self) -> dict[str, Any]:
        """The settings that are not left to the engine."""
        return _given(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from `asdict`'s form."""
        connector = data.get("connector")
        return cls(**{**data, "connector": Connector(**connector) if connector else None})


@dataclass(frozen=True, slots=True, kw_only=True)
class Decode:
    """How steps are made up and executed."""

    max_num_seqs: int | None = None
    """Most requests in a step of one rank."""
    max_num_batched_tokens: int | None = None
    """Most positions computed in a step of one rank."""
    chunked_prefill: bool | None = None
    """Whether a long prompt is computed over several steps, beside decoding requests."""
    attention_backend: str | None = None
    """Attention implementation, by the engine's name."""
    cuda_graphs: str | None = None
    """What is captured: one of `CUDA_GRAPHS`."""
    async_scheduling: bool | None = None
    """Whether the next step is scheduled while the last one still runs."""
    model_runner: str | None = None
    """Which implementation of the engine executes the model: one of `ENGINE_RUNNER`."""

    def __post_init__(self) -> None:
        _count("decode.max_num_seqs", self.max_num_seqs)
        _count("decode.max_num_batched_tokens", self.max_num_batched_tokens)
        _one_of("decode.cuda_graphs", self.cuda_graphs, CUDA_GRAPHS)
        _one_of("decode.model_runner", self.model_runner, ENGINE_RUNNER)

    @property
    def given(self) -> dict[str, Any]:
        """The settings that are not left to the engine."""
        return _given(self)


def _given(values: "CacheStrategy | Decode") -> dict[str, Any]:
    found = {entry.name: getattr(values, entry.name) for entry in fields(values)}
    return {name: value for name, value in found.items() if value is not None}


def _count(key: str, value: int | None) -> None:
    if value is not None and (type(value) is not int or value < 1):
        message = f"{key} is {value!r}; it is a count: choose 1 or more, or null to leave it to the engine"
        raise ValueError(message)


def _one_of(key: str, value: str | None, known: tuple[str, ...]) -> None:
    if value is not None and value not in known:
        message = (
            f"{key} is {value!r}{did_you_mean(value, known)}; choose one of {', '.join(known)}, or null to "
            "leave it to the engine"
        )
        raise ValueError(message)
