"""Runs inside the engine's environment: draw many synthetic acceptances with the replaced CPU kernels.

Prints JSON: mean acceptance length and unconditional rates by position for the greedy and the random kernel,
and whether untouched calls still reach vLLM's own kernel.
"""

import json
import sys

import torch
from specload_vllm import synthetic
from vllm.platforms import current_platform
from vllm.utils import cpu_triton_utils

REQUESTS = 20_000
K = 7
ALPHA = 0.6912


def measured(kind: str) -> dict[str, object]:
    generator = torch.Generator().manual_seed(5)
    output = torch.full((REQUESTS, K + 1), -1, dtype=torch.int32)
    ends = torch.arange(K, K * REQUESTS + 1, K, dtype=torch.int32)
    drafts = torch.full((K * REQUESTS,), 7, dtype=torch.int32)
    target = torch.full((K * REQUESTS,), 8, dtype=torch.int32)
    bonus = torch.full((REQUESTS, 1), 9, dtype=torch.int32)
    uniforms = torch.rand(K * REQUESTS, generator=generator, dtype=torch.float64)
    rates = torch.full((K,), ALPHA)
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
    json.dump({"greedy": measured("greedy"), "random": measured("random"), "real": real()}, sys.stdout)
