"""Last lines of real vLLM 0.32 logs, and the cause each has to give."""

import pytest

from engines.vllm import VllmEngine

INITIALISATION = (
    "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
)
"""Stands at the end of every log whose engine core ended during start."""
BAD_FLAG = """\
api_server.py: error: unrecognized arguments: --warp-speed
---
api_server.py: error: argument --kv-cache-dtype: invalid choice: 'int3' (choose from 'auto', 'fp8')
---
pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig
  Value error, Total number of attention heads (4) must be divisible by tensor parallel size (3).
"""
MISSING_MODEL = f"""\
huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name': '/nonexistent/model'.
---
RuntimeError: Cannot find any model weights with `/some/model`
{INITIALISATION}
"""
PORT_IN_USE = """\
    sock.bind(addr)
OSError: [Errno 98] Address already in use
"""
OUT_OF_MEMORY = f"""\
ValueError: To serve at least one request with the model's max seq len (2048), (0.01 GiB KV cache is needed, \
which is larger than the available KV cache memory (0.0 GiB).
{INITIALISATION}
---
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
---
ValueError: Free memory on device cuda:0 (10.1/79.1 GiB) on startup is less than desired GPU memory
"""
LOGS = {
    "bad_flag": BAD_FLAG,
    "missing_model": MISSING_MODEL,
    "port_in_use": PORT_IN_USE,
    "out_of_memory": OUT_OF_MEMORY,
    "died": INITIALISATION,
}
CASES = [(cause, text) for cause, texts in LOGS.items() for text in texts.split("---\n")]


@pytest.mark.parametrize(("cause", "text"), [*CASES, ("died", "")])
def test_a_log_gives_its_cause(cause: str, text: str) -> None:
    assert VllmEngine().classify(text, 1) == cause


def test_a_living_engine_has_not_died() -> None:
    assert VllmEngine().classify("INFO: all is well", None) == "engine"
