"""From an `EngineConfig` to the schedulers of its ranks: one per data-parallel rank."""

from dataclasses import dataclass

from engines.acceptance import conditional_rates
from engines.digest import seed_of
from engines.emulator.costs import PUBLISHED_H100_8B, StepCost
from engines.emulator.drafters import drafter_cost, rates_of
from engines.emulator.faults import Failure
from engines.emulator.hardware import GPUS
from engines.emulator.memory import OutOfMemoryError, kv_capacity
from engines.emulator.models import ARCHITECTURES
from engines.emulator.noise import Noise
from engines.emulator.roofline import Roofline
from engines.emulator.scheduler import Limits, Scheduler
from engines.emulator.settings import Flags, flags_of
from engines.schedule import DYNAMIC
from engines.spec import EngineConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """The parts of one emulated engine."""

    config: EngineConfig
    flags: Flags
    ranks: tuple[Scheduler, ...]
    kv_tokens: int
    """KV-cache tokens of one rank."""

    @property
    def fail(self) -> Failure | None:
        """How this engine is to fail."""
        return self.flags.failure(self.config.drafter.k)


def step_cost(config: EngineConfig, flags: Flags) -> StepCost:
    """Return the step-time model of one rank of `config`."""
    if flags.cost == "table":
        return PUBLISHED_H100_8B
    model = ARCHITECTURES[config.model.name]
    tp = config.layout.tp
    return Roofline(gpu=GPUS[flags.gpu], model=model, tp=tp, drafter=drafter_cost(config.drafter, model, tp))


def assemble(config: EngineConfig, *, start: str, now: float = 0.0, kv_tokens: int | None = None) -> Assembly:
    """Build the ranks of `config` on a clock that reads `now`.

    Args:
        config: the engine.
        start: name of this engine start. It seeds what differs between starts, together with the config.
        now: seconds on the engine's clock.
        kv_tokens: KV-cache tokens that each rank is clamped to; None for all that its memory holds.

    Raises:
        EngineConfigError: a setting that the emulator does not know.
        OutOfMemoryError: the model, or one request of full length, does not fit.
    """
    flags = flags_of(config)
    tokens = _kv_tokens(config, flags, kv_tokens)
    limits = Limits(
        blocks=tokens // flags.block_size,
        block_size=flags.block_size,
        max_num_seqs=flags.max_num_seqs,
        max_num_batched_tokens=flags.max_num_batched_tokens,
        k=config.drafter.k,
        rates=conditional_rates(rates_of(config.drafter)),
        caching=flags.enable_prefix_caching,
        lengths=tuple((first, last, k) for first, last, k in config.drafter.options.get(DYNAMIC, ())),
    )
    cost = step_cost(config, flags)
    seed = seed_of("engine start", config.digest, start)
    ranks = tuple(
        Scheduler(limits, cost, Noise(flags.noise, start=seed, rank=rank), started=now)
        for rank in range(config.layout.dp)
    )
    return Assembly(config=config, flags=flags, ranks=ranks, kv_tokens=limits.blocks * limits.block_size)


def _kv_tokens(config: EngineConfig, flags: Flags, clamp: int | None) -> int:
    model = ARCHITECTURES[config.model.name]
    # Memory is checked even when the KV size is given: weights that do not fit cannot be served.
    tokens = kv_capacity(
        gpu=GPUS[flags.gpu],
        model=model,
        drafter=drafter_cost(config.drafter, model, config.layout.tp),
        tp=config.layout.tp,
        utilization=flags.gpu_memory_utilization,
    )
    if flags.kv_tokens is not None:
        tokens = flags.kv_tokens
    if clamp is not None:
        tokens = min(tokens, clamp)
    longest = config.model.max_context + config.drafter.k
    if tokens // flags.block_size < -(-longest // flags.block_size):
        message = (
            f"out of memory: the emulated KV cache holds {tokens:,} tokens, but one request may take "
            f"{longest:,} (model.max_context plus drafts); lower model.max_context or use a larger layout"
        )
        raise OutOfMemoryError(message)
    return tokens
