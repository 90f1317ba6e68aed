"""The command line and the environment that start vLLM."""

from collections.abc import Mapping

from engines.base import Command, Site
from engines.errors import EngineConfigError
from engines.spec import EngineConfig
from engines.surroundings import located, surroundings
from engines.vllm_flags import flag_words
from engines.vllm_speculation import speculation_words
from engines.vllm_strategy import engine_flags, runner_environment

CPU_SERVER = "vllm.entrypoints.openai.api_server"
"""The console command of the CPU distribution asks for the metadata of a package called `vllm` and fails."""
GPU_SERVER = "vllm.entrypoints.cli.main"

FIXED: Mapping[str, str] = {
    "VLLM_SERVER_DEV_MODE": "1",  # cache reset and the resolved configuration
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}
"""Variables of every vLLM engine."""

PLUGIN = "specload_synthetic"
"""General plugin of the wheel `specload-vllm`: synthetic acceptance on the CPU."""

INHERITED = ("VLLM_CACHE_ROOT",)
"""Taken over where it is set: compile caches are keyed by their content, so engines may share them."""
OWNED = ("VLLM_CPU_OMP_THREADS_BIND", "VLLM_PORT")
"""Variables the placement sets; `engine.env` may not."""


def vllm_command(config: EngineConfig, site: Site) -> Command:
    """Return what starts `config` at `site`.

    Raises:
        EngineConfigError: a setting vLLM's adapter does not know, or a configuration without model or
        interpreter.
    """
    python, placed = located(config, "vLLM")
    layout, model = config.layout, str(placed.model.path)
    server = (GPU_SERVER, "serve", model) if config.device == "gpu" else (CPU_SERVER, "--model", model)
    words = [
        python,
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
    words += speculation_words(placed.drafter)
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
    """Return the engine's whole environment.

    Raises:
        EngineConfigError: `engine.env` sets what the placement sets.
    """
    env = surroundings(config, site, inherited=INHERITED, owned=OWNED)
    env |= FIXED
    env |= runner_environment(config)
    if config.device == "cpu":
        env["VLLM_PLUGINS"] = PLUGIN
        if binding := thread_binding(config, site.cpus):
            env["VLLM_CPU_OMP_THREADS_BIND"] = binding
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
