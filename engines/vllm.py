"""vLLM behind the Engine contract: one adapter for GPUs and for the CPU build.

Tested with vLLM 0.32 (CPU build); the parts are in the `vllm_*` modules beside this one.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from engines.acceptance_translation import Forced, vllm_acceptance
from engines.base import Capabilities, Command, KVCapacity, Refusal, Rule, Server, Site
from engines.counters import Counters
from engines.rules import COMMON_RULES, refusals_by
from engines.schedule import KRange
from engines.series import Series
from engines.spec import EngineConfig
from engines.vllm_command import vllm_command
from engines.vllm_http import post_reset, read_capacity, read_counters, read_names, read_server_info
from engines.vllm_log import cause_of
from engines.vllm_resolved import DRAFTER_KEYS, comparable, contradictions
from engines.vllm_rules import VLLM_RULES
from engines.vllm_schedule import by_batch_size
from engines.vllm_series import VLLM_SERIES
from engines.vllm_version import vllm_version


class VllmEngine:
    """One vLLM server."""

    name = "vllm"
    written_for = "vLLM 0.32"
    rules: Sequence[Rule] = (*COMMON_RULES, *VLLM_RULES)
    capabilities = Capabilities(
        emulated=False,
        cache_salt=True,
        cache_reset=True,
        kv_clamp=True,
        loaded_only=True,
        rank_header="X-data-parallel-rank",
        # Exactly max_tokens come with ignore_eos alone; min_tokens is not needed.
        request_options={"ignore_eos": True, "temperature": 0},
    )
    series: Sequence[Series] = VLLM_SERIES

    def version(self, python: str | None, *, device: str = "gpu") -> str:
        """Return vLLM's version in the environment of `python`.

        Raises:
            EngineEnvironmentError: no interpreter there, or no vLLM in its environment.
        """
        return vllm_version(python, device=device)

    def refusals(self, config: EngineConfig) -> Sequence[Refusal]:
        """Return every rule that forbids `config`: those of all engines first, then vLLM's own."""
        return refusals_by(self.rules, config)

    def remote_servers(self, config: EngineConfig) -> Sequence[Server]:  # noqa: ARG002 - we start every one
        """Return nothing: every server of this engine is started by us."""
        return ()

    def command(self, config: EngineConfig, site: Site) -> Command:
        """Return the command line and environment that start `config` at `site`.

        Raises:
            EngineConfigError: a setting vLLM's adapter does not know.
        """
        return vllm_command(config, site)

    def forced_acceptance(self, config: EngineConfig) -> Forced | None:
        """Return the arm's synthetic acceptance as vLLM is told it; None for real acceptance.

        Raises:
            EngineConfigError: it cannot be had at this draft length.
        """
        drafter = config.drafter
        if drafter.acceptance is None or drafter.loaded_only:
            return None
        return vllm_acceptance(drafter.acceptance, drafter.k)

    def by_batch_size(self, config: EngineConfig, ranges: Sequence[KRange]) -> EngineConfig:
        """Return `config` with its drafter's K by the number of running requests.

        Raises:
            EngineConfigError: `ranges` are no schedule.
        """
        return by_batch_size(config, ranges)

    def resolved(self, server: Server) -> Mapping[str, Any]:
        """Return vLLM's resolved configuration and environment without ports, ids and times."""
        return comparable(read_server_info(server.url))

    def contradictions(self, config: EngineConfig, resolved: Mapping[str, Any]) -> Sequence[str]:
        """Return where a server's `resolved` configuration is not that of `config`; empty when it is."""
        return contradictions(config, resolved)

    def drafter_keys(self, config: EngineConfig) -> Sequence[str]:  # noqa: ARG002 - the same for every drafter
        """Return prefixes of `resolved` keys that may differ in a pair because the drafter does."""
        return DRAFTER_KEYS

    def reset_cache(self, server: Server) -> bool:
        """Empty the prefix cache; True when vLLM confirmed it."""
        return post_reset(server.url)

    def counters(self, server: Server) -> Counters:
        """Return a snapshot of vLLM's counters, summed over its data-parallel ranks."""
        return read_counters(server.url)

    def exposed(self, server: Server) -> Collection[str]:
        """Return the names of all series on the server's metrics page."""
        return read_names(server.url)

    def capacity(self, server: Server) -> KVCapacity:
        """Return the KV-cache capacity over all data-parallel ranks."""
        return read_capacity(server.url)

    def classify(self, log_tail: str, returncode: int | None) -> str:
        """Return the cause word that the log of an ended engine shows."""
        return cause_of(log_tail, returncode)
