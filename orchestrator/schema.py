"""The structured schema of `conf/`: every key, its type and its meaning. Hydra checks each point against it.

Only types and defaults that hold for every option of a group; the values are in the YAML files. Keys that may
hold anything an engine knows (`engine.flags`, `engine.env`, `drafter.options`) are open maps: a new entry is
added with Hydra's `+`, and the engine adapter refuses what it does not know.
"""

from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

from orchestrator.acceptance_keys import ACCEPTANCE_KEYS


@dataclass
class ConnectorSchema:
    """An external KV cache."""

    name: str | None = None
    """The engine's name of the connector; null for none."""
    chunk_tokens: int | None = None
    """Tokens it stores as one piece, a multiple of the block size; null leaves it to the connector."""
    options: dict[str, Any] = field(default_factory=dict)
    """Settings of the connector, by its own names."""


@dataclass
class StrategySchema:
    """What an engine keeps of keys and values; null leaves a value to the engine."""

    prefix_caching: bool | None = None
    """Whether blocks of earlier requests are found again."""
    block_size: int | None = None
    """Tokens of a KV block."""
    kv_dtype: str | None = None
    """Type of the stored keys and values, by the engine's name."""
    kv_offload_gib: float | None = None
    """Host memory that evicted blocks go to, in GiB a data-parallel rank."""
    connector: ConnectorSchema = field(default_factory=ConnectorSchema)
    """External KV cache."""


@dataclass
class DecodeSchema:
    """Group `decode`: how steps are made up and executed; null leaves a value to the engine."""

    max_num_seqs: int | None = None
    """Most requests in a step of one rank."""
    max_num_batched_tokens: int | None = None
    """Most positions computed in a step of one rank."""
    chunked_prefill: bool | None = None
    """Whether a long prompt is computed over several steps."""
    attention_backend: str | None = None
    """Attention implementation, by the engine's name."""
    cuda_graphs: str | None = None
    """What is captured: `none`, `piecewise`, `full`, `full_decode_only` or `full_and_piecewise`."""
    async_scheduling: bool | None = None
    """Whether the next step is scheduled while the last one still runs."""
    model_runner: str | None = None
    """The engine's implementation that executes the model: `v1` or `v2`."""


@dataclass
class EngineStandardSchema:
    """Values of one engine environment where the groups `cache` and `decode` say null."""

    cache: StrategySchema = field(default_factory=StrategySchema)
    """As the group `cache`, without the state."""
    decode: DecodeSchema = field(default_factory=DecodeSchema)
    """As the group `decode`."""


@dataclass
class EngineSchema:
    """Group `engine`: which serving engine, from which environment, on what kind of device."""

    name: str = MISSING
    """Adapter: `vllm`, `sglang`, `trtllm`, `endpoint` or `emulator`."""
    python: str | None = None
    """Interpreter of the engine's own environment; null runs it in ours. Its version is probed from there."""
    device: str = MISSING
    """What one device of a layout is: `gpu`, `cpu`, `emulated`, or `remote` (somebody else's)."""
    flags: dict[str, Any] = field(default_factory=dict)
    """Engine settings, equal in all arms of a pair."""
    env: dict[str, str] = field(default_factory=dict)
    """Environment variables of the engine, equal in all arms of a pair."""
    standard: EngineStandardSchema = field(default_factory=EngineStandardSchema)
    """What the groups `cache` and `decode` leave open, for this environment."""


@dataclass
class ModelSchema:
    """Group `model`: the target model."""

    name: str = MISSING
    """Name the engine serves it under; for the emulator the model of its tables."""
    path: str | None = None
    """Folder with weights and tokenizer; null for an emulated model."""
    max_context: int = MISSING
    """Longest prompt plus output, in tokens."""


@dataclass
class DrafterSchema:
    """Group `drafter`: who proposes tokens, and how many."""

    method: str = MISSING
    """`none`, `ngram`, `free`, `draft_model`, `eagle3`, `mtp`, `suffix`, ... as the engine knows it."""
    k: int = 0
    """Draft length K; 0 for `none` only."""
    model: str | None = None
    """Folder or name of the draft model, where the method has one."""
    draft_tp: int | None = None
    """Tensor-parallel size of the drafter; null leaves it to the engine."""
    acceptance: dict[str, Any] | None = field(default_factory=lambda: dict.fromkeys(ACCEPTANCE_KEYS))
    """Synthetic acceptance in one form (docs/acceptance.md): `alpha`, `length` with its `shape`, `positions`,
    `from` a cell, or a `file` with its `row`; all null for real acceptance. No class of its own, as `from` is
    no name a class can have."""
    stateful: bool = False
    """Whether it remembers earlier requests; then every cell gets a fresh engine."""
    kv: str = "natural"
    """`natural`, or `matched`: a second baseline runs beside the arm, clamped to the KV cache that is left to
    it, so that what the drafter's memory costs is told apart from what it does."""
    loaded_only: bool = False
    """Whether the drafter is loaded and never asked (K=0): what its mere presence costs."""
    options: dict[str, Any] = field(default_factory=dict)
    """Settings of the method alone, checked by the engine adapter."""


