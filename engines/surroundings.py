"""What the commands of all engines have in common: places, environment, the clamp of the KV cache.

The environment is an allow-list: nothing of the caller's own (least of all Ray's variables, which would make
an engine join the caller's cluster) reaches an engine unless it is named here or by its adapter.
"""

import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from engines.base import Site
from engines.errors import EngineConfigError
from engines.spec import EngineConfig

INHERITED = (
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "SSL_CERT_FILE",
    "HF_HOME",  # where models lie, and a token file where one is needed: tokens never travel in variables
    "HF_HUB_CACHE",
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "CUDA_HOME",
    "NCCL_SOCKET_IFNAME",
)
"""Variables taken over from our own environment where they are set."""

FIXED = {
    "PYTHONUNBUFFERED": "1",
    "PYTHONHASHSEED": "0",  # prefix-cache block hashes start from it
    "PYTHONNOUSERSITE": "1",
}
"""Variables of every engine."""

OWNED = frozenset({"CUDA_VISIBLE_DEVICES", "RAY_ADDRESS"})
"""Variables the placement sets; `engine.env` may not."""


def located(config: EngineConfig, engine: str) -> tuple[str, EngineConfig]:
    """Return the interpreter, and the configuration with model folders as absolute paths.

    An engine works in a folder of its own; hub names stay as they are.

    Raises:
        EngineConfigError: there is no model or no interpreter; `engine` is named in the message.
    """
    if config.model.path is None:
        message = f"model.path of {config.model.name} is not set; {engine} needs a model folder or a hub name"
        raise EngineConfigError(message)
    if config.python is None:
        message = f"engine.python is not set; name the interpreter of the environment that has {engine} in it"
        raise EngineConfigError(message)
    drafter = config.drafter
    if drafter.model is not None:
        drafter = replace(drafter, model=_place(drafter.model))
    model = replace(config.model, path=_place(config.model.path))
    return str(Path(config.python).absolute()), replace(config, model=model, drafter=drafter)


def surroundings(
    config: EngineConfig,
    site: Site,
    *,
    inherited: Collection[str] = (),
    owned: Collection[str] = (),
    forced: str | None = None,
) -> dict[str, str]:
    """Return the variables of every engine; the adapter adds its own, and then `engine.env`.

    Args:
        config: what is started.
        site: where it is started.
        inherited: further variables to take over where they are set.
        owned: further variables the placement sets.
        forced: how the names of the variables start that the drafter's acceptance sets.

    Raises:
        EngineConfigError: `engine.env` sets what the placement or the drafter sets.
    """
    for name in sorted(config.env):
        if name in OWNED or name in owned or name.startswith("RAY_"):
            message = f"engine.env.{name} is set by the placement; remove it"
            raise EngineConfigError(message)
        if forced is not None and name.startswith(forced):
            message = f"engine.env.{name} is set by drafter.acceptance; remove it"
            raise EngineConfigError(message)
    env = {name: os.environ[name] for name in (*INHERITED, *inherited) if name in os.environ}
    env |= FIXED
    if Path(config.model.path or "").is_dir():
        env["HF_HUB_OFFLINE"] = "1"
    if config.device == "cpu":
        env["CUDA_VISIBLE_DEVICES"] = ""
    elif site.devices:
        env["CUDA_VISIBLE_DEVICES"] = ",".join(site.devices)
    return env


def clamped_tokens(config: EngineConfig, site: Site) -> int | None:
    """Return the KV tokens that are left to each rank beside another's drafter; None for the natural size.

    Raises:
        EngineConfigError: the engine to match does not tell its capacity.
    """
    if config.kv_match is None or site.kv is None:
        return None
    if site.kv.rank_tokens is None:
        message = f"the engine of {config.kv_match.drafter} does not tell its KV capacity: nothing to match"
        raise EngineConfigError(message)
    return site.kv.rank_tokens


def _place(path: str) -> str:
    return str(Path(path).absolute()) if Path(path).is_dir() else path
