"""The plan: arms, blocks and cells, resolved and digested. One JSON file reproduces the sweep."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from engines.digest import digest
from engines.spec import EngineConfig
from jobs.cache_state import CachePlan
from jobs.load import LoadLevel
from jobs.result import PLANNED
from jobs.slo import Slo
from orchestrator.acceptance_keys import ACCEPTANCE_KEYS
from orchestrator.names import check_name
from orchestrator.search_plan import SearchPlan

SCHEMA = 1

_IN_LABEL = frozenset(
    {
        "drafter",
        "drafter.method",
        "drafter.k",
        "drafter.model",
        "drafter.acceptance",
        *(f"drafter.acceptance.{key}" for key in ACCEPTANCE_KEYS),
        "drafter.kv",
        "drafter.loaded_only",
    }
)
"""Factors that the configuration's own label already shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One engine configuration and the load levels it is measured at: a treatment, or a layout's baseline."""

    config: EngineConfig
    levels: tuple[LoadLevel, ...]
    """Ascending, without repeats."""
    factors: Mapping[str, str] = field(default_factory=dict)
    """Every swept key with this arm's value, as text."""

    @property
    def digest(self) -> str:
        """Identity of the engine configuration (levels and factors are no part of it)."""
        return self.config.digest

    @property
    def label(self) -> str:
        """Short name for tables: layout, drafter, and what else was swept: `tp1/ngram-k3 block_size=32`.

        A drafter's own options are no part of it, so one that has any goes by its name in the group, too.
        """
        others = [
            f"{key.rpartition('.')[2]}={value}"
            for key, value in self.factors.items()
            if (key not in _IN_LABEL or (key == "drafter" and self.config.drafter.options))
            and key.partition(".")[0] not in ("layout", "load")
            and value != "-"
        ]
        return " ".join([self.config.label, *others])

    @property
    def is_baseline(self) -> bool:
        """Whether the ratios of its pair refer to the arm."""
        return self.config.is_baseline

    @property
    def pair_key(self) -> str:
        """What an arm and its baseline share: the digest of the configuration without the drafter."""
        return self.config.baseline().digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """An arm that a rule forbids: an `infeasible` outcome, known before anything starts."""

    arm: Arm
    rule: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One fresh engine (or its replicas) of one arm within a block, and its levels in order."""

    arm: str
    """Digest of the arm."""
    role: str
    """`opening`, `closing` or `treatment` (see `jobs/result.py`)."""
    levels: tuple[LoadLevel, ...]
    """In the block's seeded order, the same order in all arms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One replicate: runs one after another on the same slice of devices, opened and closed by baselines."""

    index: int
    devices: int
    """Slice: devices of the largest layout in the block."""
    runs: tuple[Run, ...]
    round: int = 0
    """Round that added it: 0 is the plan itself (see `rounds.py` for the others)."""
    kind: str = PLANNED
    """Why it is measured: one of `jobs.result.KINDS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRef:
    """Which workload, and the digest that proves it is still the same."""

    name: str
    format: str
    """Importer: a key of `FORMATS` (`jobs/workload/formats.py`)."""
    paths: tuple[str, ...]
    digest: str
    """SHA-256 of the token workload."""
    conversations: int
    turns: int
    validity: str = ""
    """Content validity of acceptance measured on it (see `jobs/workload/conversation.py`)."""
    dropped: tuple[tuple[str, str], ...] = ()
    """(conversation id, reason) of the first conversations that a policy left out."""
    dropped_count: int = 0
    """How many it left out."""
    notes: tuple[str, ...] = ()
    """Rules of the import and of the policies, with their numbers."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The policies (`jobs/workload/policies.py`): with the files and the seed they give the same workload."""


