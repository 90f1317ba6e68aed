"""Servers that somebody else runs, behind the Engine contract: any with vLLM's form of `/v1/completions`.

There is no process to start or to stop. Prompts are token ids, so the server has to take them; what it tells
of itself (a metrics page and a resolved configuration in the words of vLLM 0.32, SGLang 0.5.23 or
TensorRT-LLM 1.x) is read, and what it does not tell is not known.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from engines import endpoint_pages
from engines.acceptance_translation import Forced
from engines.base import Capabilities, Command, KVCapacity, Refusal, Rule, Server, Site
from engines.counters import Counters
from engines.endpoint_rules import ENDPOINT_RULES
from engines.endpoint_settings import settings_of
from engines.errors import EngineConfigError
from engines.metrics_page import Page
from engines.rules import COMMON_RULES, refusals_by
from engines.schedule import KRange
from engines.series import Series
from engines.spec import EngineConfig

NOT_OURS = (
    "somebody else runs the server: its hardware and settings are as told, others may use it at the same "
    "time, and its prefix cache is set apart by salts alone"
)
VERSION = "unknown"
"""A plan is made without asking the server."""


class EndpointEngine:
    """A server of somebody else's."""

    name = "endpoint"
    written_for = "servers with vLLM's /v1/completions"
    rules: Sequence[Rule] = (*COMMON_RULES, *ENDPOINT_RULES)
    capabilities = Capabilities(
        emulated=False,
        remote=True,
        cache_salt=True,
        cache_reset=False,  # others may use the server: their cache is not ours to empty
        request_options={"ignore_eos": True, "temperature": 0},
        caveats=(NOT_OURS,),
    )
    series: Sequence[Series] = ()
    """None is relied on."""

    def version(self, python: str | None, *, device: str = "gpu") -> str:  # noqa: ARG002 - it has no environment here
        """Return that the version is not known."""
        return VERSION

    def refusals(self, config: EngineConfig) -> Sequence[Refusal]:
        """Return every rule that forbids `config`."""
        return refusals_by(self.rules, config)

    def remote_servers(self, config: EngineConfig) -> Sequence[Server]:
        """Return the servers of an arm, one a replica.

        Raises:
            EngineConfigError: it has none, or the settings are wrong.
        """
        settings = settings_of(config.flags)
        return tuple(
            Server(url=url, config=config, header_variables=settings.headers, ca_file=settings.ca_file)
            for url in settings.urls_of(config)
        )

    def command(self, config: EngineConfig, site: Site) -> Command:  # noqa: ARG002 - nothing is ever started
        """Refuse: there is nothing to start.

        Raises:
            EngineConfigError: always.
        """
        message = f"{config.label} is a server that somebody else runs; it has no command line"
        raise EngineConfigError(message)

    def forced_acceptance(self, config: EngineConfig) -> Forced | None:
        """Return the arm's synthetic acceptance, as whoever runs the server says it is; None for real."""
        drafter = config.drafter
        if drafter.acceptance is None:
            return None
        return Forced(
            rates=drafter.acceptance.rates(drafter.k),
            stated="whoever runs the server says that it forces this acceptance",
        )

    def by_batch_size(self, config: EngineConfig, ranges: Sequence[KRange]) -> EngineConfig:  # noqa: ARG002 - there is none
        """Refuse: somebody else configures the server.

        Raises:
            EngineConfigError: always.
        """
        message = "somebody else configures the server; have it drafted by batch size there"
        raise EngineConfigError(message)

    def resolved(self, server: Server) -> Mapping[str, Any]:
        """Return the server's resolved configuration; empty where it tells none."""
        return endpoint_pages.read_resolved(server)

    def contradictions(self, config: EngineConfig, resolved: Mapping[str, Any]) -> Sequence[str]:
        """Return where a server's `resolved` configuration is not that of the arm it stands for."""
        return endpoint_pages.contradictions(config, resolved)

    def drafter_keys(self, config: EngineConfig) -> Sequence[str]:  # noqa: ARG002 - the same for every drafter
        """Return prefixes of `resolved` keys that may differ in a pair because the drafter does."""
        return endpoint_pages.DRAFTER_KEYS

    def reset_cache(self, server: Server) -> bool:  # noqa: ARG002 - never done
        """Return False: the cache is shared with whoever else uses the server."""
        return False

    def counters(self, server: Server) -> Counters:
        """Return a snapshot of the counters that the server exposes."""
        return endpoint_pages.read_counters(server, time.monotonic())

    def exposed(self, server: Server) -> Collection[str]:
        """Return the names of all series on the server's metrics page; none where it has no page."""
        found = endpoint_pages.read_page(server)
        return frozenset() if found is None else Page(found[1]).names

    def capacity(self, server: Server) -> KVCapacity:
        """Return the KV-cache capacity, where the server's page tells it."""
        return endpoint_pages.read_capacity(server)

    def classify(self, log_tail: str, returncode: int | None) -> str:  # noqa: ARG002 - there is no log
        """Return that it ended: nobody here knows why."""
        return "died"
