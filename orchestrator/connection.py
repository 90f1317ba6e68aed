"""The connection to Ray: to a cluster, or a local Ray of this process; and actors in a slot of it."""

import logging
import math
import os
import socket
from typing import Any

import psutil
import ray
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from orchestrator.errors import RayUnavailableError
from orchestrator.interrupts import handlers_kept
from orchestrator.placement import Slot
from orchestrator.plan import Cluster

REACH_SECONDS = 10.0
"""Longest wait for a head node to take a connection."""

_LOCAL_STARTS = 3
"""Starts of a local Ray: it gives its processes 30 s, which a busy machine with cold caches exceeds once."""


_SPARE_WORKERS = "RAY_prestart_worker_first_driver"
"""Whether Ray starts an idle worker a core beforehand. Blocks have an environment of their own and never get
one of those: they would only compete with the first engine."""


def connect(cluster: Cluster) -> bool:
    """Connect to the cluster, or start a local one; True when this call did it (and its caller ends it).

    Raises:
        RayUnavailableError: no cluster answers, or a local Ray did not come up in the time that Ray gives it.
    """
    if ray.is_initialized():
        return False
    try:
        with handlers_kept():
            _connect(cluster)
    except Exception as error:  # Ray raises nothing narrower than that when a node does not come up
        said = " ".join(str(error).split())[:300]
        message = (
            f"no Ray cluster can be used at cluster.address={cluster.address} ({said}). Start one with `ray "
            "start --head`, or leave cluster.address out for a Ray of this machine"
            if cluster.address
            else f"a local Ray did not start in {_LOCAL_STARTS} attempts ({said}). Ray gives its processes "
            "30 s each time: on a busy machine run the same words again later"
        )
        raise RayUnavailableError(message) from error
    return True


def _connect(cluster: Cluster) -> None:
    if cluster.address:
        _check_reachable(cluster.address)
        _init(address=cluster.address)
        return
    stand_in = (
        {} if cluster.resource == "GPU" else {cluster.resource: float(cluster.slots or os.cpu_count() or 1)}
    )
    os.environ.setdefault(_SPARE_WORKERS, "0")
    for attempt in range(1, _LOCAL_STARTS + 1):
        try:
            _init(
                address="local",  # without it Ray joins whatever cluster runs on this machine
                num_cpus=len(os.sched_getaffinity(0)),
                resources=stand_in,
                include_dashboard=False,
            )
        except Exception:  # as above
            if attempt == _LOCAL_STARTS:
                raise
        else:
            return


def _init(**options: Any) -> None:
    """Call `ray.init`; if it fails, end what it started, of which Ray itself then knows nothing any more."""
    before = set(psutil.Process().children())
    try:
        ray.init(**options, log_to_driver=False, logging_level=logging.WARNING)
    except Exception:
        ray.shutdown()
        started = [process for process in psutil.Process().children() if process not in before]
        for process in started:
            process.kill()
        psutil.wait_procs(started, timeout=5)
        raise


def _check_reachable(address: str) -> None:
    """Knock at `host:port`: Ray itself tries for minutes.

    Raises:
        OSError: nobody answers.
    """
    host, _, port = address.rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=REACH_SECONDS).close()


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
