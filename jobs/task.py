"""What a block is told, and what it reports back. Plain data: it crosses machines and process versions."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from engines.spec import EngineConfig
from jobs.cache_state import CachePlan
from jobs.load import LoadLevel
from jobs.result import PLANNED, CellResult
from jobs.slo import Slo
from jobs.workload.tokens import TokenWorkload


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTask:
    """One cell to measure."""

    cell: str
    """Id of the cell."""
    level: LoadLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTask:
    """One fresh engine (or its replicas) of one arm, and the cells to measure on it, in order."""

    run: str
    """Name of the run: folder of its engine files."""
    config: EngineConfig
    role: str
    cells: tuple[CellTask, ...]
    factors: Mapping[str, str] = field(default_factory=dict)
    kv_of: EngineConfig | None = None
    """The engine whose KV cache this one is clamped to (`config.kv_match`); None for its natural size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTask:
    """One segment of one block."""

    block: int
    segment: int
    devices: int
    """Devices of the slice."""
    engine_cores: int
    """CPU cores for all engines of the slice."""
    load_cores: int
    """CPU cores for the load process."""
    resource: str
    """Ray resource that stands for a device; `GPU` devices are named by CUDA_VISIBLE_DEVICES."""
    round: int = 0
    """Round of the sweep that the block belongs to: 0 is what was planned at first."""
    kind: str = PLANNED
    """Why the block is measured: one of `jobs.result.KINDS`."""
    runs: tuple[RunTask, ...]
    workload: TokenWorkload
    workload_digest: str
    seed: int
    warmup_requests: int
    """Requests a user and warm-up round; 0 for no warm-up."""
    warmup_rounds_max: int = 3
    """Most warm-up rounds."""
    cache: CachePlan = field(default_factory=CachePlan)
    """State of the prefix cache before each replay."""
    slo: Slo = field(default_factory=Slo)
    """Limits that goodput is counted by."""
    ready_seconds: float
    stop_seconds: float
    stall_seconds: float
    cell_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted:
    """The block's next step began: an engine start, or a cell on it."""

    block: int
    segment: int
    run: str
    arm: str
    """Digest of the arm."""
    role: str
    cell: str | None = None
    """Id of the cell; None for an engine start."""
    load: str = ""
    """Label of the cell's load level; empty for an engine start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineReport:
    """An engine was started, or failed to."""

    run: str
    label: str
    ready: bool
    seconds: float
    """Time it took."""
    message: str = ""
    """Why it failed."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """`r<replica>-command.json` and `r<replica>-log.txt`; of a ready engine `resolved.json`, and
    `capacity.json` with each replica's KV capacity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStopped:
    """An engine that had been ready is gone."""

    run: str
    files: Mapping[str, bytes]
    """The same files, with the whole log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellReport:
    """A cell has its outcome."""

    result: CellResult
    files: Mapping[str, bytes] = field(default_factory=dict)
    """`requests.parquet`, `gauges.parquet`, `slices.json`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpusHeld:
    """What a stopped engine held has not come back: nobody may get these devices. The block ends with it."""

    block: int
    segment: int
    devices: tuple[str, ...]
    """The block's GPUs as CUDA_VISIBLE_DEVICES named them; empty where a stand-in resource is used."""
    message: str
    """What is still held, and by whom."""


Report = StepStarted | EngineReport | EngineStopped | CellReport | GpusHeld
