"""Planning: from the collected points to the resolved, digested plan and the frozen workload."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engines.base import Site
from engines.digest import canonical_json
from engines.nearest import did_you_mean
from engines.registry import engine_named
from engines.spec import EngineConfig, Model
from jobs.load import LoadLevel
from jobs.workload.tokens import TokenWorkload
from orchestrator.acceptance import acceptance_notes
from orchestrator.arms import build_arms, engine_config, swept_keys
from orchestrator.binding import Bound, bind_workload, epoch_notes
from orchestrator.blocks import schedule
from orchestrator.counterfactuals import counterfactual_refusals
from orchestrator.endpoints import check_servers, engine_notes, is_remote, one_at_a_time
from orchestrator.errors import ConfigError
from orchestrator.exclude import left_out
from orchestrator.goals import check_confirm, check_objective, check_price, slo_of
from orchestrator.labels import check_require
from orchestrator.levels import ascending, check_one_axis, open_loop_notes
from orchestrator.models import folder_digest, model_folder, resolve_model
from orchestrator.names import check_name
from orchestrator.plan import POLICIES, WAIT, Cluster, Plan, Timeouts
from orchestrator.search_request import check_range, search_plan
from orchestrator.secrecy import check_no_secrets
from orchestrator.sharing import check_share, sharing_notes
from orchestrator.strategy import cache_plan, strategy_refusals
from orchestrator.sweep import Point

SHARED = (
    "name",
    "results",
    "seed",
    "exclude",
    "workload",
    "cache.state",
    "cache.prime",
    "cache.expect",
    "cache.reset_seconds",
    "load.search",
    "load.search_width",
    "load.search_rounds",
    "design",
    "cluster",
    "tracking",
    "timeouts",
)
"""Groups and keys that belong to the sweep as a whole and so cannot be an axis of it."""

_CPUS_PER_DEVICE = {"gpu": 2.0, "cpu": 1.0, "emulated": 0.25, "remote": 0.01}
_SLOTS = {"emulated": 8, "remote": 64}
_CUSTOM_RESOURCE = "engine_slot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan with what it takes to run it."""

    plan: Plan
    workload: TokenWorkload


def make_plan(points: Sequence[Point]) -> Planned:
    """Return the plan of the collected points.

    Raises:
        ConfigError: the grid cannot be one sweep, every arm is refused, a model folder is unusable.
        EngineEnvironmentError: an engine's environment is missing.
        WorkloadError: the workload is missing, damaged, or fits no model.
    """
    shared = _shared(points)
    for point in points:
        check_no_secrets(point.config)
    kept, notes = left_out(points, shared["exclude"])
    entries = list(zip(kept, engine_configs(kept), strict=True))
    devices = {config.device for _, config in entries}
    if len(devices) > 1:
        message = (
            f"engine.device is an axis ({', '.join(sorted(devices))}); a block runs on one kind of device"
        )
        raise ConfigError(message)
    cluster = cluster_for(shared["cluster"], devices.pop())
    if any(is_remote(config) for _, config in entries):
        cluster = one_at_a_time(cluster)
    cache = cache_plan(shared["cache"])
    design = shared["design"]
    _check_design(design)
    slo = slo_of(design["slo"])
    search = search_plan(shared["load"], design)
    check_objective(design["objective"], slo)
    arms = build_arms(
        entries,
        factors=swept_keys(kept),
        refusals=lambda config: (
            *engine_named(config.engine).refusals(config),
            *strategy_refusals(config, cache),
            *counterfactual_refusals(config, engine_named(config.engine).capabilities),
        ),
        devices=cluster.slots,
        share=design["share"],
    )
    check_settings([arm.config for arm in arms.allowed])
    check_range(search, arms.allowed)
    bound = bind_workload(shared["workload"], [arm.config for arm in arms.allowed], seed=shared["seed"])
    levels = ascending({level for arm in arms.allowed for level in arm.levels})
    check_one_axis(levels)
    blocks = schedule(arms.allowed, blocks=design["blocks"], seed=shared["seed"], share=design["share"])
    check_servers(blocks, arms.allowed)
    plan = Plan(
        name=shared["name"],
        arms=arms.allowed,
        refused=arms.refused,
        blocks=blocks,
        workload=bound.ref,
        cluster=cluster,
        timeouts=Timeouts(**shared["timeouts"]),
        seed=shared["seed"],
        threshold=design["threshold"],
        warmup_requests=design["warmup_requests"],
        warmup_rounds_max=design["warmup_rounds_max"],
        cache=cache,
        slo=slo,
        objective=design["objective"],
        tracking=shared["tracking"],
        notes=(
            *notes,
            *arms.notes,
            *acceptance_notes(arm.config for arm in arms.allowed),
            *sharing_notes(arms.allowed, design["share"]),
            *engine_notes(arms.allowed),
            *_load_notes(bound, levels),
        ),
        overrides=_words(points),
        budget=design["budget"],
        confirm=design["confirm"],
        search=search,
        gpu_hour_price=design["gpu_hour_price"],
        currency=design["currency"],
    )
    return Planned(plan=plan, workload=bound.workload)


