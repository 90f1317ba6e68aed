"""The Engine contract: what an adapter must tell us about one kind of serving engine.

An adapter is stateless. It writes the command line, and reads a running server over HTTP; the life of the
process belongs to `engines/process.py`. `tests/contract/engine_contract.py` has what all of them
keep: the part that needs no engine is tested of each, the rest where an engine can be started.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from engines.acceptance_translation import Forced
from engines.counters import Counters
from engines.schedule import KRange
from engines.series import Series
from engines.spec import EngineConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The place one engine gets: everything of a command line that is no part of its identity."""

    port: int
    """Leased TCP port of the HTTP server."""
    directory: Path
    """The engine's own working folder: logs, compile caches, temporary files."""
    devices: tuple[str, ...] = ()
    """Concrete GPUs (index or UUID) for CUDA_VISIBLE_DEVICES; empty without GPUs."""
    cpus: tuple[int, ...] = ()
    """CPU cores the engine may use; empty for all."""
    start_cpus: tuple[int, ...] = ()
    """CPU cores it may use until it is ready, when nothing is measured yet; empty for `cpus`."""
    kv: "KVCapacity | None" = None
    """What an engine with `config.kv_match` has to clamp its KV cache to, as its engine had it here."""
    host: str = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to execute. The environment is complete: nothing else is inherited."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    files: Mapping[str, str] = field(default_factory=dict)
    """Text files to write before the start, by their names in `cwd`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A started engine as its adapter sees it."""

    url: str
    """`http://127.0.0.1:PORT`, no trailing slash."""
    config: EngineConfig
    pid: int | None = None
    """Process id of the HTTP server's process (the guard's child); None for a server somebody else runs."""
    header_variables: Mapping[str, str] = field(default_factory=dict)
    """HTTP header that each request carries -> environment variable that holds its value: the value itself is
    a secret, so nothing of ours keeps it."""
    ca_file: str | None = None
    """PEM file of the authority that an https:// server's certificate comes from; None for the system's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KVCapacity:
    """KV-cache capacity of one engine, summed over its data-parallel ranks, each of which has a pool."""

    tokens: int | None
    """Tokens that all pools hold together; None where the engine does not say."""
    block_size: int | None
    """Tokens of a KV block."""
    blocks: int | None = None
    """KV blocks of all pools together; None where the engine does not count in blocks."""
    ranks: int = 1
    """Pools: a conversation lives in one of them."""

    @property
    def rank_tokens(self) -> int | None:
        """Tokens of one pool (their mean, should they differ)."""
        return None if self.tokens is None else self.tokens // self.ranks

    @property
    def rank_blocks(self) -> int | None:
        """Blocks of one pool (their mean, should they differ)."""
        return None if self.blocks is None else self.blocks // self.ranks

    @property
    def uniform(self) -> bool | None:
        """Whether every block holds `block_size` tokens of a request.

        A hybrid model keeps several kinds of KV state, and blocks times block size is then not its capacity.
        None where one of the three is unknown.
        """
        if self.tokens is None or self.blocks is None or self.block_size is None:
            return None
        return abs(self.tokens - self.blocks * self.block_size) < self.ranks * self.block_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why an arm is not allowed, as a rule says it."""

    rule: str
    """Stable name of the rule."""
    reason: str
    """One sentence: what is impossible, unfair or meaningless, and what to do instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One reason to refuse an arm."""

    name: str
    """Stable name, shown as the cause of an infeasible arm."""
    meaning: str
    """One line for the table of rules: what is not allowed, and why."""
    check: Callable[[EngineConfig], str | None]
    """Returns the reason to refuse a configuration, or None when there is nothing against it."""
    versions: str = ""
    """Versions of the engine it holds for, such as `>=0.32,<0.33`; empty for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an adapter's engine can do for a measurement."""

    emulated: bool
    """Whether its figures come from a model of hardware: then every output says so."""
    remote: bool = False
    """Whether somebody else runs its servers: nothing is ever started, stopped or restarted."""
    cache_salt: bool
    """Whether requests can carry `cache_salt` to share no prefix cache with others."""
    cache_reset: bool
    """Whether the prefix cache can be emptied without a restart."""
    rank_header: str | None = None
    """HTTP header that sends a request to a data-parallel rank; None where the engine always chooses."""
    request_options: Mapping[str, Any] = field(default_factory=dict)
    """Extra JSON fields every request of every arm carries (for instance `ignore_eos`)."""
    caveats: tuple[str, ...] = ()
    """What to keep in mind with every figure of this engine: told by the plan and by each cell."""
    kv_clamp: bool = False
    """Whether `command` clamps the KV cache to `site.kv`: what a baseline with matched KV needs."""
    loaded_only: bool = False
    """Whether the engine can hold a drafter loaded and never ask it (`drafter.loaded_only`)."""


