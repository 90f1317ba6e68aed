"""How many KV tokens fit one rank: device memory, less weights, less working memory, over bytes a token."""

from engines.emulator.drafters import DrafterCost
from engines.emulator.hardware import Gpu
from engines.emulator.models import BYTES, Architecture

WORKING_BYTES = 1.5e9
"""Activations, CUDA graphs and library buffers of one GPU. An assumption."""


class OutOfMemoryError(Exception):
    """The model, or one request of full length, does not fit the emulated device."""


def kv_capacity(
    *, gpu: Gpu, model: Architecture, drafter: DrafterCost | None, tp: int, utilization: float
) -> int:
    """Return the KV tokens of one rank of `tp` devices.

    A drafter takes its weights, and its own KV for every token that the target keeps.

    Raises:
        OutOfMemoryError: nothing is left for a KV cache.
    """
    weights = model.parameters * BYTES / tp
    per_token = float(model.kv_bytes(tp))
    if drafter is not None:
        weights += max(drafter.weight_bytes, 0) / drafter.tp
        per_token += drafter.kv_bytes / drafter.tp
    budget = gpu.memory_bytes * utilization
    left = budget - weights - WORKING_BYTES
    if left <= 0:
        message = (
            f"out of memory: {model.name} needs {weights / 1e9:.1f} GB of weights and "
            f"{WORKING_BYTES / 1e9:.1f} GB of working memory on each of {tp} emulated {gpu.name} device(s), "
            f"which may fill {budget / 1e9:.1f} GB"
        )
        raise OutOfMemoryError(message)
    return int(left / per_token)
