"""A DFlash drafter of the tiny target, with a chosen agreement: K tokens in one pass.

DFlash drafts a block at once: its queries are the last token and K masks behind it, and each mask has to say
its own token without seeing the others'. Here attention head h looks exactly h places back. Queries and keys
are the same for every token (biases, no weights), so that rotary positions alone decide where a head looks,
and only the last token has a value. Mask i therefore finds the last token in head i, and nothing in the
others. The heads write into disjoint parts of the state, and the output head has in part i, for the last
token c, the drafted successor of the token i - 1 places after c. A step thus accepts what a draft model with
the same wrong tokens would have accepted.
"""

from pathlib import Path
from typing import Any

import torch

from specload_vllm.tiny import (
    CONTEXT,
    HEAD_DIM,
    HIDDEN,
    INTERMEDIATE,
    KV_HEADS,
    OUTPUT_SCALE,
    VOCABULARY,
    drafted,
    generator_of,
    head,
    save_acceptance,
    save_model,
    successors,
)
from specload_vllm.tiny_text import SPECIAL

BLOCK = 8
"""Tokens of a block, the last known one included: K is at most one less."""
WIDTH = BLOCK * HEAD_DIM
"""Width of the drafter's states: a part for each head."""
MASK = SPECIAL.index("<|pad|>")
TARGET_LAYERS_SEEN = (1, 2)
ROTARY_BASE = 10.0
"""Base of the rotary positions: all frequencies are high, so that neighbouring places are told apart."""
SHARPNESS = 6.0
"""Length of queries and keys over that of normalised ones: the next best place gets e^-30 of the weight."""


def build_dflash(folder: Path, agreement: float) -> None:
    """Write the drafter."""
    following = successors(VOCABULARY)
    drafts = drafted(following, agreement)
    generator = generator_of("dflash")
    codes = torch.randn(VOCABULARY, HEAD_DIM, generator=generator)
    embed = torch.zeros(VOCABULARY, WIDTH)
    embed[:, :HEAD_DIM] = codes
    embed[MASK] = 0.0
    tensors = {
        "embed_tokens.weight": embed,
        "fc.weight": _matrix(WIDTH, len(TARGET_LAYERS_SEEN) * HIDDEN, generator),
        # the target's states would only be in the way: the last token says it all
        "hidden_norm.weight": torch.zeros(WIDTH),
        "norm.weight": torch.ones(WIDTH),
        "lm_head.weight": torch.cat(_parts(codes, following, drafts), dim=1),
        "layers.0.input_layernorm.weight": torch.ones(WIDTH),
        "layers.0.post_attention_layernorm.weight": torch.ones(WIDTH),
        "layers.0.mlp.gate_proj.weight": _matrix(INTERMEDIATE, WIDTH, generator),
        "layers.0.mlp.up_proj.weight": _matrix(INTERMEDIATE, WIDTH, generator),
        "layers.0.mlp.down_proj.weight": OUTPUT_SCALE * _matrix(WIDTH, INTERMEDIATE, generator),
        **_attention("layers.0.self_attn."),
    }
    config: dict[str, Any] = {
        "architectures": ["DFlashDraftModel"],
        "model_type": "qwen3",
        "attention_bias": True,
        "block_size": BLOCK,
        "dflash_config": {"mask_token_id": MASK, "target_layer_ids": list(TARGET_LAYERS_SEEN)},
        "dtype": "float32",
        "head_dim": HEAD_DIM,
        "hidden_act": "silu",
        "hidden_size": WIDTH,
        "intermediate_size": INTERMEDIATE,
        "max_position_embeddings": CONTEXT,
        "num_attention_heads": BLOCK,
        "num_hidden_layers": 1,
        "num_key_value_heads": KV_HEADS,
        "rms_norm_eps": 1e-5,
        "rope_theta": ROTARY_BASE,
        "target_hidden_size": HIDDEN,
        "tie_word_embeddings": False,
        "vocab_size": VOCABULARY,
    }
    save_model(folder, tensors, config)
    save_acceptance(folder, following, drafts)


def _parts(codes: torch.Tensor, following: torch.Tensor, drafts: torch.Tensor) -> list[torch.Tensor]:
    """Return the parts of the output head, one for each place in the block."""
    ordinary = following >= 0
    last = torch.arange(len(following))  # the token before the one that is drafted, by the last known one
    parts = []
    for _ in range(BLOCK):
        proposal = torch.full_like(following, -1)
        proposal[ordinary] = drafts[last[ordinary]]
        parts.append(head(codes, proposal))
        last = torch.where(ordinary, following[last], last)
    return parts


def _attention(prefix: str) -> dict[str, torch.Tensor]:
    """Return projections with which head h looks h + 1 places back, and finds a value in the last token."""
    pairs = HEAD_DIM // 2
    frequencies = ROTARY_BASE ** (-torch.arange(pairs) / pairs)
    # A key turned by its place and a query turned by its own agree where the difference undoes the turn
    # below: the halves of a head's vector are the two coordinates of its pairs.
    turns = -torch.arange(1, BLOCK + 1).unsqueeze(1) * frequencies
    queries = torch.cat((turns.cos(), turns.sin()), dim=1)
    keys = torch.cat((torch.ones(KV_HEADS, pairs), torch.zeros(KV_HEADS, pairs)), dim=1)
    values = torch.zeros(KV_HEADS, HEAD_DIM, WIDTH)
    values[:, :, :HEAD_DIM] = torch.eye(HEAD_DIM)
    return {
        prefix + "q_proj.weight": torch.zeros(WIDTH, WIDTH),
        prefix + "q_proj.bias": queries.reshape(-1),
        prefix + "k_proj.weight": torch.zeros(KV_HEADS * HEAD_DIM, WIDTH),
        prefix + "k_proj.bias": keys.reshape(-1),
        prefix + "v_proj.weight": values.reshape(-1, WIDTH),
        prefix + "v_proj.bias": torch.zeros(KV_HEADS * HEAD_DIM),
        prefix + "o_proj.weight": torch.eye(WIDTH),
        prefix + "o_proj.bias": torch.zeros(WIDTH),
        prefix + "q_norm.weight": torch.full((HEAD_DIM,), SHARPNESS),
        prefix + "k_norm.weight": torch.full((HEAD_DIM,), SHARPNESS),
    }


def _matrix(rows: int, columns: int, generator: torch.Generator) -> torch.Tensor:
    return torch.randn(rows, columns, generator=generator) / columns**0.5