@dataclass
class LayoutSchema:
    """Group `layout`: how one engine spreads over devices."""

    tp: int = 1
    """Tensor-parallel size."""
    dp: int = 1
    """Data-parallel size inside the engine."""
    pp: int = 1
    """Pipeline-parallel size."""
    expert_parallel: bool = False
    """Whether the experts of a mixture are spread over all TP x DP devices."""
    routing: str = "engine"
    """Who chooses a request's data-parallel rank: `engine`, its own balancer, or `pinned`: the load process
    keeps each conversation on one rank."""


@dataclass
class WorkloadSchema:
    """Group `workload`: the conversations that all arms replay."""

    name: str = MISSING
    """Name of the workload in plans and results."""
    format: str = MISSING
    """Importer: `builtin`, `chat_jsonl`, `sharegpt`, `mooncake`, `weka`, ... (docs/workloads.md)."""
    paths: list[str] = field(default_factory=list)
    """Files or glob patterns, relative to the current folder; empty for `builtin`."""
    fit: str = "drop"
    """What is longer than the model's context: `drop`, `truncate_oldest`, or `scale` (traces only)."""
    sample: float | None = None
    """Share of the conversations to use, above 0 up to 1; null for all."""
    limit: int | None = None
    """Use at most so many conversations; null for all."""
    max_turns: int | None = None
    """Play at most so many turns of a conversation; null for all."""
    output: str = "recorded"
    """Output length of a turn: `recorded`, or `fixed` to `output_tokens`."""
    output_tokens: int | None = None
    """Length of every reply in tokens, for `output=fixed`."""
    max_output_tokens: int | None = None
    """Cap of a recorded output length, in tokens; null for none."""
    gaps: str = "none"
    """Pauses between a reply and the next turn: `none`, `recorded`, or `scaled` by `gap_scale`."""
    gap_scale: float | None = None
    """Factor of the recorded pauses, for `gaps=scaled`."""


@dataclass
class LoadSchema:
    """Group `load`: how much work is in flight, or how fast it arrives. One of the first three is set."""

    concurrency: Any = None
    """Closed loop: live conversations over the whole slice; a number, or a list of numbers."""
    rate: Any = None
    """Open loop: conversations that arrive a second; a number, or a list of numbers."""
    rate_scale: Any = None
    """Open loop: how many times as dense as recorded the trace's arrivals are; a number, or a list."""
    ramp: float = 0.0
    """Closed loop: seconds over which the users start, evenly spread."""
    process: str | None = None
    """Open loop: `poisson`, `constant` or `trace`; null: `poisson` at a rate, `trace` at a rate scale."""
    duration: float | None = None
    """Open loop: seconds of arrivals; null for one pass over the workload."""
    max_inflight: int = 1024
    """Open loop: requests in flight that are never exceeded; a request that has to wait fails the cell."""
    search: str | None = None
    """Further levels, between the lowest and the highest, placed by what was seen: `crossover` (up to which
    level an arm beats its baseline) or `slo` (keeps `design.slo`); null for the levels as given."""
    search_width: float = 1.25
    """Upper over lower end of an arm's 95 % interval at which its search ends."""
    search_rounds: int = 12
    """Most rounds of a search; each is one block of the arms still open."""


@dataclass
class SloSchema:
    """Limits of one request, in ms; null for none. Without any, goodput is absent."""

    ttft_ms: float | None = None
    """Longest time to first token."""
    tpot_ms: float | None = None
    """Longest time per output token after the first chunk."""
    e2el_ms: float | None = None
    """Longest end-to-end latency."""


@dataclass
class DesignSchema:
    """Group `design`: replication, who shares hardware, what it may cost, and the verdict's threshold."""

    blocks: int = MISSING
    """Replicates: each runs every arm once, in a fresh engine."""
    threshold: float = MISSING
    """Practical threshold of the verdict as a share: 0.02 is 2 %."""
    warmup_requests: int = MISSING
    """Requests per user in a warm-up round, on text that is not in the workload; 0 for no warm-up."""
    warmup_rounds_max: int = MISSING
    """Most warm-up rounds before each level; fewer where the step time has settled earlier."""
    share: str = "all"
    """Arms that share a block and its slice of devices: `all` of a model, smaller layouts as replicas; or
    those of one `layout` size, on a slice of just that size."""
    budget: float | None = None
    """GPU-hours (device-hours where there is no GPU) within which blocks start; null for no limit."""
    confirm: int = 0
    """Fresh blocks in which the winner is measured again with its baseline, at its best level and at the one
    of its range where it gains least; 0 for none."""
    objective: str = "total"
    """What verdicts, the winner and a search are about: `total`, `computed`, `output`, `user_speed`, ..."""
    slo: SloSchema = field(default_factory=SloSchema)
    """Service-level objective that goodput is counted by."""
    gpu_hour_price: float | None = None
    """Price of a GPU-hour (device-hour where there is no GPU); null leaves costs out."""
    currency: str = "USD"
    """What prices are in."""


