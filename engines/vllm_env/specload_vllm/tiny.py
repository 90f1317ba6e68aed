"""Tiny Llama models whose next token is known, and drafters that agree with them on a chosen share of tokens.

The target walks through one cycle over all ordinary tokens: `embed` is Gaussian, and the row of `lm_head`
that belongs to the successor of token c is the embedding of c. Attention and MLP are real but their output
projections are scaled down, so the compute is that of a Llama while its answer is the cycle's, at any batch
shape and in float32 as in bfloat16. A drafter has a table of its own: for a fixed share of the tokens its
successor is a wrong one. Unlike noise on the weights this gives an acceptance that is chosen, the same at
every draft position, and stays what it is under load; and it can be computed before anything runs
(`cycle.py`).

Here are the target and the draft model. The modules `tiny_*` build other families of drafters with the same
table of wrong tokens, so that at equal agreement all are accepted alike and differ in what they cost.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from specload_vllm.cycle import acceptance_table
from specload_vllm.tiny_text import SPECIAL, tokenizer

ACCEPTANCE_FILE = "acceptance.json"
"""File of a drafter's folder (for MTP, of the model's) with the acceptance that its table comes to."""
LONGEST_DRAFT = 16
"""Largest K in that file."""
VOCABULARY = 4096
HIDDEN = 256
INTERMEDIATE = 512
HEADS = 4
KV_HEADS = 2
HEAD_DIM = 64
TARGET_LAYERS = 4
DRAFT_LAYERS = 1
CONTEXT = 4096
STRETCH = 20
"""Tokens of the cycle among which a drafter is wrong equally often: any answer meets its share."""
OUTPUT_SCALE = 1e-3
"""Scale of the output projections: at 1 the last token would drown in what the layers add."""
SEED = 20_240_229
LLAMA: Mapping[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "attention_bias": False,
    "bos_token_id": 1,
    "dtype": "float32",
    "eos_token_id": 3,
    "head_dim": HEAD_DIM,
    "hidden_act": "silu",
    "hidden_size": HIDDEN,
    "intermediate_size": INTERMEDIATE,
    "max_position_embeddings": CONTEXT,
    "mlp_bias": False,
    "num_attention_heads": HEADS,
    "num_hidden_layers": DRAFT_LAYERS,
    "num_key_value_heads": KV_HEADS,
    "pad_token_id": 0,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "vocab_size": VOCABULARY,
}
"""Configuration of a Llama with one layer and the target's dimensions."""


def successors(vocabulary: int) -> torch.Tensor:
    """Return [vocabulary] the successor of each token: one cycle of the ordinary ones, -1 for the special."""
    ordinary = torch.arange(len(SPECIAL), vocabulary)
    walk = ordinary[torch.randperm(len(ordinary), generator=generator_of("cycle"))]
    following = torch.full((vocabulary,), -1, dtype=torch.long)
    following[walk] = walk.roll(-1)
    return following


def drafted(following: torch.Tensor, agreement: float) -> torch.Tensor:
    """Return a drafter's successors: those of `following` for a share of the tokens, else wrong ones.

    In each stretch of the cycle the same number of tokens is wrong, at random places. The wrong tokens pass
    their successors round, so each token still has one.
    """
    walk = _walk(following)
    generator = generator_of("drafter")
    wrong: list[int] = []
    for start in range(0, len(walk), STRETCH):
        stretch = walk[start : start + STRETCH]
        # One order for all drafters: what a better drafter gets wrong, a worse one gets wrong too.
        order = torch.randperm(len(stretch), generator=generator)
        wrong += [stretch[int(index)] for index in order[: round((1 - agreement) * len(stretch))]]
    result = following.clone()
    tokens = torch.tensor(wrong, dtype=torch.long)
    result[tokens] = following[tokens].roll(-1)
    return result


def build_target(folder: Path) -> None:
    """Write the target with its tokenizer."""
    tensors = weights(successors(VOCABULARY), TARGET_LAYERS)
    save_model(folder, tensors, {**LLAMA, "num_hidden_layers": TARGET_LAYERS})
    tokenizer(VOCABULARY).save_pretrained(folder)


