"""The command line and the environment that start SGLang, checked against 0.5.23.

The environment is an allow-list: nothing of the caller's own reaches the engine unless it is named here.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from engines.base import Command, Site
from engines.errors import EngineConfigError
from engines.sglang_flags import flag_words
from engines.sglang_speculation import forced_acceptance, speculation_words
from engines.sglang_strategy import strategy_flags
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
    "HF_HOME",
    "HF_HUB_CACHE",
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "CUDA_HOME",
    "NCCL_SOCKET_IFNAME",
)
"""Variables taken over from our own environment where they are set."""

FIXED = {
    "PYTHONUNBUFFERED": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONNOUSERSITE": "1",
}
"""Variables of every SGLang engine."""

OWNED_ENV = frozenset({"CUDA_VISIBLE_DEVICES", "RAY_ADDRESS"})
"""Variables the placement sets; `engine.env` may not."""
FORCED = "SGLANG_SIMULATE_ACC_"
"""Variables that the drafter's acceptance sets."""

DEVICES = {"gpu": "cuda", "cpu": "cpu"}


def sglang_command(config: EngineConfig, site: Site) -> Command:
    """Return what starts `config` at `site`.

    Raises:
        EngineConfigError: a setting the adapter does not know or SGLang cannot do, or a configuration without
            model or interpreter.
    """
    if config.model.path is None:
        message = f"model.path of {config.model.name} is not set; SGLang needs a model folder or a hub name"
        raise EngineConfigError(message)
    if config.python is None:
        message = "engine.python is not set; name the interpreter of the environment that has SGLang in it"
        raise EngineConfigError(message)
    words = [
        str(Path(config.python).absolute()),
        "-m",
        "sglang.launch_server",
        *("--model-path", _place(config.model.path)),
        *("--served-model-name", config.model.name),
        *("--host", site.host),
        *("--port", str(site.port)),
        *("--context-length", str(config.model.max_context)),
        *("--random-seed", str(config.seed)),
        *("--device", DEVICES.get(config.device, config.device)),
        *layout_words(config),
        "--enable-metrics",
        "--enable-cache-report",
        *("--decode-log-interval", "1"),
        *("--stream-interval", "1"),
        *("--sampling-defaults", "openai"),
    ]
    words += flag_words({**config.flags, **strategy_flags(config), **_clamp(config, site)})
    drafter = config.drafter
    if drafter.model is not None:
        drafter = replace(drafter, model=_place(drafter.model))
    words += speculation_words(drafter)
    return Command(argv=tuple(words), env=environment(config, site), cwd=site.directory)


def _clamp(config: EngineConfig, site: Site) -> dict[str, Any]:
    """Return what clamps the KV cache of each rank to the tokens that are left beside another's drafter."""
    if config.kv_match is None or site.kv is None:
        return {}
    if site.kv.rank_tokens is None:
        message = f"the engine of {config.kv_match.drafter} does not tell its KV capacity: nothing to match"
        raise EngineConfigError(message)
    return {"max_total_tokens": site.kv.rank_tokens}


def layout_words(config: EngineConfig) -> tuple[str, ...]:
    """Return the flags of the layout: `dp` are full replicas of the model behind one port."""
    layout = config.layout
    sizes: dict[str, Any] = {"--tp-size": layout.tp, "--dp-size": layout.dp, "--pp-size": layout.pp}
    if layout.expert_parallel:
        sizes["--ep-size"] = layout.tp
    return tuple(word for name, size in sizes.items() for word in (name, str(size)))


def environment(config: EngineConfig, site: Site) -> dict[str, str]:
    """Return the engine's whole environment.

    Raises:
        EngineConfigError: `engine.env` sets what the placement or the drafter sets.
    """
    for name in sorted(config.env):
        if name in OWNED_ENV or name.startswith("RAY_"):
            message = f"engine.env.{name} is set by the placement; remove it"
            raise EngineConfigError(message)
        if name.startswith(FORCED):
            message = f"engine.env.{name} is set by drafter.acceptance; remove it"
            raise EngineConfigError(message)
    env = {name: os.environ[name] for name in INHERITED if name in os.environ}
    env |= FIXED
    if Path(config.model.path or "").is_dir():
        env["HF_HUB_OFFLINE"] = "1"
    if config.device == "cpu":
        env["SGLANG_USE_CPU_ENGINE"] = "1"
        env["CUDA_VISIBLE_DEVICES"] = ""
    elif site.devices:
        env["CUDA_VISIBLE_DEVICES"] = ",".join(site.devices)
    forced = forced_acceptance(config.drafter)
    if forced is not None:
        env |= forced.env
    return env | dict(config.env)


def _place(path: str) -> str:
    """Return a folder as an absolute path (the engine works in a folder of its own), a hub name as it is."""
    return str(Path(path).absolute()) if Path(path).is_dir() else path
