"""TensorRT-LLM (`trtllm-serve`, PyTorch back end) behind the Engine contract.

Written after TensorRT-LLM's documentation of 1.x; never run against a real TensorRT-LLM server, nor held
against its source. The parts are in the `trtllm_*` modules.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from engines.acceptance_translation import Forced
from engines.base import Capabilities, Command, KVCapacity, Refusal, Rule, Server, Site
from engines.counters import Counters
from engines.errors import EngineConfigError
from engines.metrics_page import Page
from engines.packages import package_version
from engines.remote_http import required_text
from engines.rules import COMMON_RULES, refusals_by
from engines.schedule import KRange
from engines.series import Series
from engines.spec import EngineConfig
from engines.trtllm_command import trtllm_command
from engines.trtllm_http import METRICS_PATH, parse_capacity, parse_counters
from engines.trtllm_rules import TRTLLM_RULES
from engines.trtllm_series import TRTLLM_SERIES
from engines.trtllm_speculation import forced_acceptance
from engines.vllm_log import cause_of

UNTESTED = (
    "the TensorRT-LLM adapter was written after the documentation of 1.x and never run on TensorRT-LLM: "
    "hold its figures against TensorRT-LLM's own before relying on them"
)


class TrtllmEngine:
    """One TensorRT-LLM server."""

    name = "trtllm"
    written_for = "TensorRT-LLM 1.x"
    rules: Sequence[Rule] = (*COMMON_RULES, *TRTLLM_RULES)
    capabilities = Capabilities(
        emulated=False,
        # It knows no way to empty its cache, and refuses fields of a request that it does not know: each cell
        # gets a fresh engine.
        cache_salt=False,
        cache_reset=False,
        kv_clamp=True,
        request_options={"ignore_eos": True, "temperature": 0},
        caveats=(UNTESTED,),
    )
    series: Sequence[Series] = TRTLLM_SERIES

    def version(self, python: str | None, *, device: str = "gpu") -> str:  # noqa: ARG002 - it runs on GPUs alone, or its one environment does for all
        """Return TensorRT-LLM's version in the environment of `python`.

        Raises:
            EngineEnvironmentError: no interpreter there, or no TensorRT-LLM in its environment.
        """
        return package_version(python, "tensorrt_llm", "TensorRT-LLM")

    def refusals(self, config: EngineConfig) -> Sequence[Refusal]:
        """Return every rule that forbids `config`: those of all engines first, then TensorRT-LLM's own."""
        return refusals_by(self.rules, config)

    def remote_servers(self, config: EngineConfig) -> Sequence[Server]:  # noqa: ARG002 - we start every one
        """Return nothing: every server of this engine is started by us."""
        return ()

    def command(self, config: EngineConfig, site: Site) -> Command:
        """Return the command line, configuration file and environment that start `config` at `site`.

        Raises:
            EngineConfigError: a setting the adapter does not know or TensorRT-LLM cannot do.
        """
        return trtllm_command(config, site)

    def forced_acceptance(self, config: EngineConfig) -> Forced | None:
        """Return the arm's synthetic acceptance as TensorRT-LLM is told it; None for real acceptance."""
        return forced_acceptance(config.drafter)

    def by_batch_size(self, config: EngineConfig, ranges: Sequence[KRange]) -> EngineConfig:  # noqa: ARG002 - there is none
        """Refuse: the adapter writes one draft length.

        Raises:
            EngineConfigError: always.
        """
        message = "the TensorRT-LLM adapter writes one draft length for all batch sizes"
        raise EngineConfigError(message)

    def resolved(self, server: Server) -> Mapping[str, Any]:  # noqa: ARG002 - it tells none
        """Return nothing: TensorRT-LLM has no page with its resolved configuration."""
        return {}

    def contradictions(self, config: EngineConfig, resolved: Mapping[str, Any]) -> Sequence[str]:  # noqa: ARG002 - it tells none
        """Return nothing: what TensorRT-LLM resolved cannot be held against what was ordered."""
        return ()

    def drafter_keys(self, config: EngineConfig) -> Sequence[str]:  # noqa: ARG002 - it tells none
        """Return nothing: there is no resolved configuration."""
        return ()

    def reset_cache(self, server: Server) -> bool:  # noqa: ARG002 - there is no such route
        """Return False: TensorRT-LLM has no way to empty its cache."""
        return False

    def counters(self, server: Server) -> Counters:
        """Return a snapshot of TensorRT-LLM's counters; what its release lacks is absent."""
        taken = time.monotonic()
        text = required_text(server, METRICS_PATH)
        return parse_counters(text, time=taken, k=server.config.drafter.k)

    def exposed(self, server: Server) -> Collection[str]:
        """Return the names of all series on the server's metrics page."""
        return Page(required_text(server, METRICS_PATH)).names

    def capacity(self, server: Server) -> KVCapacity:
        """Return the KV-cache capacity; unknown with attention data parallelism: a rank tells its own."""
        capacity = parse_capacity(required_text(server, METRICS_PATH))
        if server.config.flags.get("enable_attention_dp") is True:
            return KVCapacity(tokens=None, block_size=capacity.block_size)
        return capacity

    def classify(self, log_tail: str, returncode: int | None) -> str:
        """Return the cause word that the log shows: it has the words of Python, torch and the model hub."""
        return cause_of(log_tail, returncode)