def _shared(points: Sequence[Point]) -> Mapping[str, Any]:
    first = points[0].config
    for point in points:
        for key in SHARED:
            if canonical_json(point.at(key)) != canonical_json(points[0].at(key)):
                hint = "use design.blocks for replicates" if key == "seed" else "run one sweep per value"
                message = f"{key} belongs to the sweep as a whole and cannot be one of its axes; {hint}"
                raise ConfigError(message)
    try:
        check_name(first["name"])
    except ValueError as error:
        raise ConfigError(str(error)) from error
    return first


def engine_configs(points: Sequence[Point]) -> list[EngineConfig]:
    """Return the engine configuration of each point, versions probed and model folders resolved.

    Raises:
        ConfigError: an unknown device, an unusable model folder, or a value out of its range.
        EngineEnvironmentError: an engine's environment is missing.
    """
    models: dict[str, Model] = {}
    versions: dict[tuple[str, str | None], str] = {}
    configs = []
    for point in points:
        engine, model = point.config["engine"], point.config["model"]
        python = _interpreter(engine["python"])
        known = (engine["name"], python)
        if engine["device"] not in _CPUS_PER_DEVICE:
            guess = did_you_mean(engine["device"], _CPUS_PER_DEVICE)
            message = (
                f"engine.device is {engine['device']!r}{guess}; choose one of {', '.join(_CPUS_PER_DEVICE)}"
            )
            raise ConfigError(message)
        if known not in versions:
            versions[known] = engine_named(engine["name"]).version(python, device=engine["device"])
        key = canonical_json(model)
        if key not in models:
            models[key] = resolve_model(model["name"], model["path"], model["max_context"])
        if models[key].path is None and engine["device"] != "emulated":
            message = (
                f"model {model['name']!r} has no folder (model.path is null), so engine {engine['name']!r} "
                "cannot load it, nor anybody its tokenizer; choose a model with a folder, for instance "
                "model=smollm2"
            )
            raise ConfigError(message)
        try:
            config = engine_config(point.config, python=python, version=versions[known], model=models[key])
        except ValueError as error:
            raise ConfigError(str(error)) from error
        configs.append(_with_draft_model(config))
    return configs


def _interpreter(python: str | None) -> str | None:
    """Return the path of an engine's interpreter made absolute: workers start in other folders.

    Symbolic links stay: the one in a virtual environment is what makes it that environment.
    """
    if python is None or "/" not in python:
        return python
    return str(Path(python).expanduser().absolute())


