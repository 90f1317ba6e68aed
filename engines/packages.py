"""What is installed in an engine environment, asked of its own interpreter."""

import functools
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from engines.errors import EngineEnvironmentError

PROBE_SECONDS = 60.0

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


def installed_packages(python: str | None, names: tuple[str, ...], *, remedy: str) -> Mapping[str, str]:
    """Return the versions of those of `names` that the environment of `python` has.

    Args:
        python: an interpreter; None for our own.
        names: distributions.
        remedy: how to get an environment that has them; the end of an error's message.

    Raises:
        EngineEnvironmentError: no interpreter there, or one that does not answer.
    """
    interpreter = Path(python or sys.executable)
    if not interpreter.exists():
        message = f"engine.python is {interpreter}, which does not exist; {remedy}"
        raise EngineEnvironmentError(message)
    try:
        return _probe(str(interpreter.absolute()), names)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        message = f"engine.python {interpreter} cannot be asked for its packages ({error}); {remedy}"
        raise EngineEnvironmentError(message) from error


def package_version(python: str | None, package: str, title: str) -> str:
    """Return the version of the engine `title`, whose distribution is `package`, in an environment.

    Raises:
        EngineEnvironmentError: no interpreter there, or no such package in its environment.
    """
    remedy = f"set engine.python to the interpreter of an environment that has {title}"
    found = installed_packages(python, (package,), remedy=remedy)
    if package not in found:
        message = f"the environment of {python or sys.executable} has no {title}; {remedy}"
        raise EngineEnvironmentError(message)
    return found[package]


@functools.cache
def _probe(interpreter: str, names: tuple[str, ...]) -> Mapping[str, str]:
    """Ask once per interpreter and process; a failure is not remembered."""
    argv = [interpreter, "-I", "-c", _PROBE, *names]
    answer = subprocess.run(argv, capture_output=True, text=True, timeout=PROBE_SECONDS, check=True)
    found = json.loads(answer.stdout)
    return {str(name): str(version) for name, version in found.items()}
