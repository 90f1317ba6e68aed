"""The connection to Ray: to a cluster, or a local Ray of this process; and actors in a slot of it."""

import logging
import math
import os
from typing import Any

import ray
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from orchestrator.interrupts import handlers_kept
from orchestrator.placement import Slot
from orchestrator.plan import Cluster


def connect(cluster: Cluster) -> bool:
    """Connect to the cluster, or start a local one; True when this call did it (and its caller ends it)."""
    if ray.is_initialized():
        return False
    with handlers_kept():
        _connect(cluster)
    return True


def _connect(cluster: Cluster) -> None:
    if cluster.address:
        ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.WARNING)
        return
    stand_in = (
        {} if cluster.resource == "GPU" else {cluster.resource: float(cluster.slots or os.cpu_count() or 1)}
    )
    ray.init(
        address="local",  # without it Ray joins whatever cluster runs on this machine
        num_cpus=len(os.sched_getaffinity(0)),
        resources=stand_in,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.WARNING,
    )


def actor_in(slot: Slot, cluster: Cluster, runner: type) -> Any:
    """Start an actor of class `runner` that owns the slot's engine bundle, and return its handle."""
    devices = math.ceil(slot.engine_bundle[cluster.resource])
    options: dict[str, Any] = (
        {"num_gpus": devices}
        if cluster.resource == "GPU"
        else {"resources": {cluster.resource: devices}, "num_gpus": 0}
    )
    return (
        ray.remote(runner)
        .options(
            num_cpus=slot.engine_bundle["CPU"],
            max_restarts=0,
            scheduling_strategy=PlacementGroupSchedulingStrategy(slot.group, placement_group_bundle_index=0),
            # Ray starts workers at nice 15, and an engine would inherit it
            runtime_env={"env_vars": {"RAY_worker_niceness": "0"}},
            **options,
        )
        .remote()
    )