def _with_draft_model(config: EngineConfig) -> EngineConfig:
    """Make the draft model's folder absolute and add its digest, where the drafter has one."""
    nowhere = config.device in ("emulated", "remote") or config.drafter.method == "custom_class"
    if config.drafter.model is None or nowhere:
        return config
    folder = model_folder(config.drafter.model, key="drafter.model")
    drafter = replace(config.drafter, model=str(folder), model_digest=folder_digest(folder))
    return replace(config, drafter=drafter)


def cluster_for(settings: Mapping[str, Any], device: str) -> Cluster:
    """Return the cluster with what `null` stands for filled in for this kind of device.

    Raises:
        ConfigError: a label, or a policy, that is none.
    """
    check_require(settings["require"])
    if settings["on_infeasible"] not in POLICIES:
        message = (
            f"cluster.on_infeasible is {settings['on_infeasible']!r}; choose fail (a block that no node can "
            "hold stops the sweep at once) or wait (for a node that joins)"
        )
        raise ConfigError(message)
    if settings["on_infeasible"] == WAIT and settings["address"] is None:
        message = "cluster.on_infeasible=wait needs a cluster (cluster.address): a local Ray never grows"
        raise ConfigError(message)
    resource = settings["resource"] or ("GPU" if device == "gpu" else _CUSTOM_RESOURCE)
    slots = settings["slots"]
    if slots is None and settings["address"] is None and resource != "GPU":
        slots = _SLOTS.get(device) or os.cpu_count()
    cpus = settings["cpus_per_device"]
    return Cluster(
        address=settings["address"],
        resource=resource,
        slots=slots,
        cpus_per_device=_CPUS_PER_DEVICE[device] if cpus is None else cpus,
        load_cpus=settings["load_cpus"],
        require=dict(settings["require"]),
        exclusive_node=settings["exclusive_node"],
        on_infeasible=settings["on_infeasible"],
    )


def check_settings(configs: Sequence[EngineConfig]) -> None:
    """Have the adapters write every command line once: an unknown flag must not wait for an engine's start.

    Raises:
        EngineConfigError: names the setting.
    """
    with tempfile.TemporaryDirectory(prefix="specload-plan-") as folder:
        for config in configs:
            devices = tuple(str(index) for index in range(config.layout.devices))
            site = Site(port=1, directory=Path(folder), devices=devices, cpus=(0,))
            if not is_remote(config):
                engine_named(config.engine).command(config, site)


def _check_design(design: Mapping[str, Any]) -> None:
    if design["blocks"] < 1:
        message = (
            f"design.blocks is {design['blocks']}; it counts replicates: choose 1 or more (2 for a verdict)"
        )
        raise ConfigError(message)
    check_share(design["share"])
    if design["budget"] is not None and design["budget"] <= 0:
        message = (
            f"design.budget is {design['budget']:g}; it counts GPU-hours (device-hours where there is no "
            "GPU): choose more than 0, or null for no limit"
        )
        raise ConfigError(message)
    check_confirm(design["confirm"])
    check_price(design["gpu_hour_price"])
    if design["warmup_requests"] < 0 or design["threshold"] < 0:
        message = "design.warmup_requests and design.threshold cannot be negative; 2 and 0.02 are usual"
        raise ConfigError(message)
    if design["warmup_rounds_max"] < 1:
        message = (
            f"design.warmup_rounds_max is {design['warmup_rounds_max']}; choose 1 or more "
            "(design.warmup_requests=0 leaves the warm-up out)"
        )
        raise ConfigError(message)


def _load_notes(bound: Bound, levels: Sequence[LoadLevel]) -> list[str]:
    closed = [level.concurrency for level in levels if level.concurrency is not None]
    return [*epoch_notes(bound.ref, closed), *open_loop_notes(levels, bound.workload)]


def _words(points: Sequence[Point]) -> tuple[str, ...]:
    values: dict[str, dict[str, None]] = {}
    for point in points:
        for key, value in point.choices.items():
            values.setdefault(key, {})[value] = None
    return tuple(f"{key}={','.join(seen)}" for key, seen in values.items())
