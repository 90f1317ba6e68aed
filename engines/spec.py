"""What an engine is asked to be: drafter, layout, model, and their sum, `EngineConfig`.

Values only. How an engine spells them on its command line is its adapter's business (`engines/vllm.py`, ...).
Every class turns into plain JSON with `dataclasses.asdict` and comes back with its `from_dict`.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import PurePath
from typing import Any, Self

from engines.acceptance import Acceptance
from engines.digest import digest
from engines.nearest import did_you_mean
from engines.schedule import SCHEDULED
from engines.strategy import CacheStrategy, Decode

NO_DRAFTER = "none"
ENGINE_ROUTING = "engine"
PINNED_ROUTING = "pinned"
ROUTINGS = (ENGINE_ROUTING, PINNED_ROUTING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafter:
    """Who proposes tokens, how many, and how they are accepted."""

    method: str = NO_DRAFTER
    """`none`, `ngram`, `draft_model`, `free`, `eagle3`, `mtp`, ...; an engine's rules say which it runs."""
    k: int = 0
    """Draft length: proposed tokens per verification step. 0 exactly when `method` is `none`."""
    model: str | None = None
    """Folder or name of the draft model, where the method has one."""
    model_digest: str | None = None
    """SHA-256 over the draft model's folder, as `Model.digest`; None where there is no folder."""
    draft_tp: int | None = None
    """Tensor-parallel size of the drafter; None leaves it to the engine."""
    acceptance: Acceptance | None = None
    """Synthetic acceptance, or None for real acceptance."""
    stateful: bool = False
    """Whether it remembers earlier requests (suffix trees): then every cell gets a fresh engine."""
    loaded_only: bool = False
    """Whether it is loaded and never asked: K=0 in every step, a counterfactual that shows what its mere
    presence costs."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Settings of this method alone; the engine adapter validates them."""

    def __post_init__(self) -> None:
        if (self.method == NO_DRAFTER) != (self.k == 0):
            message = (
                f"drafter {self.method!r} with k={self.k}: the drafter 'none' has k=0, every other k >= 1; "
                "set drafter.k"
            )
            raise ValueError(message)
        if self.k < 0:
            message = f"drafter.k is {self.k}; it counts proposed tokens: choose 1 or more"
            raise ValueError(message)

    @property
    def is_none(self) -> bool:
        """Whether this is the baseline's drafter."""
        return self.method == NO_DRAFTER

    @property
    def label(self) -> str:
        """Short name for tables: `none`, `ngram-k3`, `free-k7-a0.74`, `draft-model-k2-<folder>`.

        With K by batch size: `eagle3-k5-by-batch`, its longest draft.
        """
        if self.is_none:
            return NO_DRAFTER
        loaded = "-loaded" if self.loaded_only else "-by-batch" if SCHEDULED & set(self.options) else ""
        forced = f"-{self.acceptance.label}" if self.acceptance else ""
        model = f"-{PurePath(self.model).name}" if self.model else ""
        return f"{self.method.replace('_', '-')}-k{self.k}{loaded}{forced}{model}"

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from `asdict`'s form."""
        acceptance = data.get("acceptance")
        return cls(**{**data, "acceptance": Acceptance.from_dict(acceptance) if acceptance else None})


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How one engine spreads over devices. Replicas are no part of it: a block fills its slice with them."""

    tp: int = 1
    """Tensor-parallel size."""
    dp: int = 1
    """Data-parallel size inside the engine."""
    pp: int = 1
    """Pipeline-parallel size."""
    expert_parallel: bool = False
    """Whether the experts of a mixture are spread over all TP x DP devices, instead of a slice of each."""
    routing: str = ENGINE_ROUTING
    """Who chooses the data-parallel rank of a request: `engine`, its own balancer; or `pinned`, the load
    process, which keeps each conversation on one rank, the same in every arm."""

    def __post_init__(self) -> None:
        for name in ("tp", "dp", "pp"):
            if getattr(self, name) < 1:
                message = f"layout.{name} is {getattr(self, name)}; it counts devices: choose 1 or more"
                raise ValueError(message)
        if self.routing not in ROUTINGS:
            message = (
                f"layout.routing is {self.routing!r}{did_you_mean(self.routing, ROUTINGS)}; choose one of "
                f"{', '.join(ROUTINGS)}"
            )
            raise ValueError(message)

    @property
    def devices(self) -> int:
        """Devices (GPUs, or their stand-ins) one engine takes."""
        return self.tp * self.dp * self.pp

    @property
    def label(self) -> str:
        """Short name: `tp1`, `dp2`, `tp2-dp2`, `tp2-pp2`, `tp2-dp2-ep`, `dp2-pinned`."""
        sizes = [f"{name}{getattr(self, name)}" for name in ("tp", "dp", "pp") if getattr(self, name) > 1]
        ways = ["ep"] * self.expert_parallel + ["pinned"] * (self.routing == PINNED_ROUTING)
        return "-".join([*(sizes or ["tp1"]), *ways])


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The target model."""

    name: str
    """Name the engine serves it under, and the identity its answers are checked against."""
    path: str | None = None
    """Folder with weights and tokenizer, or a hub name; None for an emulated model."""
    max_context: int = 4096
    """Longest prompt plus output in tokens (the engine's max model length)."""
    digest: str | None = None
    """SHA-256 over the names, sizes and small files of the model folder; None where there is no folder."""


