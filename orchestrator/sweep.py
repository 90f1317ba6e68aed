"""Collect, then plan: run Hydra over the user's words and keep the resolved points.

The `@hydra.main` function only appends the point it is called with. Hydra composes every point before it
calls it for the first one, so a typo on one axis stops everything before anything starts; planning comes
after it.
"""

import contextlib
import dataclasses
import math
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from orchestrator.acceptance_keys import settled
from orchestrator.errors import ConfigError
from orchestrator.hydra_words import hydra_words
from orchestrator.known_keys import check_known
from orchestrator.schema import register

CONFIG_PATH = "pkg://conf"
_FOLDERS = ("hydra.run.dir", "hydra.sweep.dir")
_PLACES = ("-cp", "--config-path", "-cn", "--config-name", "-cd", "--config-dir")
_OPTIONS_WITH_VALUE = ("-c", "--cfg", "-p", "--package", "--experimental-rerun", *_PLACES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One resolved point of the grid, in plain data."""

    config: Mapping[str, Any]
    """The resolved configuration with the keys of `orchestrator/schema.py`."""
    choices: Mapping[str, str]
    """The user's overrides of this point, key to value as text, sweep axes included."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """Group to the name of its chosen option."""

    def at(self, key: str) -> Any:
        """Return the value at a dotted key.

        Raises:
            KeyError: the configuration has no such key.
        """
        node: Any = self.config
        for part in key.split("."):
            if not isinstance(node, Mapping) or part not in node:
                raise KeyError(key)
            node = node[part]
        return node


def collect(arguments: Sequence[str], *, program: str = "specload sweep") -> tuple[Point, ...]:
    """Return the points that Hydra makes of the command-line `arguments`, in its order.

    Empty after `--cfg`, `--info` and the like, which print and do nothing else.

    Raises:
        ConfigError: Hydra refused the words, or a value that must be set is missing.
    """
    register()
    points: list[Point] = []

    @hydra.main(version_base="1.3", config_path=CONFIG_PATH, config_name="config")
    def append(config: DictConfig) -> None:
        points.append(_point(config))

    with (
        tempfile.TemporaryDirectory(prefix="specload-hydra-") as folder,
        _hydra_environment(),
        _argv([program, *_options_first(arguments), *_output_folders(arguments, folder)]),
    ):
        try:
            append()
        except (HydraException, OmegaConfBaseException) as error:
            raise ConfigError(hydra_words(error)) from error
    # Not within Hydra, which would print the words of the command line before the reason.
    return tuple(_checked(point) for point in points)


def _options_first(arguments: Sequence[str]) -> list[str]:
    """Return the words with Hydra's options before the overrides.

    Hydra's parser gives up on an override that follows an option that followed an override (`a=1 -m b=2`).
    """
    options: list[str] = []
    overrides: list[str] = []
    for word in arguments:
        is_value = bool(options) and options[-1] in _OPTIONS_WITH_VALUE
        (options if word.startswith("-") or is_value else overrides).append(word)
    return [*options, *overrides]


def _output_folders(arguments: Sequence[str], folder: str) -> list[str]:
    """Return overrides that keep Hydra's own output out of the current folder, unless the user placed it."""
    return [
        f"{key}={folder}" for key in _FOLDERS if not any(word.startswith(f"{key}=") for word in arguments)
    ]


def _point(config: DictConfig) -> Point:
    missing = sorted(OmegaConf.missing_keys(config))
    if missing:
        message = f"{missing[0]} is not set; choose an option of its group or give `{missing[0]}=VALUE`"
        raise MissingMandatoryValue(message)
    plain = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    assert isinstance(plain, dict)
    hydra_config = HydraConfig.get()
    words = [word.lstrip("+~").partition("=") for word in hydra_config.overrides.task]
    groups = hydra_config.runtime.choices
    return Point(
        config={str(key): value for key, value in plain.items()},
        choices={key.partition("@")[0]: value for key, _, value in words},
        groups={str(key): str(option) for key, option in groups.items() if key in plain},
    )


def _checked(point: Point) -> Point:
    """Return `point` with one form of acceptance, its keys and numbers looked at.

    Raises:
        ConfigError: a key that does not exist, no number, or two forms of acceptance.
    """
    check_known(point.config)
    _check_finite(point.config)
    drafter = point.at("drafter")
    drafter = {**drafter, "acceptance": settled(drafter["acceptance"], point.choices)}
    return dataclasses.replace(point, config={**point.config, "drafter": drafter})


def _check_finite(value: Any, key: str = "") -> None:
    """Refuse `nan` and `inf`: no key has a use for them, and they have no canonical JSON to be known by.

    Raises:
        ConfigError: names the first such key.
    """
    if isinstance(value, Mapping):
        for name, inner in value.items():
            _check_finite(inner, f"{key}.{name}".lstrip("."))
    elif isinstance(value, list):
        for inner in value:
            _check_finite(inner, key)
    elif isinstance(value, float) and not math.isfinite(value):
        message = f"{key} is {value}, which is no number that anything can be set to; give a finite one"
        raise ConfigError(message)


@contextlib.contextmanager
def _argv(arguments: Sequence[str]) -> Iterator[None]:
    before = sys.argv
    sys.argv = list(arguments)
    try:
        yield
    finally:
        sys.argv = before


@contextlib.contextmanager
def _hydra_environment() -> Iterator[None]:
    """Make Hydra raise its errors instead of printing them and leaving the process."""
    before = os.environ.get("HYDRA_FULL_ERROR")
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["HYDRA_FULL_ERROR"]
        else:
            os.environ["HYDRA_FULL_ERROR"] = before


def config_folder() -> Path:
    """Return the folder of the packaged configuration."""
    import conf  # noqa: PLC0415 - only needed to find its own folder

    return Path(str(conf.__file__)).parent
