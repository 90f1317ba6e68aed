"""The adapter of the emulated engine: how it is started and read by the rest of the project."""

import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from engines import vllm_http
from engines.acceptance_translation import Forced
from engines.base import Capabilities, Command, KVCapacity, Refusal, Rule, Server, Site
from engines.counters import Counters
from engines.digest import canonical_json
from engines.emulator import EMULATOR_VERSION
from engines.emulator.info import DRAFTER_KEYS
from engines.emulator.refusals import EMULATOR_RULES
from engines.emulator.settings import flags_of
from engines.rules import COMMON_RULES, refusals_by
from engines.schedule import KRange
from engines.series import Series
from engines.spec import EngineConfig
from engines.vllm_schedule import by_batch_size
from engines.vllm_series import EMULATOR_SERIES

_PACKAGES = Path(__file__).resolve().parents[2]
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
_CAUSES = (
    # Order matters: an injected or real traceback may follow the line that explains it.
    ("out of memory", "out_of_memory"),
    ("address already in use", "port_in_use"),
    ("unknown model", "missing_model"),
    ("bad setting", "bad_flag"),
    ("error: unrecognized arguments", "bad_flag"),
)


class EmulatorEngine:
    """Emulated hardware behind a real HTTP server."""

    name = "emulator"
    written_for = f"the emulator {EMULATOR_VERSION}"
    rules: Sequence[Rule] = (*COMMON_RULES, *EMULATOR_RULES)
    capabilities = Capabilities(
        emulated=True,
        cache_salt=True,
        cache_reset=True,
        kv_clamp=True,
        rank_header="X-data-parallel-rank",
        request_options={"ignore_eos": True, "temperature": 0},
    )
    series: Sequence[Series] = EMULATOR_SERIES

    def version(self, python: str | None, *, device: str = "gpu") -> str:  # noqa: ARG002 - the emulator is part of this project, wherever it runs
        """Return the emulator's version."""
        return EMULATOR_VERSION

    def refusals(self, config: EngineConfig) -> Sequence[Refusal]:
        """Return every rule that forbids `config`; empty when it may run."""
        return refusals_by(self.rules, config)

    def remote_servers(self, config: EngineConfig) -> Sequence[Server]:  # noqa: ARG002 - we start every one
        """Return nothing: every server of this engine is started by us."""
        return ()

    def command(self, config: EngineConfig, site: Site) -> Command:
        """Return the command line and environment that start `config` at `site`.

        Raises:
            EngineConfigError: an unknown model, GPU, drafter, option or flag.
        """
        flags_of(config)
        # The interpreter's path is a place, not content, and the file name of a site names its start: the
        # same sweep in the same folders meets the same start effects again.
        content = canonical_json(asdict(replace(config, python=None)))
        argv = (
            config.python or sys.executable,
            "-m",
            "engines.emulator",
            "--host",
            site.host,
            "--port",
            str(site.port),
            "--start",
            site.directory.name,
            "--config",
            content,
            *_clamp_words(config, site),
        )
        env = {
            "PATH": os.environ.get("PATH", _SYSTEM_PATH),
            "PYTHONPATH": str(_PACKAGES),
            "PYTHONHASHSEED": "0",
            "PYTHONUNBUFFERED": "1",
            **config.env,
        }
        return Command(argv=argv, env=env, cwd=site.directory)

    def forced_acceptance(self, config: EngineConfig) -> Forced | None:
        """Return the arm's synthetic acceptance, which the emulator draws as it is; None for its own."""
        drafter = config.drafter
        return Forced(rates=drafter.acceptance.rates(drafter.k)) if drafter.acceptance else None

    def by_batch_size(self, config: EngineConfig, ranges: Sequence[KRange]) -> EngineConfig:
        """Return `config` with its drafter's K by the number of running requests, in vLLM's spelling.

        Raises:
            EngineConfigError: `ranges` are no schedule.
        """
        return by_batch_size(config, ranges)

    def resolved(self, server: Server) -> Mapping[str, Any]:
        """Return the engine's resolved configuration as flat keys."""
        return vllm_http.read_server_info(server.url)

    def contradictions(self, config: EngineConfig, resolved: Mapping[str, Any]) -> Sequence[str]:
        """Return where a server's `resolved` configuration is not that of `config`; empty when it is."""
        found = resolved.get("config_digest")
        if found == config.digest:
            return ()
        return (f"its configuration has digest {found}, not {config.digest}",)

    def drafter_keys(self, config: EngineConfig) -> Sequence[str]:  # noqa: ARG002 - the same for every configuration
        """Return prefixes of `resolved` keys that may differ in a pair because the drafter does."""
        return DRAFTER_KEYS

    def reset_cache(self, server: Server) -> bool:
        """Empty the prefix cache; True when the engine confirmed it."""
        return vllm_http.post_reset(server.url)

    def counters(self, server: Server) -> Counters:
        """Return a snapshot of the engine's counters, summed over its ranks."""
        return vllm_http.read_counters(server.url)

    def exposed(self, server: Server) -> Collection[str]:
        """Return the names of all series on the server's metrics page."""
        return vllm_http.read_names(server.url)

    def capacity(self, server: Server) -> KVCapacity:
        """Return the KV-cache capacity."""
        return vllm_http.read_capacity(server.url)

    def classify(self, log_tail: str, returncode: int | None) -> str:  # noqa: ARG002 - its log says more than its code
        """Return the `cause` word that the log of an ended engine shows."""
        text = log_tail.lower()
        return next((cause for words, cause in _CAUSES if words in text), "died")


def _clamp_words(config: EngineConfig, site: Site) -> tuple[str, ...]:
    """Return what clamps the KV cache of each rank to what is left beside another's drafter."""
    if config.kv_match is None or site.kv is None:
        return ()
    return ("--kv-tokens", str(site.kv.rank_tokens))
