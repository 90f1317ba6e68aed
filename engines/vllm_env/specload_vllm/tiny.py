"""Tiny Llama models whose next token is known, and drafters that agree with them on a chosen share of tokens.

The target walks through one cycle over all ordinary tokens: `embed` is Gaussian, and the row of `lm_head`
that belongs to the successor of token c is the embedding of c. Attention and MLP are real but their output
projections are scaled down, so the compute is that of a Llama while its answer is the cycle's, at any batch
shape and in float32 as in bfloat16. A drafter has the same embeddings and another `lm_head`: for a fixed
share of the tokens its successor is a wrong one. Unlike noise on the weights this gives an acceptance that is
chosen, the same at every draft position, and stays what it is under load.
"""

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

AGREEMENTS = {"draft30": 0.3, "draft60": 0.6, "draft90": 0.9}
"""Drafter folder -> share of tokens on which it agrees with the target."""
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
MODULES = (
    "argparse",
    "asyncio.streams",
    "configparser",
    "datetime",
    "doctest",
    "http.client",
    "logging",
    "pathlib",
    "random",
    "smtplib",
    "socketserver",
    "statistics",
    "subprocess",
    "tarfile",
    "threading",
    "typing",
    "unittest.mock",
    "urllib.request",
    "zipfile",
)
"""Standard modules whose sources, with their English, train the tokenizer."""
SPECIAL = ("<|pad|>", "<|bos|>", "<|start|>", "<|end|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|start|>' + message['role'] + '\\n' + message['content'] + '<|end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|start|>assistant\\n' }}{% endif %}"
)


def successors(vocabulary: int) -> torch.Tensor:
    """Return [vocabulary] the successor of each token: one cycle of the ordinary ones, -1 for the special."""
    ordinary = torch.arange(len(SPECIAL), vocabulary)
    walk = ordinary[torch.randperm(len(ordinary), generator=_generator("cycle"))]
    following = torch.full((vocabulary,), -1, dtype=torch.long)
    following[walk] = walk.roll(-1)
    return following


def drafted(following: torch.Tensor, agreement: float) -> torch.Tensor:
    """Return a drafter's successors: those of `following` for a share of the tokens, else wrong ones.

    In each stretch of the cycle the same number of tokens is wrong, at random places. The wrong tokens pass
    their successors round, so each token still has one.
    """
    walk = _walk(following)
    generator = _generator("drafter")
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
    _build(folder, successors(VOCABULARY), TARGET_LAYERS)


def build_drafter(folder: Path, agreement: float) -> None:
    """Write a drafter that agrees with the target on a share `agreement` of the tokens."""
    _build(folder, drafted(successors(VOCABULARY), agreement), DRAFT_LAYERS)


def _build(folder: Path, following: torch.Tensor, layers: int) -> None:
    save_file(weights(following, layers), folder / "model.safetensors", metadata={"format": "pt"})
    config = {
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
        "num_hidden_layers": layers,
        "num_key_value_heads": KV_HEADS,
        "pad_token_id": 0,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "vocab_size": VOCABULARY,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    tokenizer().save_pretrained(folder)


def weights(following: torch.Tensor, layers: int) -> dict[str, torch.Tensor]:
    """Return the tensors of a Llama that answers token c with `following[c]`."""
    generator = _generator("weights")
    embed = torch.randn(VOCABULARY, HIDDEN, generator=generator)
    head = torch.zeros(VOCABULARY, HIDDEN)
    known = following >= 0
    head[following[known]] = embed[known]

    def matrix(rows: int, columns: int, scale: float = 1.0) -> torch.Tensor:
        return torch.randn(rows, columns, generator=generator) * (scale / columns**0.5)

    tensors = {
        "model.embed_tokens.weight": embed,
        "lm_head.weight": head,
        "model.norm.weight": torch.ones(HIDDEN),
    }
    for layer in range(layers):
        prefix = f"model.layers.{layer}."
        tensors |= {
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
    return tensors


def tokenizer() -> PreTrainedTokenizerFast:
    """Return a byte-level tokenizer trained on text that every Python brings along: its own sources."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    inner.train_from_iterator(_texts(), trainer)
    size = inner.get_vocab_size()
    if size != VOCABULARY:
        message = f"the tokenizer has {size} tokens instead of {VOCABULARY}: the text is too short"
        raise RuntimeError(message)
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token=SPECIAL[0],
        bos_token=SPECIAL[1],
        eos_token=SPECIAL[3],
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )


def _texts() -> Iterator[str]:
    for name in MODULES:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            yield Path(spec.origin).read_text(encoding="utf-8")


def _walk(following: torch.Tensor) -> list[int]:
    """Return the cycle's tokens in order, from the smallest on."""
    start = int((following >= 0).nonzero()[0])
    walk, token = [start], int(following[start])
    while token != start:
        walk.append(token)
        token = int(following[token])
    return walk


def _generator(purpose: str) -> torch.Generator:
    """Return a generator that depends on nothing but its purpose."""
    return torch.Generator().manual_seed(SEED + sum(purpose.encode()))
