"""One process placed on the cluster as a block's is, and what it reports: for commands that run no sweep."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import ray
from ray.exceptions import RayError

from orchestrator.connection import actor_in, connect
from orchestrator.placement import Demand, Slot
from orchestrator.plan import FAIL, Cluster
from orchestrator.slots import Slots

WAIT_LINE_SECONDS = 30.0
"""How often a command says that it waits for devices."""


class ProcessLostError(Exception):
    """The placed process, or its node, is gone; the message is Ray's first line."""


def placed_reports(
    cluster: Cluster,
    devices: int,
    runner: type,
    make_task: Callable[[Demand], Any],
    *,
    name: str,
    say: Callable[[str], None],
) -> Iterator[Any]:
    """Run `runner().run(task)` on a node with so many devices, and yield what it reports.

    Args:
        cluster: where to.
        devices: devices of the slice.
        runner: class of the process.
        make_task: returns the task, told how many cores the process gets.
        name: name of the slice.
        say: prints a line while devices are waited for.

    Raises:
        ProcessLostError: the process was lost.
        PlacementError: the cluster can never hold it.
        RayUnavailableError: there is no cluster.
    """
    ours = connect(cluster)
    try:
        slots = Slots(cluster)
        slots.refresh()
        if cluster.on_infeasible == FAIL:
            slots.check([devices])
        demand = Demand.of(devices, cluster)
        slot = slots.ask(slots.anywhere(demand), name=name)
        actor: Any = None
        try:
            _wait(slot, f"waiting for {devices} {cluster.resource} on one node: none has them free", say=say)
            actor = actor_in(slot, cluster, runner)
            for reference in actor.run.options(num_returns="streaming").remote(make_task(demand)):
                yield ray.get(reference)
        except RayError as error:
            raise ProcessLostError(str(error).strip().splitlines()[0]) from error
        finally:
            if actor is not None:
                with suppress(RayError, ValueError):
                    ray.kill(actor)
            slot.release()
    finally:
        if ours:
            ray.shutdown()


def _wait(slot: Slot, why: str, *, say: Callable[[str], None]) -> None:
    """Wait until the slot is reserved, and say `why` every half minute."""
    told = time.monotonic()
    while slot.node() is None:
        if time.monotonic() - told > WAIT_LINE_SECONDS:
            told = time.monotonic()
            say(why)
        time.sleep(0.1)
