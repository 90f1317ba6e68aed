"""Labels of nodes, and which nodes `cluster.require` asks for, with Ray's own grammar of selectors."""

import re
from collections.abc import Mapping

from orchestrator.errors import ConfigError

RAY_NODE = "ray.io/node-id"
"""Label that Ray gives every node: its id."""
ACCELERATOR = "accelerator"
"""Short name, in `cluster.require`, of the label in which Ray says what its GPUs are."""
_RAY_ACCELERATOR = "ray.io/accelerator-type"

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_KEY = re.compile(rf"(?:[A-Za-z0-9.-]{{1,253}}/)?{_NAME}")
_VALUE = re.compile(rf"(?P<no>!?)(?:in\((?P<many>{_NAME}(?:, ?{_NAME})*)\)|(?P<one>{_NAME}))")


def selector(require: Mapping[str, str]) -> dict[str, str]:
    """Return Ray's label selector for `cluster.require`."""
    return {_RAY_ACCELERATOR if key == ACCELERATOR else key: value for key, value in require.items()}


def check_require(require: Mapping[str, str]) -> None:
    """Refuse what Ray could not read.

    Raises:
        ConfigError: names the key and says what a value may be.
    """
    for key, value in require.items():
        if not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
            message = (
                f"cluster.require has {key}: {value!r}; a key is the name of a node's label (or "
                "`accelerator`), and a value is H100, !H100, in(H100, H200) or !in(H100, H200)"
            )
            raise ConfigError(message)


def matches(wanted: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether a node's labels are what a selector asks for, as Ray decides it."""
    return all(_accepts(value, labels.get(key)) for key, value in wanted.items())


def _accepts(value: str, label: str | None) -> bool:
    found = _VALUE.fullmatch(value)
    assert found is not None, "check_require has seen it"
    names = {name.strip() for name in (found["many"] or found["one"]).split(",")}
    return (label in names) != bool(found["no"])
