"""What an emulated engine is told: the checked form of an `EngineConfig`, and its flags.

Flags that vLLM has too carry vLLM's names. The others (`gpu`, `time_scale`, `kv_tokens`, `noise`, `cost`,
`fail`) exist here only.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self, TypeVar

from engines.emulator.drafters import check_drafter
from engines.emulator.faults import Failure
from engines.emulator.hardware import GPUS
from engines.emulator.models import ARCHITECTURES
from engines.emulator.noise import NoiseLevels
from engines.errors import EngineConfigError
from engines.nearest import did_you_mean
from engines.spec import EngineConfig

COSTS = ("roofline", "table")
_FLAG_OF: Mapping[str, str] = {
    "cache.prefix_caching": "enable_prefix_caching",
    "cache.block_size": "block_size",
    "decode.max_num_seqs": "max_num_seqs",
    "decode.max_num_batched_tokens": "max_num_batched_tokens",
}
"""Neutral setting -> flag."""
_Nested = TypeVar("_Nested", "NoiseLevels", "Failure")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """`EngineConfig.flags` of the emulator, with its defaults."""

    gpu: str = "h100"
    """Emulated GPU (`hardware.GPUS`)."""
    time_scale: float = 1.0
    """Real seconds a modelled second takes; 0.2 emulates hardware that is five times as fast. Nothing is
    scaled back: what the engine and a client report is what they really saw."""
    max_num_seqs: int = 256
    """Most requests in a batch."""
    max_num_batched_tokens: int = 2048
    """Most positions computed in a step; longer prompts are computed in chunks."""
    block_size: int = 16
    """Tokens of a KV block, and the grain of prefix-cache hits."""
    gpu_memory_utilization: float = 0.92
    """Share of the device memory the engine may fill."""
    kv_tokens: int | None = None
    """KV-cache tokens of one rank; None derives them from memory, weights and drafter."""
    enable_prefix_caching: bool = True
    cost: str = "roofline"
    """Step-time model: `roofline` of the named GPU and model, or `table`, the published H100 coefficients."""
    noise: NoiseLevels = field(default_factory=NoiseLevels)
    fail: tuple[Failure, ...] = ()
    """Fault injection: a mapping, or a list of mappings for several draft lengths; empty for an engine that
    works."""

    @classmethod
    def of(cls, flags: Mapping[str, Any]) -> Self:
        """Check and return `flags`.

        Raises:
            EngineConfigError: an unknown key or a value out of range, named.
        """
        _refuse_unknown("engine.flags", flags, cls)
        values = dict(flags)
        for key, value in flags.items():
            allowed, words = _RULES[key]
            if not allowed(value):
                message = f"engine.flags.{key} is {value!r}; {words}"
                raise EngineConfigError(message)
        if values.get("noise") is not None:
            values["noise"] = _nested("noise", values["noise"], NoiseLevels)
        faults = values.pop("fail", None)
        listed = (faults,) if isinstance(faults, Mapping) else faults or ()
        return cls(**values, fail=tuple(_nested("fail", fault, Failure) for fault in listed))

    def failure(self, k: int) -> Failure | None:
        """Return how an engine with draft length `k` is to fail."""
        return next((fault for fault in self.fail if fault.k in (None, k)), None)


def flags_of(config: EngineConfig) -> Flags:
    """Check everything of `config` that the emulator has to know, and return its flags.

    Raises:
        EngineConfigError: an unknown model, GPU, drafter, option or flag.
    """
    if config.model.name not in ARCHITECTURES:
        message = (
            f"model.name is {config.model.name!r}, an unknown model to the emulator"
            f"{did_you_mean(config.model.name, ARCHITECTURES)}; "
            f"it knows {', '.join(sorted(ARCHITECTURES))}"
        )
        raise EngineConfigError(message)
    check_drafter(config.drafter)
    return Flags.of(merged_flags(config))


def merged_flags(config: EngineConfig) -> dict[str, Any]:
    """Return the flags with what the cache strategy and the decode settings say.

    Raises:
        EngineConfigError: a setting the emulator has no model of, or two keys for one flag.
    """
    given = {f"cache.{name}": value for name, value in config.cache.given.items()}
    given |= {f"decode.{name}": value for name, value in config.decode.given.items()}
    flags = dict(config.flags)
    for key, value in given.items():
        if key == "decode.chunked_prefill" and value:
            continue  # it always does
        flag = _FLAG_OF.get(key)
        if flag is None:
            message = f"{key} is {value!r}; the emulator has no model of it: leave it null"
            raise EngineConfigError(message)
        if flag in flags:
            message = f"engine.flags.{flag} and {key} both set the same; remove one"
            raise EngineConfigError(message)
        flags[flag] = value
    return flags


def _number(low: float, high: float) -> tuple[Callable[[Any], bool], str]:
    def allowed(value: Any) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high

    return allowed, f"choose a number from {low:g} to {high:g}"


def _one_of(known: Iterable[Any]) -> tuple[Callable[[Any], bool], str]:
    names = tuple(known)
    return lambda value: value in names, f"the emulator knows {', '.join(sorted(map(str, names)))}"


def _mapping(example: str) -> tuple[Callable[[Any], bool], str]:
    return lambda value: isinstance(value, Mapping), f"it takes a mapping such as {example}"


def _or_null(rule: tuple[Callable[[Any], bool], str]) -> tuple[Callable[[Any], bool], str]:
    allowed, words = rule
    return lambda value: value is None or allowed(value), f"{words}, or null"


_COUNT = (lambda value: type(value) is int and value >= 1, "it is a count: choose 1 or more")

_RULES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "gpu": _one_of(GPUS),
    "time_scale": _number(0.001, 1000.0),
    "max_num_seqs": _COUNT,
    "max_num_batched_tokens": _COUNT,
    "block_size": _COUNT,
    "gpu_memory_utilization": _number(0.01, 1.0),
    "kv_tokens": _or_null(_COUNT),
    "enable_prefix_caching": _one_of((True, False)),
    "cost": _one_of(COSTS),
    "noise": _mapping("{start: 0.01, drift: 0.004, step: 0.02}"),
    "fail": (
        lambda value: (
            value is None
            or isinstance(value, Mapping)
            or (isinstance(value, list | tuple) and all(isinstance(entry, Mapping) for entry in value))
        ),
        "it takes a mapping such as {at: mid, after_tokens: 100}, a list of them, or null",
    ),
}
"""Flag -> (whether a value is allowed, what to choose instead)."""


def _nested(key: str, values: Mapping[str, Any], kind: type[_Nested]) -> _Nested:
    _refuse_unknown(f"engine.flags.{key}", values, kind)
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:
        message = f"engine.flags.{key} is {dict(values)}: {error}"
        raise EngineConfigError(message) from error


def _refuse_unknown(where: str, values: Mapping[str, Any], kind: type[Flags | NoiseLevels | Failure]) -> None:
    known = sorted(entry.name for entry in fields(kind))
    for key in values:
        if key not in known:
            guess = did_you_mean(key, known)
            message = f"{where}.{key} is no setting of the emulator{guess}; known: {', '.join(known)}"
            raise EngineConfigError(message)