class Engine(Protocol):
    """One kind of serving engine."""

    name: str
    written_for: str
    """Name and versions of the engine whose behaviour the adapter and its rules were written for."""
    rules: Sequence[Rule]
    """Every rule that `refusals` checks, in its order."""
    capabilities: Capabilities
    series: Sequence[Series]
    """Every series of the metrics page that `counters` and `capacity` read."""

    def version(self, python: str | None, *, device: str = "gpu") -> str:
        """Return the engine's version in the environment of `python`.

        Args:
            python: an interpreter; None for our own.
            device: what it is to run on (`engine.device`), which an error's advice depends on.

        Raises:
            EngineEnvironmentError: the interpreter or the package is missing; the message says how to get it.
        """

    def refusals(self, config: EngineConfig) -> Sequence[Refusal]:
        """Return every rule that forbids `config`; empty when it may run."""

    def remote_servers(self, config: EngineConfig) -> Sequence[Server]:
        """Return the servers of `config` that somebody else runs, one a replica; none of an engine we start.

        Raises:
            EngineConfigError: this engine is never started by us, and the arm has no server.
        """

    def command(self, config: EngineConfig, site: Site) -> Command:
        """Return the command line and environment that start `config` at `site`.

        Raises:
            EngineConfigError: a setting this engine does not know.
        """

    def forced_acceptance(self, config: EngineConfig) -> Forced | None:
        """Return the arm's synthetic acceptance as the engine is told it; None for real acceptance.

        Raises:
            EngineConfigError: the engine cannot force it.
        """

    def by_batch_size(self, config: EngineConfig, ranges: Sequence[KRange]) -> EngineConfig:
        """Return `config` with its drafter's K by the number of running requests; `refusals` may forbid it.

        Raises:
            EngineConfigError: this engine has no such thing, or not with this drafter.
        """

    def resolved(self, server: Server) -> Mapping[str, Any]:
        """Return the engine's own resolved configuration as flat `section.key -> JSON` pairs."""

    def contradictions(self, config: EngineConfig, resolved: Mapping[str, Any]) -> Sequence[str]:
        """Return where a server's `resolved` configuration is not that of `config`; empty when it is."""

    def drafter_keys(self, config: EngineConfig) -> Sequence[str]:
        """Return prefixes of `resolved` keys that may differ in a pair because the drafter does."""

    def reset_cache(self, server: Server) -> bool:
        """Empty the prefix cache; True when the engine confirmed it."""

    def counters(self, server: Server) -> Counters:
        """Return a snapshot of the engine's counters, summed over its ranks."""

    def exposed(self, server: Server) -> Collection[str]:
        """Return the names of all series on the server's metrics page."""

    def capacity(self, server: Server) -> KVCapacity:
        """Return the KV-cache capacity."""

    def classify(self, log_tail: str, returncode: int | None) -> str:
        """Return the `cause` word (see `engines/errors.py`) that the log of an ended engine shows."""
