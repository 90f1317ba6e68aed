"""The state of a sweep at one moment: what a live display shows, and what lies in `status.json` beside it.

The driver writes it at each event and at least once a second; nobody needs it to go on. Whoever reads it
later judges first whether the driver that wrote it still lives.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from analysis.objectives import DEFAULT
from orchestrator.errors import ConfigError
from orchestrator.lock import STALE_SECONDS, Owner

FILE = "status.json"
SCHEMA = 1
RUNNING = "running"
FINISHED = "finished"
STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningStep:
    """What one block is doing."""

    block: int
    segment: int
    node: str
    """Address or name of its node; empty while unknown."""
    devices: int
    """Devices of its slice."""
    arm: str
    """Label of the arm; empty between two steps."""
    role: str
    """`opening`, `closing` or `treatment`; empty between two steps."""
    load: str
    """Label of the load level; empty while an engine starts."""
    seconds: float
    """How long the step has taken so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSoFar:
    """The ratio of a finished pair: preliminary, no verdict."""

    arm: str
    """Label of the treatment."""
    load: str
    """Label of the load level."""
    block: int
    objective: str = DEFAULT
    """Whose ratio it is: the plan's objective, a name in `analysis.objectives.OBJECTIVES`."""
    ratio: float
    """Figure of the treatment over that of its baselines in this block."""
    blocks: int
    """Blocks in which the pair is finished, this one included."""
    mean: float
    """Geometric mean of the ratios of those blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A sweep at one moment."""

    sweep: str
    state: str
    """`running`; `finished`: every cell has its outcome; `stopped`: no driver runs it, and it can go on."""
    measured: int = 0
    """Cells so far, over all runs of the sweep, as are the next five."""
    invalid: int = 0
    failed: int = 0
    infeasible: int = 0
    causes: Mapping[str, int] = field(default_factory=dict)
    """Cause -> cells, of the invalid and the failed ones."""
    left: int = 0
    """Cells that have no outcome yet, or are measured again; baselines of a block that goes on count."""
    left_if_stopped: int = 0
    """What would be left if it were stopped now: a block that is cut short measures its baselines anew."""
    running: tuple[RunningStep, ...] = ()
    """By block."""
    waiting: int = 0
    """Blocks that have no slice yet."""
    resource: str = ""
    """Ray resource that stands for a device."""
    devices_in_use: int = 0
    devices_held: int = 0
    """Devices set aside until the sweep's end, because an engine's memory did not come back."""
    devices_total: int = 0
    """Devices of the cluster; 0 before it is known."""
    seconds: float = 0.0
    """How long this run of the sweep has taken."""
    seconds_left: float | None = None
    """Expected; None until an engine start and a cell were timed."""
    pairs: tuple[PairSoFar, ...] = ()
    """Pairs that finished last, the latest first."""
    notes: tuple[str, ...] = ()
    """What was said last about the cluster and lost blocks, the latest last."""
    owner: Owner
    """The driver."""
    heartbeat: str
    """UTC time of this status, ISO 8601."""
    schema: int = SCHEMA

    @property
    def done(self) -> int:
        """Cells that have their outcome."""
        return self.measured + self.invalid + self.failed + self.infeasible

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`'s form.

        Raises:
            ValueError: another schema version.
        """
        if data.get("schema") != SCHEMA:
            message = f"status has schema {data.get('schema')!r}; this version reads {SCHEMA}"
            raise ValueError(message)
        parts = {
            "running": tuple(RunningStep(**step) for step in data["running"]),
            "pairs": tuple(PairSoFar(**pair) for pair in data["pairs"]),
            "notes": tuple(data["notes"]),
            "owner": Owner(**data["owner"]),
        }
        return cls(**{**data, **parts})


def write_status(directory: Path, status: Status) -> None:
    """Put `status` in the place of the folder's `status.json`, whole or not at all.

    It is not waited for until it is on the disk: of a status only the latest is worth anything.

    Raises:
        OSError: it could not be written.
    """
    staging = directory / f".{FILE}.part"
    staging.write_text(json.dumps(status.to_dict(), indent=1))
    staging.replace(directory / FILE)


def read_status(directory: Path) -> Status:
    """Return what a sweep's `status.json` (or this file itself) says, judged by whether its driver lives.

    Raises:
        ConfigError: there is none, or it is damaged or of another version.
    """
    path = directory / FILE if directory.is_dir() else directory
    try:
        content = path.read_bytes()
    except OSError as error:
        message = (
            f"{path} cannot be read ({error.strerror}); give the folder of a sweep that was started: "
            "results/SWEEP"
        )
        raise ConfigError(message) from error
    return parse_status(content, str(path))


def parse_status(content: bytes, where: str) -> Status:
    """Return what the content of a `status.json` says, judged by whether its driver lives.

    Raises:
        ConfigError: it is damaged or of another version; the message names `where` it lies.
    """
    try:
        return judged(Status.from_dict(json.loads(content)))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        message = f"{where} is no status of this version ({error}); the next run of the sweep writes it anew"
        raise ConfigError(message) from error


def judged(status: Status, *, now: datetime | None = None) -> Status:
    """Return `status` as it is now: a driver that died says `running` for ever.

    One on this machine is looked for; one elsewhere is believed while its last sign of life is recent.
    """
    if status.state != RUNNING or _lives(status, now or datetime.now(UTC)):
        return status
    return stopped(status)


def stopped(status: Status) -> Status:
    """Return `status` of a driver that is known to have ended in the middle."""
    nothing: dict[str, Any] = {"running": (), "waiting": 0, "devices_in_use": 0, "seconds_left": None}
    return replace(status, state=STOPPED, left=status.left_if_stopped, **nothing)


def _lives(status: Status, now: datetime) -> bool:
    if status.owner.here:
        return status.owner.lives()
    return (now - datetime.fromisoformat(status.heartbeat)).total_seconds() < STALE_SECONDS
