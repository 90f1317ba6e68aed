"""Synthetic acceptance on vLLM's CPU backend.

vLLM's rejection sampler hands uniform draws and conditional rates to its kernels, but the CPU replacements of
those kernels refuse them. The general plugin below puts two functions in front that serve the synthetic case
and forward every other call untouched. vLLM loads general plugins in each worker right before it looks the
CPU kernels up, so the replacement is in time there.

The rule is the one of vLLM's own GPU kernels: walk through a request's drafts; position i is accepted when
its uniform draw lies below the conditional rate i; the first rejection is replaced by the target's token and
ends the walk; if all are accepted the bonus token follows.
"""

from typing import Any

import torch

GREEDY = "_rejection_greedy_sample_kernel_impl"
RANDOM = "_rejection_random_sample_kernel_impl"


def register() -> None:
    """Entry point of the group `vllm.general_plugins`; harmless twice, or without the CPU kernels."""
    try:
        from vllm.utils import cpu_triton_utils  # noqa: PLC0415 - absent from other builds
    except ImportError:  # a vLLM without CPU kernels: synthetic acceptance works there by itself
        return
    greedy = getattr(cpu_triton_utils, GREEDY, None)
    random = getattr(cpu_triton_utils, RANDOM, None)
    if greedy is None or random is None or getattr(greedy, "specload", False):
        return
    setattr(cpu_triton_utils, GREEDY, _greedy_kernel(greedy))
    setattr(cpu_triton_utils, RANDOM, _random_kernel(random))


def accept(  # noqa: PLR0917 - called by position from the kernels below, as vLLM calls them
    output: torch.Tensor,
    ends: torch.Tensor,
    drafts: torch.Tensor,
    replacements: torch.Tensor,
    bonus: torch.Tensor,
    uniforms: torch.Tensor,
    rates: torch.Tensor,
    skip: torch.Tensor | None,
) -> None:
    """Fill `output` with accepted drafts, a replacement or the bonus token, request by request.

    Args:
        output: [requests, K + 1] token ids, written in place; positions after the last token stay as they
        are.
        ends: [requests] inclusive cumulative number of draft tokens.
        drafts: [all drafts] proposed ids, request after request; negative ids are padding and always
        rejected.
        replacements: [all drafts] the target's own token at each draft position.
        bonus: [requests] or [requests, 1] the token after a fully accepted draft.
        uniforms: [all drafts] draws in [0, 1).
        rates: [K] conditional acceptance rate of each draft position.
        skip: [requests] True for requests that another kernel serves, or None.
    """
    ends_list: list[int] = ends.tolist()
    drafts_list: list[int] = drafts.tolist()
    replaced: list[int] = replacements.reshape(-1).tolist()
    bonus_list: list[int] = bonus.reshape(-1).tolist()
    uniform_list: list[float] = uniforms.tolist()
    rate_list: list[float] = rates.tolist()
    skip_list: list[bool] = skip.tolist() if skip is not None else [False] * len(ends_list)
    start = 0
    for request, end in enumerate(ends_list):
        if not skip_list[request]:
            tokens: list[int] = []
            for position in range(end - start):
                index = start + position
                if drafts_list[index] >= 0 and uniform_list[index] < rate_list[position]:
                    tokens.append(drafts_list[index])
                    continue
                tokens.append(replaced[index])
                break
            else:
                tokens.append(bonus_list[request])
            output[request, : len(tokens)] = torch.tensor(tokens, dtype=output.dtype)
        start = end


def _greedy_kernel(original: Any) -> Any:
    def greedy_kernel(  # noqa: PLR0917 - the positional order is vLLM's
        output_token_ids: torch.Tensor,
        cu_num_draft_tokens: torch.Tensor,
        draft_token_ids: torch.Tensor,
        target_argmax: torch.Tensor,
        bonus_token_ids: torch.Tensor,
        is_greedy: torch.Tensor | None,
        max_spec_len: int,
        uniform_probs: torch.Tensor | None = None,
        synthetic_conditional_rates: torch.Tensor | None = None,
        SYNTHETIC_MODE: bool = False,  # noqa: FBT001, FBT002, N803 - vLLM's signature
        **more: Any,
    ) -> None:
        if not SYNTHETIC_MODE:
            original(
                output_token_ids,
                cu_num_draft_tokens,
                draft_token_ids,
                target_argmax,
                bonus_token_ids,
                is_greedy,
                max_spec_len,
                uniform_probs,
                synthetic_conditional_rates,
                SYNTHETIC_MODE,
                **more,
            )
            return
        assert uniform_probs is not None
        assert synthetic_conditional_rates is not None
        accept(
            output_token_ids,
            cu_num_draft_tokens,
            draft_token_ids,
            target_argmax,
            bonus_token_ids,
            uniform_probs,
            synthetic_conditional_rates,
            None if is_greedy is None else ~is_greedy.bool(),
        )

    greedy_kernel.specload = True  # type: ignore[attr-defined]  # marks the replacement, see register()
    return greedy_kernel


def _random_kernel(original: Any) -> Any:
    def random_kernel(  # noqa: PLR0917 - the positional order is vLLM's
        output_token_ids: torch.Tensor,
        cu_num_draft_tokens: torch.Tensor,
        draft_token_ids: torch.Tensor,
        draft_probs: torch.Tensor | None,
        target_probs: torch.Tensor | None,
        bonus_token_ids: torch.Tensor,
        recovered_token_ids: torch.Tensor,
        uniform_probs: torch.Tensor,
        is_greedy: torch.Tensor | None,
        max_spec_len: int,
        vocab_size: int,
        synthetic_conditional_rates: torch.Tensor | None = None,
        NO_DRAFT_PROBS: bool = False,  # noqa: FBT001, FBT002, N803 - vLLM's signature
        SYNTHETIC_MODE: bool = False,  # noqa: FBT001, FBT002, N803 - vLLM's signature
        **more: Any,
    ) -> None:
        if not SYNTHETIC_MODE:
            original(
                output_token_ids,
                cu_num_draft_tokens,
                draft_token_ids,
                draft_probs,
                target_probs,
                bonus_token_ids,
                recovered_token_ids,
                uniform_probs,
                is_greedy,
                max_spec_len,
                vocab_size,
                synthetic_conditional_rates,
                NO_DRAFT_PROBS,
                SYNTHETIC_MODE,
                **more,
            )
            return
        assert synthetic_conditional_rates is not None
        accept(
            output_token_ids,
            cu_num_draft_tokens,
            draft_token_ids,
            recovered_token_ids,
            bonus_token_ids,
            uniform_probs,
            synthetic_conditional_rates,
            None if is_greedy is None else is_greedy.bool(),
        )

    random_kernel.specload = True  # type: ignore[attr-defined]  # marks the replacement, see register()
    return random_kernel
