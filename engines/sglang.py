"""SGLang behind the Engine contract.

Written against the source of SGLang 0.5.23; never run against a real SGLang server. Our command lines are
held against the options in its source (`tests/engines/test_sglang_parser.py`); its metrics page and
`/server_info` in the tests are written after it (`tests/engines/pages/`).
The parts are in the `sglang_*` modules.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from engines.acceptance_translation import Forced
from engines.base import Capabilities, Command, KVCapacity, Refusal, Rule, Server, Site
from engines.counters import Counters
from engines.errors import EngineError
from engines.metrics_page import Page
from engines.packages import package_version
from engines.remote_http import get_json, post_status, required_text
from engines.rules import COMMON_RULES, refusals_by
from engines.schedule import ADAPTIVE, KRange
from engines.series import Series
from engines.sglang_adaptive import by_batch_size
from engines.sglang_command import sglang_command
from engines.sglang_http import parse_capacity, parse_counters
from engines.sglang_resolved import DRAFTER_KEYS, comparable, contradictions
from engines.sglang_rules import SGLANG_RULES
from engines.sglang_series import SGLANG_SERIES
from engines.sglang_speculation import forced_acceptance
from engines.spec import EngineConfig
from engines.vllm_log import cause_of

UNTESTED = (
    "the SGLang adapter was written after the source of SGLang 0.5.23 and never run on SGLang itself: hold "
    "its figures against SGLang's own before relying on them"
)
FLUSH_SECONDS = 5
"""How long SGLang may wait for the last requests to end before it empties its cache."""


class SglangEngine:
    """One SGLang server."""

    name = "sglang"
    written_for = "SGLang 0.5.23"
    rules: Sequence[Rule] = (*COMMON_RULES, *SGLANG_RULES)
    capabilities = Capabilities(
        emulated=False,
        cache_salt=True,
        cache_reset=True,
        kv_clamp=True,
        request_options={"ignore_eos": True, "temperature": 0},
        caveats=(UNTESTED,),
    )
    series: Sequence[Series] = SGLANG_SERIES

    def version(self, python: str | None, *, device: str = "gpu") -> str:  # noqa: ARG002 - it runs on GPUs alone, or its one environment does for all
        """Return SGLang's version in the environment of `python`.

        Raises:
            EngineEnvironmentError: no interpreter there, or no SGLang in its environment.
        """
        return package_version(python, "sglang", "SGLang")

    def refusals(self, config: EngineConfig) -> Sequence[Refusal]:
        """Return every rule that forbids `config`: those of all engines first, then SGLang's own."""
        return refusals_by(self.rules, config)

    def remote_servers(self, config: EngineConfig) -> Sequence[Server]:  # noqa: ARG002 - we start every one
        """Return nothing: every server of this engine is started by us."""
        return ()

    def command(self, config: EngineConfig, site: Site) -> Command:
        """Return the command line and environment that start `config` at `site`.

        Raises:
            EngineConfigError: a setting the adapter does not know or SGLang cannot do.
        """
        return sglang_command(config, site)

    def forced_acceptance(self, config: EngineConfig) -> Forced | None:
        """Return the arm's synthetic acceptance as SGLang is told it; None for real acceptance."""
        return forced_acceptance(config.drafter)

    def by_batch_size(self, config: EngineConfig, ranges: Sequence[KRange]) -> EngineConfig:
        """Return `config` with its drafter's K by the number of running requests.

        Raises:
            EngineConfigError: `ranges` are no schedule, or the drafter cannot follow one.
        """
        return by_batch_size(config, ranges)

    def resolved(self, server: Server) -> Mapping[str, Any]:
        """Return SGLang's resolved arguments without live state, ports and times."""
        info = get_json(server, "/server_info")
        if not isinstance(info, Mapping):
            message = f"{server.url}/server_info did not answer with a JSON object"
            raise EngineError(message)
        return comparable(info)

    def contradictions(self, config: EngineConfig, resolved: Mapping[str, Any]) -> Sequence[str]:
        """Return where a server's `resolved` configuration is not that of `config`; empty when it is."""
        return contradictions(config, resolved)

    def drafter_keys(self, config: EngineConfig) -> Sequence[str]:  # noqa: ARG002 - the same for every drafter
        """Return prefixes of `resolved` keys that may differ in a pair because the drafter does."""
        return DRAFTER_KEYS

    def reset_cache(self, server: Server) -> bool:
        """Empty the radix cache of every rank; True when SGLang confirmed it."""
        path = f"/flush_cache?timeout={FLUSH_SECONDS}"
        return post_status(server, path, patience=FLUSH_SECONDS + 10.0) == HTTPStatus.OK

    def counters(self, server: Server) -> Counters:
        """Return a snapshot of SGLang's counters over all its ranks."""
        taken = time.monotonic()
        drafter = server.config.drafter
        fixed = ADAPTIVE not in drafter.options
        return parse_counters(required_text(server, "/metrics"), time=taken, k=drafter.k, fixed=fixed)

    def exposed(self, server: Server) -> Collection[str]:
        """Return the names of all series on the server's metrics page."""
        return Page(required_text(server, "/metrics")).names

    def capacity(self, server: Server) -> KVCapacity:
        """Return the KV-cache capacity over all data-parallel ranks."""
        return parse_capacity(required_text(server, "/metrics"))

    def classify(self, log_tail: str, returncode: int | None) -> str:
        """Return the cause word that the log shows: it has the words of Python, torch and the model hub."""
        return cause_of(log_tail, returncode)
