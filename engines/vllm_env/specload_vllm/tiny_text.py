"""The tokenizer of the tiny models, trained on text that every Python brings along: its own sources."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

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


def tokenizer(vocabulary: int) -> PreTrainedTokenizerFast:
    """Return a byte-level tokenizer of exactly `vocabulary` tokens, the special ones first."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    inner.train_from_iterator(_texts(), trainer)
    size = inner.get_vocab_size()
    if size != vocabulary:
        message = f"the tokenizer has {size} tokens instead of {vocabulary}: the text is too short"
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
