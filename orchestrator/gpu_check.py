"""`specload doctor --gpu`: devices, one engine with and without its drafter, all that a cell relies on."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engines.errors import EngineEnvironmentError
from engines.registry import engine_named
from engines.spec import EngineConfig
from jobs.cores import CoreLease
from jobs.fleet import Fleet
from jobs.gpu_facts import NodeGpus, node_gpus
from jobs.gpus import GpuMemory
from jobs.nouns import are, counted
from orchestrator.doctor import MISSING, Finding
from orchestrator.engine_check import PROMPT, TOKENS, Patience, check_engine, drafter_difference
from orchestrator.errors import ConfigError
from orchestrator.gpu_devices import device_findings
from orchestrator.planning import engine_configs
from orchestrator.sweep import Point

READY_SECONDS = 120.0
"""Most patience with a start unless the words say: two starts and the rest fit into five minutes."""
DEFAULTS = {"engine": "vllm", "model": "smollm2", "drafter": "ngram"}
"""Groups that the user's words need not choose."""
_EMULATED = {"model": "llama31_8b", "drafter": "eagle3"}


def check_words(words: Sequence[str]) -> list[str]:
    """Return the user's words with an engine, a small model and a drafter where they name none."""
    named = dict(word.partition("=")[::2] for word in words)
    defaults = DEFAULTS | (_EMULATED if named.get("engine") == "emulator" else {})
    return [*(f"{group}={option}" for group, option in defaults.items() if group not in named), *words]


def run_check(points: Sequence[Point]) -> Iterator[Finding]:
    """Yield what is found, quick things first; every engine is stopped before the next one starts.

    Raises:
        ConfigError: several points, or an engine that may not run.
    """
    if len(points) != 1:
        message = f"doctor --gpu checks one engine, and these words make {len(points)}; give one value a key"
        raise ConfigError(message)
    node = node_gpus()
    yield from device_findings(node)
    settings, timeouts = points[0].config["engine"], points[0].config["timeouts"]
    what = f"engine {settings['name']}"
    if settings["device"] == "gpu" and not node.gpus:
        remedy = "it was not started: `--gpu engine=vllm_cpu` or `engine=emulator` checks the rest here"
        yield Finding(what=what, state=MISSING, detail="it needs a GPU, and none is here", remedy=remedy)
        return
    try:
        config = _allowed(points)
    except EngineEnvironmentError as error:
        yield Finding(
            what=what, state=MISSING, detail="no environment", remedy=" ".join(error.message.split())
        )
        return
    ready = timeouts["ready"]
    if "timeouts.ready" not in points[0].choices:
        ready = min(READY_SECONDS, ready)
    yield from _engines(config, node, Patience(ready=ready, stop=timeouts["stop"]))


def _allowed(points: Sequence[Point]) -> EngineConfig:
    """Return the engine that the words ask for, if it may run."""
    (config,) = engine_configs(points)
    refusals = engine_named(config.engine).refusals(config)
    if refusals:
        message = f"engine {config.label} may not run: {'; '.join(refusal.reason for refusal in refusals)}"
        raise ConfigError(message)
    if config.model.max_context < len(PROMPT) + TOKENS:
        message = f"model.max_context is {config.model.max_context}; the check needs {len(PROMPT) + TOKENS}"
        raise ConfigError(message)
    return config


def _engines(config: EngineConfig, node: NodeGpus, patience: Patience) -> Iterator[Finding]:
    """Yield the findings on the engine without its drafter, then with it."""
    engine = engine_named(config.engine)
    names: tuple[str, ...] = ()
    if config.device == "gpu":
        names = _devices(node, config.layout.devices)
        if not names:
            detail = (
                f"{config.layout.label} needs {counted(config.layout.devices, 'GPU')}, {len(node.gpus)} "
                f"{are(len(node.gpus))} here"
            )
            remedy = "it was not started: choose a smaller layout, and look at CUDA_VISIBLE_DEVICES"
            yield Finding(what=config.label, state=MISSING, detail=detail, remedy=remedy)
            return
    memory = GpuMemory(names)
    dumps: list[Mapping[str, Any]] = []
    known: frozenset[str] = frozenset()
    with CoreLease(engine=config.layout.devices, load=1) as lease:
        for chosen in (config,) if config.drafter.is_none else (config.baseline(), config):
            fleet = Fleet(
                engine,
                chosen,
                name="doctor",
                devices=chosen.layout.devices,
                device_names=names,
                cores=lease.cores,
            )
            try:
                resolved = yield from check_engine(fleet, memory, patience, known=known)
            finally:
                fleet.stop(grace=patience.stop)
                fleet.remove_files()
            if resolved is None:
                return
            dumps.append(resolved)
            known = frozenset(series.name for series in engine.series if not series.drafter)
    if len(dumps) > 1:
        yield drafter_difference(engine, config, *dumps)


def _devices(node: NodeGpus, count: int) -> tuple[str, ...]:
    """Return `count` GPUs, as CUDA_VISIBLE_DEVICES names them, unused ones first; empty if too few."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = [str(gpu.index) for gpu in node.gpus] if visible is None else visible.split(",")
    used = {name for gpu in node.gpus if gpu.tenants for name in (str(gpu.index), gpu.uuid)}
    chosen = sorted((name.strip() for name in names if name.strip()), key=lambda name: name in used)
    return tuple(chosen[:count]) if len(chosen) >= count else ()