@dataclass
class CacheSchema(StrategySchema):
    """Group `cache`: what the engine keeps, and the state of its prefix cache before each replay."""

    state: str = MISSING
    """`cold`: emptied, or apart by a salt or a fresh engine; `primed`: then made warm, and proven so."""
    prime: Any = "prefix"
    """What primes it: `prefix` (what all first turns share), `first_turns`, `all`, or so many tokens of each
    first turn."""
    expect: str = "exact"
    """`exact`: first turns have to find what the order of sending decides; `at_most`: no more than that, for
    models of which engines keep less than whole prefixes."""
    reset_seconds: float = 30.0
    """How long a reset of the cache is tried, in seconds, before a salt or a fresh engine has to do."""


@dataclass
class ClusterSchema:
    """Group `cluster`: where blocks run."""

    address: str | None = None
    """null for a local Ray, `auto`, or `host:port`."""
    resource: str | None = None
    """Ray resource that stands for one device; null: `GPU`, or `engine_slot` where there is no GPU."""
    slots: int | None = None
    """Devices a local Ray offers of a custom resource; null: the CPU cores, or 8 emulated ones."""
    cpus_per_device: float | None = None
    """CPU cores an engine gets per device; null: 2 a GPU, 1 a CPU device, 0.25 an emulated one."""
    load_cpus: float = 1.0
    """CPU cores of the load process."""
    require: dict[str, str] = field(default_factory=dict)
    """Labels that a node must have: `{accelerator: H100}`, or a label's name with what it must be."""
    exclusive_node: bool = False
    """Whether a block gets a node of its own, with no other block of the sweep beside it."""
    on_infeasible: str = "fail"
    """What happens to a block that no node can hold: `fail` at once, or `wait` for an autoscaler's node."""


@dataclass
class TrackingSchema:
    """Group `tracking`: the MLflow view."""

    uri: str | None = None
    """MLflow store; null for `mlflow.db` in the results folder, `disabled` for none."""
    experiment: str | None = None
    """MLflow experiment; null for the study's name."""
    required: bool = False
    """Whether an MLflow server that does not answer stops the sweep at its start; else `sync` catches up."""


@dataclass
class TimeoutsSchema:
    """Patience, in seconds."""

    ready: float = 600.0
    """From an engine's start to its first answer."""
    stop: float = 20.0
    """From asking an engine to stop to killing it."""
    stall: float = 120.0
    """Without a byte on a stream."""
    cell: float = 3600.0
    """One replay."""


@dataclass
class SpecloadSchema:
    """The whole configuration of one point."""

    name: str = MISSING
    """Study: the MLflow experiment, and the first part of the sweep's name and folder."""
    results: str = "results"
    """Folder that keeps the sweeps."""
    seed: int = 0
    """Seed of orders, sampling and emulated effects."""
    exclude: list[dict[str, Any]] = field(default_factory=list)
    """Corners to cut from the grid: a point is left out where every key of an entry has the given value, or
    one of a list, or with `{not: VALUE}` any other. A group stands for its option: `{layout: [tp2, dp2]}`."""
    engine: EngineSchema = field(default_factory=EngineSchema)
    model: ModelSchema = field(default_factory=ModelSchema)
    drafter: DrafterSchema = field(default_factory=DrafterSchema)
    layout: LayoutSchema = field(default_factory=LayoutSchema)
    workload: WorkloadSchema = field(default_factory=WorkloadSchema)
    load: LoadSchema = field(default_factory=LoadSchema)
    cache: CacheSchema = field(default_factory=CacheSchema)
    decode: DecodeSchema = field(default_factory=DecodeSchema)
    design: DesignSchema = field(default_factory=DesignSchema)
    cluster: ClusterSchema = field(default_factory=ClusterSchema)
    tracking: TrackingSchema = field(default_factory=TrackingSchema)
    timeouts: TimeoutsSchema = field(default_factory=TimeoutsSchema)


def register() -> None:
    """Put the schema into Hydra's store, where `conf/config.yaml` finds it as `schema`."""
    ConfigStore.instance().store(name="schema", node=SpecloadSchema)