KV_MATCHED = "kv_matched"
LOADED_ONLY = "loaded_only"


@dataclass(frozen=True, slots=True, kw_only=True)
class KVMatch:
    """Whose KV cache a baseline is clamped to: a counterfactual that shows what a drafter's memory costs."""

    arm: str
    """Digest of the arm with the drafter. How much it has, its engine says where both run."""
    drafter: str
    """Label of its drafter, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """Everything that defines one engine process tree, and so one arm."""

    engine: str
    """Adapter: a key of `engines/registry.py`."""
    version: str
    """Version read from the engine's environment (or of the emulator)."""
    model: Model
    drafter: Drafter = field(default_factory=Drafter)
    layout: Layout = field(default_factory=Layout)
    cache: CacheStrategy = field(default_factory=CacheStrategy)
    decode: Decode = field(default_factory=Decode)
    python: str | None = None
    """Interpreter of the engine's own environment; None runs it in ours (the emulator). Not in the digest."""
    device: str = "gpu"
    """`gpu`, `cpu`, `emulated` or `remote` (somebody else's): what one device of the layout is."""
    flags: Mapping[str, Any] = field(default_factory=dict)
    """Engine settings held equal in all arms of a pair (block size, batch limits, scheduler, ...)."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the engine, held equal in all arms of a pair."""
    seed: int = 0
    """Seed given to the engine."""
    kv_match: KVMatch | None = None
    """Of a baseline with matched KV: whose cache it gets; None leaves the size to the engine."""

    @property
    def digest(self) -> str:
        """SHA-256 of the content.

        Paths are places, not content: the version stands for the interpreter, a digest for a model folder,
        rates for where they were measured.
        """
        matched = None if self.kv_match is None else self.kv_match.arm
        content = {**asdict(self), "python": None, "kv_match": matched}
        if self.model.digest is not None:
            content["model"]["path"] = None
        if self.drafter.model_digest is not None:
            content["drafter"]["model"] = None
        if self.drafter.acceptance is not None:
            content["drafter"]["acceptance"]["source"] = None
        return digest(content)

    @property
    def label(self) -> str:
        """Short name for tables: `tp1/ngram-k3`, `tp1/none-kv-matched-draft-model-k3-small`."""
        matched = f"-kv-matched-{self.kv_match.drafter}" if self.kv_match else ""
        return f"{self.layout.label}/{self.drafter.label}{matched}"

    @property
    def is_baseline(self) -> bool:
        """Whether ratios may refer to it: no drafter, and the KV cache that the engine gives it."""
        return self.drafter.is_none and self.kv_match is None

    @property
    def counterfactual(self) -> str:
        """`kv_matched` or `loaded_only` for an engine that nobody would serve with; empty for all others."""
        if self.kv_match is not None:
            return KV_MATCHED
        return LOADED_ONLY if self.drafter.loaded_only else ""

    def baseline(self) -> "EngineConfig":
        """Return the same engine without a drafter and without what follows from one."""
        return replace(self, drafter=Drafter(), kv_match=None)

    def matched_baseline(self) -> "EngineConfig":
        """Return the baseline with the KV cache that is left beside this engine's drafter."""
        return replace(self.baseline(), kv_match=KVMatch(arm=self.digest, drafter=self.drafter.label))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from `asdict`'s form."""
        parts = {
            "model": Model(**data["model"]),
            "drafter": Drafter.from_dict(data["drafter"]),
            "layout": Layout(**data["layout"]),
            "cache": CacheStrategy.from_dict(data["cache"]),
            "decode": Decode(**data["decode"]),
            "kv_match": KVMatch(**data["kv_match"]) if data.get("kv_match") else None,
        }
        return cls(**{**data, **parts})