def build_drafter(folder: Path, agreement: float) -> None:
    """Write a draft model that agrees with the target on a share `agreement` of the tokens."""
    following = successors(VOCABULARY)
    drafts = drafted(following, agreement)
    save_model(folder, weights(drafts, DRAFT_LAYERS), LLAMA)
    save_acceptance(folder, following, drafts)
    tokenizer(VOCABULARY).save_pretrained(folder)


def save_model(folder: Path, tensors: Mapping[str, torch.Tensor], config: Mapping[str, Any]) -> None:
    """Write a checkpoint: its tensors and its configuration."""
    plain = {name: tensor.contiguous() for name, tensor in tensors.items()}
    save_file(plain, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def save_acceptance(folder: Path, following: torch.Tensor, drafts: torch.Tensor) -> None:
    """Write what the drafter's table of wrong tokens comes to, by draft length."""
    right = [bool(drafts[token] == following[token]) for token in _walk(following)]
    content = {
        "tokens": len(right),
        "wrong_tokens": right.count(False),
        # unconditional, by draft position: one plus their sum is the mean acceptance length
        "rates": acceptance_table(right, LONGEST_DRAFT),
    }
    (folder / ACCEPTANCE_FILE).write_text(json.dumps(content, sort_keys=True) + "\n")


def weights(following: torch.Tensor, layers: int) -> dict[str, torch.Tensor]:
    """Return the tensors of a Llama that answers token c with `following[c]`."""
    generator = generator_of("weights")
    embed = torch.randn(VOCABULARY, HIDDEN, generator=generator)
    tensors = {
        "model.embed_tokens.weight": embed,
        "lm_head.weight": head(embed, following),
        "model.norm.weight": torch.ones(HIDDEN),
    }
    for layer in range(layers):
        tensors |= decoder_layer(f"model.layers.{layer}.", generator)
    return tensors


def embeddings() -> torch.Tensor:
    """Return [vocabulary, hidden] the target's embeddings, which drafters share or build on."""
    return torch.randn(VOCABULARY, HIDDEN, generator=generator_of("weights"))


def head(codes: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
    """Return [vocabulary, width] the output head that answers the code of token c with `following[c]`."""
    rows = torch.zeros_like(codes)
    known = following >= 0
    rows[following[known]] = codes[known]
    return rows


def decoder_layer(prefix: str, generator: torch.Generator) -> dict[str, torch.Tensor]:
    """Return the tensors of one Llama layer whose output is small beside its input."""

    def matrix(rows: int, columns: int, scale: float = 1.0) -> torch.Tensor:
        return torch.randn(rows, columns, generator=generator) * (scale / columns**0.5)

    return {
        prefix + "input_layernorm.weight": torch.ones(HIDDEN),
        prefix + "post_attention_layernorm.weight": torch.ones(HIDDEN),
        prefix + "self_attn.q_proj.weight": matrix(HEADS * HEAD_DIM, HIDDEN),
        prefix + "self_attn.k_proj.weight": matrix(KV_HEADS * HEAD_DIM, HIDDEN),
        prefix + "self_attn.v_proj.weight": matrix(KV_HEADS * HEAD_DIM, HIDDEN),
        prefix + "self_attn.o_proj.weight": matrix(HIDDEN, HEADS * HEAD_DIM, OUTPUT_SCALE),
        prefix + "mlp.gate_proj.weight": matrix(INTERMEDIATE, HIDDEN),
        prefix + "mlp.up_proj.weight": matrix(INTERMEDIATE, HIDDEN),
        prefix + "mlp.down_proj.weight": matrix(HIDDEN, INTERMEDIATE, OUTPUT_SCALE),
    }


def generator_of(purpose: str) -> torch.Generator:
    """Return a generator that depends on nothing but its purpose."""
    return torch.Generator().manual_seed(SEED + sum(purpose.encode()))


def _walk(following: torch.Tensor) -> list[int]:
    """Return the cycle's tokens in order, from the smallest on."""
    start = int((following >= 0).nonzero()[0])
    walk, token = [start], int(following[start])
    while token != start:
        walk.append(token)
        token = int(following[token])
    return walk