FAIL = "fail"
WAIT = "wait"
POLICIES = (FAIL, WAIT)
"""What happens to a block that no node can hold: the sweep stops at once, or it waits for a node to join."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Where and on what resources blocks run."""

    address: str | None
    """None for a local Ray of this process, `auto`, or `host:port`."""
    resource: str
    """Ray resource that stands for one device: `GPU`, or a custom one such as `engine_slot`."""
    slots: int | None
    """Devices a local Ray offers of a custom resource; None when the cluster says."""
    cpus_per_device: float
    """CPU cores an engine gets per device."""
    load_cpus: float
    """CPU cores of the load process."""
    require: Mapping[str, str] = field(default_factory=dict)
    """Labels that a node must have; `accelerator` stands for Ray's name of its GPUs."""
    exclusive_node: bool = False
    """Whether a block gets a node of its own, with no other block of the sweep beside it."""
    on_infeasible: str = FAIL
    """One of `POLICIES`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Patience, in seconds."""

    ready: float = 600.0
    stop: float = 20.0
    stall: float = 120.0
    cell: float = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A whole sweep."""

    name: str
    """Study: the MLflow experiment, and the first part of the results folder's name."""
    arms: tuple[Arm, ...]
    refused: tuple[Refused, ...]
    blocks: tuple[Block, ...]
    workload: WorkloadRef
    cluster: Cluster
    timeouts: Timeouts
    seed: int
    threshold: float
    """Practical threshold of the verdict, as a share (0.02 is 2 %)."""
    tracking: Mapping[str, Any]
    """MLflow store: `uri` (None for SQLite beside the results) and `experiment`."""
    warmup_requests: int = 4
    """Requests per user in a warm-up round before each level."""
    warmup_rounds_max: int = 3
    """Most warm-up rounds before each level."""
    cache: CachePlan = field(default_factory=CachePlan)
    """State of the prefix cache before each replay."""
    slo: Slo = field(default_factory=Slo)
    """Limits that goodput is counted by."""
    objective: str = "total"
    """What the verdicts are on (`analysis/objectives.py`); no part of the digest: it is a way to read."""
    notes: tuple[str, ...] = ()
    """What planning changed or found: duplicates merged, conversations repeated as epochs, ..."""
    overrides: tuple[str, ...] = ()
    """The user's own words, for people; no part of the digest."""
    budget: float | None = None
    """Device-hours after which no further block starts; no part of the digest, so that it can be raised."""
    confirm: int = 0
    """Fresh blocks for the winner; no part of the digest: they are a round of their own."""
    search: SearchPlan | None = None
    """Search of levels; no part of the digest: its rounds are their own."""
    gpu_hour_price: float | None = None
    """Price of a GPU-hour (device-hour where there is no GPU) in `currency`; no part of the digest."""
    currency: str = "USD"
    """What prices are in; no part of the digest."""
    schema: int = SCHEMA
    _known: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Digest, arms by digest and their pairs, computed once: they are asked for at every cell."""

    @property
    def digest(self) -> str:
        """Identity of the sweep: what is measured, not where, or where it is recorded."""
        if "digest" not in self._known:
            self._known["digest"] = self._digest()
        return str(self._known["digest"])

    def _digest(self) -> str:
        content = {
            "name": self.name,
            "arms": [[arm.digest, arm.levels] for arm in self.arms],
            "blocks": [_without_kind(block) for block in self.blocks],
            "workload": self.workload.digest,
            "seed": self.seed,
            "warmup": [self.warmup_requests, self.warmup_rounds_max],
            "cache": asdict(self.cache),
        }
        if self.slo.limits:
            content["slo"] = self.slo.limits
        return digest(content)

    @property
    def stateful(self) -> frozenset[str]:
        """Digests of the arms whose drafter remembers: each of their cells gets a fresh engine."""
        return frozenset(arm.digest for arm in self._all_arms.values() if arm.config.drafter.stateful)

    def replicas(self, block: Block, run: Run) -> int:
        """Return how many copies of a run's engine fill the block's slice."""
        return block.devices // self.arm(run.arm).config.layout.devices

    @property
    def unit(self) -> str:
        """What a device is called: `GPU`, or `device` where none is a GPU."""
        return "GPU" if any(arm.config.device == "gpu" for arm in self.arms) else "device"

    @property
    def sweep(self) -> str:
        """Name of the sweep and of its results folder: `<name>-<first 10 digits of the digest>`."""
        return f"{self.name}-{self.digest[:10]}"

    def arm(self, arm_digest: str) -> Arm:
        """Return the arm with this digest, of the plan or of a round (`KeyError` if there is none)."""
        return self._all_arms[arm_digest]

    def pair_of(self, arm_digest: str) -> str:
        """Return the pair key of the arm with this digest (`KeyError` if there is none)."""
        pairs: dict[str, str] = self._known.setdefault("pairs", {})
        if arm_digest not in pairs:
            pairs[arm_digest] = self.arm(arm_digest).pair_key
        return pairs[arm_digest]

    def learn(self, arms: Iterable[Arm]) -> None:
        """Let `arm` find arms of appended rounds, too; they are no part of the plan or of its digest."""
        self._all_arms.update({arm.digest: arm for arm in arms})

    @property
    def _all_arms(self) -> dict[str, Arm]:
        if "arms" not in self._known:
            self._known["arms"] = {arm.digest: arm for arm in self.arms}
        found: dict[str, Arm] = self._known["arms"]
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON, with the digests beside what they identify."""
        data = asdict(self)
        del data["_known"]
        for entry, arm in zip(data["arms"], self.arms, strict=True):
            entry["digest"] = arm.digest
        data["digest"] = self.digest
        data["sweep"] = self.sweep
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`'s form.

        Raises:
            ValueError: another schema version, a name that is no folder's, or content that does not match its
                digest.
        """
        if data.get("schema") != SCHEMA:
            message = f"plan has schema {data.get('schema')!r}; this version reads {SCHEMA}"
            raise ValueError(message)
        check_name(data["name"])
        fields = {key: value for key, value in data.items() if key not in ("digest", "sweep")}
        fields["arms"] = tuple(arm_from(arm) for arm in data["arms"])
        fields["refused"] = tuple(
            Refused(arm=arm_from(refused["arm"]), rule=refused["rule"], reason=refused["reason"])
            for refused in data["refused"]
        )
        fields["blocks"] = tuple(block_from(block) for block in data["blocks"])
        workload = data["workload"]
        fields["workload"] = WorkloadRef(
            **{
                **workload,
                "paths": tuple(workload["paths"]),
                "dropped": tuple((name, why) for name, why in workload["dropped"]),
                "notes": tuple(workload["notes"]),
            }
        )
        fields["cluster"] = Cluster(**data["cluster"])
        fields["timeouts"] = Timeouts(**data["timeouts"])
        fields["cache"] = CachePlan(**data["cache"])
        fields["slo"] = Slo(**data.get("slo", {}))
        fields["search"] = SearchPlan(**data["search"]) if data.get("search") else None
        fields["notes"] = tuple(data["notes"])
        fields["overrides"] = tuple(data["overrides"])
        plan = cls(**fields)
        if "digest" in data and plan.digest != data["digest"]:
            message = f"plan {data.get('sweep')!r} was changed by hand: its content does not match its digest"
            raise ValueError(message)
        return plan


def _levels(data: Any) -> tuple[LoadLevel, ...]:
    return tuple(LoadLevel(**level) for level in data)


def arm_from(data: Mapping[str, Any]) -> Arm:
    """Rebuild an arm from its plain JSON."""
    return Arm(
        config=EngineConfig.from_dict(data["config"]),
        levels=_levels(data["levels"]),
        factors=dict(data["factors"]),
    )


def _without_kind(block: Block) -> dict[str, Any]:
    """Return a planned block as its plan's identity has it: all of them are of one kind."""
    return {key: value for key, value in asdict(block).items() if key != "kind"}


def block_from(data: Mapping[str, Any]) -> Block:
    """Rebuild a block from its plain JSON."""
    runs = tuple(Run(arm=run["arm"], role=run["role"], levels=_levels(run["levels"])) for run in data["runs"])
    return Block(
        index=data["index"],
        devices=data["devices"],
        runs=runs,
        round=data["round"],
        kind=data.get("kind", PLANNED),
    )
