"""Which arms share a block, and so hardware."""

from collections.abc import Sequence

from engines.digest import canonical_json
from engines.nearest import did_you_mean
from engines.spec import EngineConfig
from orchestrator.errors import ConfigError
from orchestrator.plan import Arm

ALL = "all"
"""Arms of a model share one slice, that of its largest layout; smaller layouts fill it with replicas."""
LAYOUT = "layout"
"""Arms of equal device count share a slice of just that size."""
SHARES = (ALL, LAYOUT)

Group = tuple[str, int]
"""What arms of one block have in common: the model as text, and the devices of a layout (0: any)."""


def check_share(share: str) -> None:
    """Refuse what is no way of sharing.

    Raises:
        ConfigError: names the key and the ways there are.
    """
    if share not in SHARES:
        guess = did_you_mean(share, SHARES)
        message = f"design.share is {share!r}{guess}; choose one of {', '.join(SHARES)}"
        raise ConfigError(message)


def group_of(config: EngineConfig, share: str) -> Group:
    """Return the group of an engine configuration: a pair is always in one, two models never."""
    return canonical_json(config.model), config.layout.devices if share == LAYOUT else 0


def sharing_notes(arms: Sequence[Arm], share: str) -> list[str]:
    """Return what a plan has to say about comparisons that are not made within a block."""
    models = sorted({arm.config.model.name for arm in arms})
    sizes = sorted({arm.config.layout.devices for arm in arms})
    notes = []
    if len({canonical_json(arm.config.model) for arm in arms}) > 1:
        told = f"models {', '.join(models)}" if len(models) > 1 else f"variants of the model {models[0]}"
        notes.append(
            f"{told} have blocks of their own: a drafter is compared with its model's baseline in one block, "
            "models are compared between blocks"
        )
    if share == LAYOUT and len(sizes) > 1:
        told = " and ".join(str(size) for size in sizes)
        notes.append(
            f"design.share=layout: layouts of {told} devices have blocks of their own size; a drafter is "
            "compared with its layout's baseline within a block, layouts of different size between blocks "
            "(design.share=all compares them within, on slices of the largest)"
        )
    return notes
