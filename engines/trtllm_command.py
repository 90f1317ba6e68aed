"""The command line, configuration file and environment that start TensorRT-LLM, after its documentation."""

import json

from engines.base import Command, Site
from engines.spec import EngineConfig
from engines.surroundings import clamped_tokens, located, surroundings
from engines.trtllm_config import config_file
from engines.trtllm_speculation import forced_acceptance

CONFIG_NAME = "trtllm.yaml"
SERVER = "tensorrt_llm.commands.serve"

FORCED = "TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS"
"""Variable that the drafter's acceptance sets."""


def trtllm_command(config: EngineConfig, site: Site) -> Command:
    """Return what starts `config` at `site`.

    Raises:
        EngineConfigError: a setting the adapter does not know or TensorRT-LLM cannot do, or a configuration
            without model or interpreter.
    """
    python, placed = located(config, "TensorRT-LLM")
    layout = config.layout
    words = [
        python,
        "-m",
        SERVER,
        "serve",
        str(placed.model.path),
        *("--backend", "pytorch"),
        *("--host", site.host),
        *("--port", str(site.port)),
        *("--max_seq_len", str(config.model.max_context)),
        *("--tp_size", str(layout.tp)),
        *("--pp_size", str(layout.pp)),
        *(("--ep_size", str(layout.tp)) if layout.expert_parallel else ()),
        *("--extra_llm_api_options", str(site.directory / CONFIG_NAME)),
    ]
    content = config_file(placed, kv_tokens=clamped_tokens(config, site))
    return Command(
        argv=tuple(words),
        env=environment(config, site),
        cwd=site.directory,
        files={CONFIG_NAME: json.dumps(content, indent=1, sort_keys=True)},
    )


def environment(config: EngineConfig, site: Site) -> dict[str, str]:
    """Return the engine's whole environment.

    Raises:
        EngineConfigError: `engine.env` sets what the placement or the drafter sets.
    """
    env = surroundings(config, site, forced=FORCED)
    forced = forced_acceptance(config.drafter)
    if forced is not None:
        env |= forced.env
    return env | dict(config.env)
