"""EAGLE and EAGLE-3 heads of the tiny target, with a chosen agreement.

EAGLE joins the last token's embedding and the target's hidden state in `fc`, and borrows the target's output
head. Its own embeddings do the drafting: that of a token is what the target's head answers with the token's
drafted successor. `fc` passes the embedding through.

EAGLE-3 borrows the embeddings and has an output head of its own. Its one layer has no residual path for the
embedding, so its attention hands it on: queries and keys are the embedding itself, three times as long, which
makes a token attend to itself (or to an equal one, which is as good).
"""

from pathlib import Path
from typing import Any

import torch

from specload_vllm.tiny import (
    HEAD_DIM,
    HEADS,
    HIDDEN,
    KV_HEADS,
    LLAMA,
    VOCABULARY,
    decoder_layer,
    drafted,
    embeddings,
    generator_of,
    head,
    save_acceptance,
    save_model,
    successors,
)

AUXILIARY_LAYERS = (1, 2, 3)
"""Layers of the target whose states EAGLE-3 sees. The default ones would collide in a target this small."""
SHARPNESS = 3.0
"""Length of EAGLE-3's queries and keys over that of a normalised embedding."""


def build_eagle(folder: Path, agreement: float) -> None:
    """Write an EAGLE head."""
    following = successors(VOCABULARY)
    drafts = drafted(following, agreement)
    own = embeddings()
    answers = head(own, following)
    ordinary = drafts >= 0
    own[ordinary] = answers[drafts[ordinary]]
    layer = decoder_layer("layers.0.", generator_of("eagle"))
    del layer["layers.0.input_layernorm.weight"]  # EAGLE's first layer has none
    tensors = {
        "embed_tokens.weight": own,
        "fc.weight": torch.cat((torch.eye(HIDDEN), torch.zeros(HIDDEN, HIDDEN)), dim=1),
        **layer,
    }
    save_model(folder, tensors, LLAMA)
    save_acceptance(folder, following, drafts)


def build_eagle3(folder: Path, agreement: float) -> None:
    """Write an EAGLE-3 head."""
    following = successors(VOCABULARY)
    drafts = drafted(following, agreement)
    carried = KV_HEADS * HEAD_DIM
    codes = embeddings()
    codes[:, carried:] = 0.0  # what the values do not carry
    layer = decoder_layer("midlayer.", generator_of("eagle3"))
    tensors = {
        **layer,
        **_self_attention("midlayer.self_attn.", carried),
        # the residual path holds the target's states, which say less than the last token does
        "midlayer.hidden_norm.weight": torch.zeros(HIDDEN),
        "fc.weight": torch.randn(
            HIDDEN, len(AUXILIARY_LAYERS) * HIDDEN, generator=generator_of("eagle3 states")
        ),
        "norm.weight": torch.ones(HIDDEN),
        "lm_head.weight": head(codes, drafts),
    }
    config: dict[str, Any] = {
        **LLAMA,
        "architectures": ["LlamaForCausalLMEagle3"],
        "draft_vocab_size": VOCABULARY,
        "eagle_aux_hidden_state_layer_ids": list(AUXILIARY_LAYERS),
        "norm_before_residual": True,
    }
    save_model(folder, tensors, config)
    save_acceptance(folder, following, drafts)


def _self_attention(prefix: str, carried: int) -> dict[str, torch.Tensor]:
    """Return projections, from embedding beside states, that hand the embedding's first part on."""
    keys = torch.zeros(carried, 2 * HIDDEN)
    keys[:, :carried] = torch.eye(carried)
    group = HEADS // KV_HEADS  # query heads that share a key head
    queries = keys.view(KV_HEADS, HEAD_DIM, -1).repeat_interleave(group, dim=0).reshape(-1, 2 * HIDDEN)
    output = torch.zeros(HIDDEN, HEADS * HEAD_DIM)
    output[:carried] = (
        torch.eye(carried).view(-1, KV_HEADS, HEAD_DIM).repeat_interleave(group, dim=1).reshape(carried, -1)
        / group
    )
    return {
        prefix + "q_proj.weight": SHARPNESS * queries,
        prefix + "k_proj.weight": SHARPNESS * keys,
        prefix + "v_proj.weight": keys.clone(),
        prefix + "o_proj.weight": output,
    }
