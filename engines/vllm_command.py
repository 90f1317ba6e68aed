"""The command line and the environment that start vLLM.

The environment is an allow-list: nothing of the caller's own (least of all Ray's variables, which would make
vLLM join the caller's cluster) reaches the engine unless it is named here.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from engines.base import Command, Site
from engines.errors import EngineConfigError
from engines.spec import EngineConfig
from engines.vllm_flags import flag_words
from engines.vllm_speculation import speculation_words
from engines.vllm_strategy import engine_flags, runner_environment

CPU_SERVER = "vllm.entrypoints.openai.api_server"
"""The console command of the CPU distribution asks for the metadata of a package called `vllm` and fails."""
GPU_SERVER = "vllm.entrypoints.cli.main"

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
    "VLLM_CACHE_ROOT",  # compile caches are keyed by their content, so engines may share them
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "CUDA_HOME",
    "NCCL_SOCKET_IFNAME",
)
"""Variables taken over from our own environment where they are set."""

FIXED: Mapping[str, str] = {
    "VLLM_SERVER_DEV_MODE": "1",  # cache reset and the resolved configuration
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "PYTHONUNBUFFERED": "1",
    "PYTHONHASHSEED": "0",  # prefix-cache block hashes start from it
    "PYTHONNOUSERSITE": "1",
}
"""Variables of every vLLM engine."""

PLUGIN = "specload_synthetic"
"""General plugin of the wheel `specload-vllm`: synthetic acceptance on the CPU."""

OWNED_ENV = frozenset({"CUDA_VISIBLE_DEVICES", "VLLM_CPU_OMP_THREADS_BIND", "VLLM_PORT", "RAY_ADDRESS"})
"""Variables the placement sets; `engine.env` may not."""


def vllm_command(config: EngineConfig, site: Site) -> Command:
    """Return what starts `config` at `site`.

    Raises:
        EngineConfigError: a setting vLLM's adapter does not know, or a configuration without model or
        interpreter.
    """
    if config.model.path is None:
        message = f"model.path of {config.model.name} is not set; vLLM needs a model folder or a hub name"
        raise EngineConfigError(message)
    if config.python is None:
        message = "engine.python is not set; name the interpreter of the environment that has vLLM in it"
        raise EngineConfigError(message)
    layout = config.layout
    server = (CPU_SERVER, "--model", _place(config.model.path))
    if config.device == "gpu":
        server = (GPU_SERVER, "serve", _place(config.model.path))
    words = [
        str(Path(config.python).absolute()),
        "-m",
        *server,
        *("--served-model-name", config.model.name),
        *("--host", site.host),
        *("--port", str(site.port)),
        *("--max-model-len", str(config.model.max_context)),
        *("--seed", str(config.seed)),
        *("--tensor-parallel-size", str(layout.tp)),
        *("--pipeline-parallel-size", str(layout.pp)),
        *("--data-parallel-size", str(layout.dp)),
        *("--api-server-count", "1"),
        *("--generation-config", "vllm"),
        "--enable-prompt-tokens-details",
    ]
    if layout.expert_parallel:
        words.append("--enable-expert-parallel")
    if layout.devices > 1:
        words += ["--distributed-executor-backend", "mp"]
    words += flag_words(engine_flags(config))
    words += _clamp_words(config, site)
    words += speculation_words(_placed(config).drafter)
    return Command(argv=tuple(words), env=environment(config, site), cwd=site.directory)


def _clamp_words(config: EngineConfig, site: Site) -> tuple[str, ...]:
    """Return what clamps the KV cache of each rank to the blocks that are left beside another's drafter."""
    if config.kv_match is None or site.kv is None:
        return ()
    if site.kv.rank_blocks is None:
        message = f"the engine of {config.kv_match.drafter} does not tell its KV blocks: nothing to match"
        raise EngineConfigError(message)
    return ("--num-gpu-blocks-override", str(site.kv.rank_blocks))


def environment(config: EngineConfig, site: Site) -> dict[str, str]:
    """Return the engine's whole environment."""
    for name in sorted(config.env):
        if name in OWNED_ENV or name.startswith("RAY_"):
            message = f"engine.env.{name} is set by the placement; remove it"
            raise EngineConfigError(message)
    env = {name: os.environ[name] for name in INHERITED if name in os.environ}
    env |= FIXED
    env |= runner_environment(config)
    if Path(config.model.path or "").is_dir():
        env["HF_HUB_OFFLINE"] = "1"
    if config.device == "cpu":
        env["VLLM_PLUGINS"] = PLUGIN
        env["CUDA_VISIBLE_DEVICES"] = ""
        if binding := thread_binding(config, site.cpus):
            env["VLLM_CPU_OMP_THREADS_BIND"] = binding
    elif site.devices:
        env["CUDA_VISIBLE_DEVICES"] = ",".join(site.devices)
    return env | dict(config.env)


def thread_binding(config: EngineConfig, cpus: tuple[int, ...]) -> str | None:
    """Return vLLM's core list, one part a rank: `0`, `0|1`, `0,1|2,3`.

    Left to itself vLLM refuses several ranks on one NUMA node, or binds them all to the same core. With fewer
    cores than ranks the ranks share; without given cores several ranks are left unbound.
    """
    ranks = config.layout.devices
    if not cpus:
        return "nobind" if ranks > 1 else None
    share = len(cpus) // ranks
    if share == 0:
        return "|".join(str(cpus[rank % len(cpus)]) for rank in range(ranks))
    parts = (cpus[rank * share : (rank + 1) * share] for rank in range(ranks))
    return "|".join(",".join(map(str, part)) for part in parts)


def _place(path: str) -> str:
    """Return a folder as an absolute path (the engine works in a folder of its own), a hub name as it is."""
    return str(Path(path).absolute()) if Path(path).is_dir() else path


def _placed(config: EngineConfig) -> EngineConfig:
    if config.drafter.model is None:
        return config
    return replace(config, drafter=replace(config.drafter, model=_place(config.drafter.model)))
