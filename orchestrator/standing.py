"""What a pool of blocks says beside the blocks' own reports: their ends, notes, and how it stands now."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from jobs.task import BlockTask, GpusHeld
from orchestrator.pending import Segment
from orchestrator.placement import Fit, Node, Slot

BLOCK_LOST = "block_lost"
"""The block's process died: killed, out of host memory, or its worker crashed."""
NODE_LOST = "node_lost"
"""The node left the cluster."""
GPUS_HELD = "gpus_held"
"""Its GPUs could not be used any more, and were set aside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockEnded:
    """A block's process is gone: it did all it was told, or `error` says why not."""

    segment: Segment
    task: BlockTask
    seconds: float
    """How long it held its slice."""
    cause: str | None = None
    """`block_lost`, `node_lost` or `gpus_held`; None for a block that did all it was told."""
    error: str | None = None
    """The same for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolNote:
    """Something a person should know: a block waits for a node, GPUs were set aside."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Placing:
    """A segment whose slice has been asked for and is not reserved yet."""

    segment: Segment
    where: Fit
    slot: Slot
    anywhere: bool = False
    """Whether any node will do: none that is here could hold it."""
    since: float = field(default_factory=time.monotonic)


@dataclass(slots=True, kw_only=True)
class Running:
    """A segment in its process."""

    segment: Segment
    task: BlockTask
    where: Fit
    slot: Slot
    actor: Any
    stream: Any
    expected: float | None
    """Seconds it is expected to take."""
    held: GpusHeld | None = None
    """Its word that the slice's GPUs cannot be used any more."""
    since: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """How long it has held its slice."""
        return time.monotonic() - self.since

    @property
    def left(self) -> float:
        """Seconds it is expected to hold its slice from now on; infinite where nobody knows."""
        return math.inf if self.expected is None else max(0.0, self.expected - self.seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningBlock:
    """One block that runs now."""

    block: int
    segment: int
    node: str
    """Address of its node."""
    devices: int
    since: float
    """`time.monotonic()` of the driver at its start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSnapshot:
    """How a pool stands now."""

    running: tuple[RunningBlock, ...]
    waiting: int
    """Blocks without a slice."""
    devices_in_use: int
    devices_held: int
    """Devices set aside until the sweep's end."""
    devices_total: int
    """Devices of the nodes that blocks may run on."""


def snapshot_of(
    running: Sequence[Running], nodes: Sequence[Node], *, held: int, waiting: int
) -> PoolSnapshot:
    """Return the state of a pool that runs `running` on `nodes`."""
    hosts = {node.name: node.host for node in nodes}
    return PoolSnapshot(
        running=tuple(
            RunningBlock(
                block=entry.segment.block.index,
                segment=entry.segment.index,
                node=hosts.get(entry.where.node, entry.where.node),
                devices=entry.where.devices,
                since=entry.since,
            )
            for entry in running
        ),
        waiting=waiting,
        devices_in_use=sum(entry.where.devices for entry in running),
        devices_held=held,
        devices_total=round(sum(node.devices for node in nodes)),
    )
