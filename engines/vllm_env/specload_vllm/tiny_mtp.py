"""A tiny model with a multi-token-prediction layer of its own (the MiMo family), with a chosen agreement.

The layer shares embeddings and output head with the model it belongs to, so what it drafts has to be in them:
the first half of a token's embedding is the code of its successor, the second half that of its drafted
successor. The output head reads the first half; the layer's `input_proj` moves the second half there. As with
a draft model, the layer is run once a draft token.
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
    TARGET_LAYERS,
    VOCABULARY,
    decoder_layer,
    drafted,
    generator_of,
    save_acceptance,
    save_model,
    successors,
)
from specload_vllm.tiny_text import tokenizer

HALF = HIDDEN // 2


def build_mtp(folder: Path, agreement: float) -> None:
    """Write the model, its layer included, with its tokenizer."""
    following = successors(VOCABULARY)
    drafts = drafted(following, agreement)
    generator = generator_of("mtp")
    codes = torch.randn(VOCABULARY, HALF, generator=generator)
    embed = torch.randn(VOCABULARY, HIDDEN, generator=generator)
    ordinary = following >= 0
    embed[ordinary] = torch.cat((codes[following[ordinary]], codes[drafts[ordinary]]), dim=1)
    moved = torch.zeros(HIDDEN, 2 * HIDDEN)
    moved[:HALF, HIDDEN + HALF :] = torch.eye(HALF)
    own = "model.mtp_layers.0."
    tensors = {
        "model.embed_tokens.weight": embed,
        "lm_head.weight": torch.cat((codes, torch.zeros(VOCABULARY, HALF)), dim=1),
        "model.norm.weight": torch.ones(HIDDEN),
        own + "input_proj.weight": moved,
        own + "token_layernorm.weight": torch.ones(HIDDEN),
        own + "hidden_layernorm.weight": torch.ones(HIDDEN),
        own + "final_layernorm.weight": torch.ones(HIDDEN),
    }
    for prefix in (*(f"model.layers.{layer}." for layer in range(TARGET_LAYERS)), own):
        tensors |= decoder_layer(prefix, generator) | _biases(prefix)
    config: dict[str, Any] = {
        **LLAMA,
        "architectures": ["MiMoForCausalLM"],
        "model_type": "qwen2",
        "num_hidden_layers": TARGET_LAYERS,
        "num_nextn_predict_layers": 1,
    }
    save_model(folder, tensors, config)
    save_acceptance(folder, following, drafts)
    tokenizer(VOCABULARY).save_pretrained(folder)


def _biases(prefix: str) -> dict[str, torch.Tensor]:
    """Return the biases that this family's attention has."""
    widths = {"q_proj": HEADS * HEAD_DIM, "k_proj": KV_HEADS * HEAD_DIM, "v_proj": KV_HEADS * HEAD_DIM}
    return {f"{prefix}self_attn.{name}.bias": torch.zeros(width) for name, width in widths.items()}
