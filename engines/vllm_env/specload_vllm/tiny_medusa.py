"""Medusa heads of the tiny target, with a chosen agreement.

A Medusa head i sees the target's state, which is the code of the last token the target has read, and drafts
the token i + 1 places after the one the target answers with. Its blocks are left empty, so that each output
head is a table: of the drafted successor of the token i places after the answer. A step thus accepts what a
draft model with the same wrong tokens would have accepted.
"""

from pathlib import Path
from typing import Any

import torch

from specload_vllm.tiny import (
    HIDDEN,
    VOCABULARY,
    drafted,
    embeddings,
    head,
    save_acceptance,
    save_model,
    successors,
)

DRAFT_HEADS = 3
"""Heads, and so the one draft length K these heads can be used with."""


def build_medusa(folder: Path, agreement: float) -> None:
    """Write Medusa heads."""
    following = successors(VOCABULARY)
    drafts = drafted(following, agreement)
    codes = embeddings()
    tensors: dict[str, torch.Tensor] = {}
    ordinary = following >= 0
    last = following  # the last token that is known when head i drafts: at first the target's own answer
    for index in range(DRAFT_HEADS):
        proposal = torch.full_like(following, -1)
        proposal[ordinary] = drafts[last[ordinary]]
        tensors[f"lm_heads.{index}.weight"] = head(codes, proposal)
        tensors[f"blocks.{index}.layers.0.weight"] = torch.zeros(HIDDEN, HIDDEN)
        after = torch.full_like(following, -1)
        after[ordinary] = following[last[ordinary]]
        last = after
    config: dict[str, Any] = {
        "architectures": ["MedusaModel"],
        "model_type": "medusa",
        "dtype": "float32",
        "hidden_size": HIDDEN,
        "num_heads": DRAFT_HEADS,
        "num_hidden_layers": 1,
        "vocab_size": VOCABULARY,
    }
    save_model(folder, tensors, config)
    save_acceptance(folder, following, drafts)
