"""The command line, configuration file and environment that start TensorRT-LLM, after its documentation."""

import json
import os
from dataclasses import replace
from pathlib import Path

from engines.base import Command, Site
from engines.errors import EngineConfigError
from engines.spec import EngineConfig
from engines.trtllm_config import config_file
from engines.trtllm_speculation import forced_acceptance

CONFIG_NAME = "trtllm.yaml"
SERVER = "tensorrt_llm.commands.serve"

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
    "TRITON_CACHE_DIR",
    "CUDA_HOME",
    "NCCL_SOCKET_IFNAME",
)
"""Variables taken over from our own environment where they are set."""

FIXED = {"PYTHONUNBUFFERED": "1", "PYTHONHASHSEED": "0", "PYTHONNOUSERSITE": "1"}
"""Variables of every TensorRT-LLM engine."""

OWNED_ENV = frozenset({"CUDA_VISIBLE_DEVICES", "RAY_ADDRESS"})
"""Variables the placement sets; `engine.env` may not."""
FORCED = "TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS"
"""Variable that the drafter's acceptance sets."""


def trtllm_command(config: EngineConfig, site: Site) -> Command:
    """Return what starts `config` at `site`.

    Raises:
        EngineConfigError: a setting the adapter does not know or TensorRT-LLM cannot do, or a configuration
            without model or interpreter.
    """
    if config.model.path is None:
        message = (
            f"model.path of {config.model.name} is not set; TensorRT-LLM needs a model folder or a hub name"
        )
        raise EngineConfigError(message)
    if config.python is None:
        message = (
            "engine.python is not set; name the interpreter of the environment that has TensorRT-LLM in it"
        )
        raise EngineConfigError(message)
    layout = config.layout
    words = [
        str(Path(config.python).absolute()),
        "-m",
        SERVER,
        "serve",
        _place(config.model.path),
        *("--backend", "pytorch"),
        *("--host", site.host),
        *("--port", str(site.port)),
        *("--max_seq_len", str(config.model.max_context)),
        *("--tp_size", str(layout.tp)),
        *("--pp_size", str(layout.pp)),
        *(("--ep_size", str(layout.tp)) if layout.expert_parallel else ()),
        *("--extra_llm_api_options", str(site.directory / CONFIG_NAME)),
    ]
    drafter = config.drafter
    if drafter.model is not None:
        config = replace(config, drafter=replace(drafter, model=_place(drafter.model)))
    content = json.dumps(config_file(config, kv_tokens=_clamp(config, site)), indent=1, sort_keys=True)
    return Command(
        argv=tuple(words),
        env=environment(config, site),
        cwd=site.directory,
        files={CONFIG_NAME: content},
    )


def _clamp(config: EngineConfig, site: Site) -> int | None:
    """Return the tokens that are left to each rank beside another's drafter; None for the natural size."""
    if config.kv_match is None or site.kv is None:
        return None
    if site.kv.rank_tokens is None:
        message = f"the engine of {config.kv_match.drafter} does not tell its KV capacity: nothing to match"
        raise EngineConfigError(message)
    return site.kv.rank_tokens


def environment(config: EngineConfig, site: Site) -> dict[str, str]:
    """Return the engine's whole environment.

    Raises:
        EngineConfigError: `engine.env` sets what the placement or the drafter sets.
    """
    for name in sorted(config.env):
        if name in OWNED_ENV or name.startswith("RAY_"):
            message = f"engine.env.{name} is set by the placement; remove it"
            raise EngineConfigError(message)
        if name == FORCED:
            message = f"engine.env.{name} is set by drafter.acceptance; remove it"
            raise EngineConfigError(message)
    env = {name: os.environ[name] for name in INHERITED if name in os.environ}
    env |= FIXED
    if Path(config.model.path or "").is_dir():
        env["HF_HUB_OFFLINE"] = "1"
    if site.devices:
        env["CUDA_VISIBLE_DEVICES"] = ",".join(site.devices)
    forced = forced_acceptance(config.drafter)
    if forced is not None:
        env |= forced.env
    return env | dict(config.env)


def _place(path: str) -> str:
    """Return a folder as an absolute path (the engine works in a folder of its own), a hub name as it is."""
    return str(Path(path).absolute()) if Path(path).is_dir() else path
