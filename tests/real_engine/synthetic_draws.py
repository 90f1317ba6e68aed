"""Runs inside the engine's environment: draw many synthetic acceptances with the replaced CPU kernels.

Prints JSON: mean acceptance length and unconditional rates by position for each form of the request and the
greedy and the random kernel, a mixed batch, and whether untouched calls still reach vLLM's own kernel.
"""

import json
import sys

import torch
from specload_vllm import synthetic
from vllm.config import SpeculativeConfig
from vllm.platforms import current_platform
from vllm.utils import cpu_triton_utils
from vllm.v1.spec_decode.utils import unconditional_to_conditional_rates

REQUESTS = 20_000
K = 7
LENGTH = 3.07
RATES = {
    "alpha": [0.6912**position for position in range(1, K + 1)],
    "positions": [0.9, 0.9, 0.3, 0.3, 0.1, 0.0, 0.0],
    "length": SpeculativeConfig._resolve_synthetic_acceptance_rates(K, None, LENGTH),
}
"""Unconditional rates by form; those of the length are vLLM's own reading of it."""


def measured(kind: str, form: str) -> dict[str, object]:
    generator = torch.Generator().manual_seed(5)
    output = torch.full((REQUESTS, K + 1), -1, dtype=torch.int32)
    ends = torch.arange(K, K * REQUESTS + 1, K, dtype=torch.int32)
    drafts = torch.full((K * REQUESTS,), 7, dtype=torch.int32)
    target = torch.full((K * REQUESTS,), 8, dtype=torch.int32)
    bonus = torch.full((REQUESTS, 1), 9, dtype=torch.int32)
    uniforms = torch.rand(K * REQUESTS, generator=generator, dtype=torch.float64)
    rates = torch.tensor(unconditional_to_conditional_rates(RATES[form]))
    if kind == "greedy":
        cpu_triton_utils._rejection_greedy_sample_kernel_impl(
            output, ends, drafts, target, bonus, None, K, uniforms, rates, SYNTHETIC_MODE=True
        )
    else:
        cpu_triton_utils._rejection_random_sample_kernel_impl(
            output,
            ends,
            drafts,
            None,
            None,
            bonus,
            target,
            uniforms,
            torch.zeros(REQUESTS, dtype=torch.bool),
            K,
            100,
            rates,
            NO_DRAFT_PROBS=True,
            SYNTHETIC_MODE=True,
        )
    accepted = (output == 7).sum(dim=1)
    last = output.gather(1, accepted.long()[:, None])[:, 0]
    return {
        "mal": float((output >= 0).sum() / REQUESTS),
        "rates": [float((accepted >= position).float().mean()) for position in range(1, K + 1)],
        "last": bool((last == torch.where(accepted == K, 9, 8)).all()),
        "padding": bool((output[torch.arange(K + 1)[None, :] > accepted[:, None]] == -1).all()),
    }


def mixed() -> list[list[int]]:
    """A greedy, a sampled and a greedy request in one batch, as the sampler calls both kernels on it."""
    output = torch.full((3, 3), -1, dtype=torch.int32)
    ends = torch.tensor([2, 4, 6], dtype=torch.int32)
    drafts = torch.full((6,), 7, dtype=torch.int32)
    greedy = torch.tensor([True, False, True])
    bonus = torch.full((3, 1), 9, dtype=torch.int32)
    uniforms = torch.full((6,), 0.5, dtype=torch.float64)
    rates = torch.tensor([1.0, 0.0])
    cpu_triton_utils._rejection_greedy_sample_kernel_impl(
        output, ends, drafts, torch.full((6,), 8), bonus, greedy, 2, uniforms, rates, SYNTHETIC_MODE=True
    )
    cpu_triton_utils._rejection_random_sample_kernel_impl(
        output,
        ends,
        drafts,
        None,
        None,
        bonus,
        torch.full((6,), 5),
        uniforms,
        greedy,
        2,
        100,
        rates,
        NO_DRAFT_PROBS=True,
        SYNTHETIC_MODE=True,
    )
    return output.tolist()


def real() -> list[int]:
    output = torch.full((1, 4), -1, dtype=torch.int32)
    cpu_triton_utils._rejection_greedy_sample_kernel_impl(
        output,
        torch.tensor([3], dtype=torch.int32),
        torch.tensor([5, 6, 7], dtype=torch.int32),
        torch.tensor([5, 6, 8], dtype=torch.int64),
        torch.tensor([[9]], dtype=torch.int32),
        None,
        3,
    )
    return output[0].tolist()


if __name__ == "__main__":
    current_platform.import_kernels()
    synthetic.register()
    synthetic.register()  # vLLM may load plugins twice
    found: dict[str, object] = {
        f"{kernel} {form}": measured(kernel, form) for kernel in ("greedy", "random") for form in RATES
    }
    flat = RATES["length"]
    found["vllm"] = {"rates": flat, "conditional": unconditional_to_conditional_rates(flat)}
    json.dump({**found, "mixed": mixed(), "real": real()}, sys.stdout)
