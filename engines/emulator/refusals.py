"""Rules that live with the emulator: what its model of hardware cannot express."""

from collections.abc import Sequence

from engines.base import Refusal
from engines.emulator.models import ARCHITECTURES
from engines.emulator.settings import flags_of
from engines.errors import EngineConfigError
from engines.spec import EngineConfig


def own_refusals(config: EngineConfig) -> Sequence[Refusal]:
    """Return the emulator's own rules that forbid `config`; empty when it may run."""
    try:
        flags = flags_of(config)
    except EngineConfigError as error:
        return (Refusal(rule="emulator_settings", reason=error.message),)
    model, layout, drafter = ARCHITECTURES[config.model.name], config.layout, config.drafter
    found: list[Refusal] = []

    def refuse(rule: str, reason: str) -> None:
        found.append(Refusal(rule=rule, reason=reason))

    if config.device != "emulated":
        refuse(
            "emulator_device", f"engine.device is {config.device!r}; the emulator's devices are 'emulated'"
        )
    if layout.pp > 1:
        refuse(
            "emulator_pp", f"layout.pp is {layout.pp}; the emulator has no pipeline parallelism: use tp or dp"
        )
    if model.heads % layout.tp or (model.kv_heads % layout.tp and layout.tp % model.kv_heads):
        reason = (
            f"layout.tp is {layout.tp}, but {model.name} has {model.heads} attention heads and "
            f"{model.kv_heads} KV heads; choose a tp that divides them"
        )
        refuse("emulator_heads", reason)
    if drafter.draft_tp not in (None, 1, layout.tp):
        refuse(
            "emulator_draft_tp",
            f"drafter.draft_tp is {drafter.draft_tp}; choose 1 or the target's tp {layout.tp}",
        )
    if drafter.k + 1 > flags.max_num_batched_tokens:
        reason = (
            f"drafter.k is {drafter.k}: one request's step of {drafter.k + 1} positions exceeds "
            f"max_num_batched_tokens {flags.max_num_batched_tokens}; raise that flag"
        )
        refuse("emulator_step_budget", reason)
    if flags.cost == "table" and layout.tp > 1:
        refuse(
            "emulator_table_tp",
            "cost: table was fitted on one GPU and has no tensor parallelism: use cost: roofline",
        )
    return tuple(found)
