"""Rules that live with the emulator: what its model of hardware cannot express."""

from engines.base import Rule
from engines.emulator.models import ARCHITECTURES
from engines.emulator.settings import Flags, flags_of
from engines.errors import EngineConfigError
from engines.spec import NO_DRAFTER, EngineConfig


def _settings(config: EngineConfig) -> str | None:
    try:
        flags_of(config)
    except EngineConfigError as error:
        return error.message
    return None


def _device(config: EngineConfig) -> str | None:
    if config.device == "emulated":
        return None
    return f"engine.device is {config.device!r}; the emulator's devices are 'emulated'"


def _pipeline(config: EngineConfig) -> str | None:
    if config.layout.pp == 1:
        return None
    return f"layout.pp is {config.layout.pp}; the emulator has no pipeline parallelism: use tp or dp"


def _experts(config: EngineConfig) -> str | None:
    if not config.layout.expert_parallel:
        return None
    return "layout.expert_parallel is set, and no model of the emulator has experts; set it to false"


def _heads(config: EngineConfig) -> str | None:
    model, tp = ARCHITECTURES.get(config.model.name), config.layout.tp
    if model is None or (model.heads % tp == 0 and (model.kv_heads % tp == 0 or tp % model.kv_heads == 0)):
        return None
    return (
        f"layout.tp is {tp}, which does not divide the {model.heads} attention heads and {model.kv_heads} "
        f"KV heads of {model.name}"
    )


def _step_budget(config: EngineConfig) -> str | None:
    budget = config.decode.max_num_batched_tokens or config.flags.get(
        "max_num_batched_tokens", Flags().max_num_batched_tokens
    )
    if not isinstance(budget, int) or config.drafter.k < budget:
        return None
    return (
        f"drafter.k is {config.drafter.k}: one request's step of {config.drafter.k + 1} positions exceeds "
        f"max_num_batched_tokens {budget}; raise decode.max_num_batched_tokens"
    )


def _table(config: EngineConfig) -> str | None:
    if config.flags.get("cost") != "table":
        return None
    fitted = (
        config.layout.tp == 1
        and config.model.name == "llama-3.1-8b"
        and config.flags.get("gpu", Flags().gpu) == "h100"
        and config.drafter.method in {NO_DRAFTER, "eagle", "eagle3"}
    )
    if fitted:
        return None
    return (
        "cost: table was fitted to llama-3.1-8b with an EAGLE head on one h100; it knows no other model, "
        "GPU, drafter or tensor parallelism: use cost: roofline"
    )


EMULATOR_RULES: tuple[Rule, ...] = (
    Rule(
        name="emulator_settings",
        meaning="Every setting is one that the emulator knows.",
        check=_settings,
    ),
    Rule(
        name="emulator_device",
        meaning="Emulated engines run on emulated devices.",
        check=_device,
    ),
    Rule(
        name="emulator_pp",
        meaning="There is no pipeline parallelism.",
        check=_pipeline,
    ),
    Rule(
        name="emulator_experts",
        meaning="There are no mixtures of experts to spread.",
        check=_experts,
    ),
    Rule(
        name="emulator_heads",
        meaning="Heads of the emulated model are divisible by the tensor-parallel size.",
        check=_heads,
    ),
    Rule(
        name="emulator_step_budget",
        meaning="A step has room for the K+1 positions of a request.",
        check=_step_budget,
    ),
    Rule(
        name="emulator_table",
        meaning="The published step costs are used for what they were fitted to.",
        check=_table,
    ),
)
"""Checked beside the common rules of `engines/rules.py`."""
