"""The command line and the environment that start SGLang, checked against 0.5.23."""

from typing import Any

from engines.base import Command, Site
from engines.sglang_adaptive import adaptive_files, adaptive_words
from engines.sglang_flags import flag_words
from engines.sglang_speculation import forced_acceptance, speculation_words
from engines.sglang_strategy import strategy_flags
from engines.spec import EngineConfig
from engines.surroundings import clamped_tokens, located, surroundings

FORCED = "SGLANG_SIMULATE_ACC_"
"""How the names of the variables start that the drafter's acceptance sets."""

DEVICES = {"gpu": "cuda", "cpu": "cpu"}


def sglang_command(config: EngineConfig, site: Site) -> Command:
    """Return what starts `config` at `site`.

    Raises:
        EngineConfigError: a setting the adapter does not know or SGLang cannot do, or a configuration without
            model or interpreter.
    """
    python, placed = located(config, "SGLang")
    tokens = clamped_tokens(config, site)
    clamp = {} if tokens is None else {"max_total_tokens": tokens}
    words = [
        python,
        "-m",
        "sglang.launch_server",
        *("--model-path", str(placed.model.path)),
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
    words += flag_words({**config.flags, **strategy_flags(config), **clamp})
    words += speculation_words(placed.drafter)
    words += adaptive_words(placed.drafter, site.directory)
    return Command(
        argv=tuple(words),
        env=environment(config, site),
        cwd=site.directory,
        files=adaptive_files(placed.drafter),
    )


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
    env = surroundings(config, site, forced=FORCED)
    if config.device == "cpu":
        env["SGLANG_USE_CPU_ENGINE"] = "1"
    forced = forced_acceptance(config.drafter)
    if forced is not None:
        env |= forced.env
    return env | dict(config.env)
