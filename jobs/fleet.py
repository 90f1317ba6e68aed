"""The engines of one run: one engine, or the replicas that fill a block's slice, started and read as one."""

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engines.attach import attach_engine
from engines.base import Engine, KVCapacity, Server, Site
from engines.counters import Counters
from engines.errors import EngineDiedError, EngineError, EngineHungError, PortInUseError
from engines.launch import LOG_NAME, start_engine
from engines.ports import lease_port
from engines.running import Running
from engines.spec import EngineConfig
from jobs.cores import Cores

REMOTE_NAME = "remote.json"
"""File that names a server somebody else runs, where other engines have their command line."""
PORT_ATTEMPTS = 3
"""A port can be taken by a foreign process between its lease and the engine's bind."""


class Fleet:
    """Replicas of one engine configuration on the devices and cores of a slice."""

    def __init__(
        self,
        engine: Engine,
        config: EngineConfig,
        *,
        name: str,
        devices: int,
        device_names: Sequence[str],
        cores: Cores,
        folder: Path | None = None,
        kv: KVCapacity | None = None,
    ) -> None:
        """Prepare to start engines.

        Args:
            engine: their adapter.
            config: what each of them is.
            name: name of the fleet, from which its sites have theirs.
            devices: devices of the slice.
            device_names: concrete GPUs; empty where a stand-in resource is used.
            cores: the block's cores.
            folder: where the working folder is made; None for the system's temporary folder.
            kv: what each engine's KV cache is clamped to; None for its natural size.
        """
        self.engine = engine
        self.config = config
        self.replicas = max(1, devices // config.layout.devices)
        self.name = name
        self.device_names = tuple(device_names)
        self.kv = kv
        self._cores = cores
        self._running: list[Running] = []
        self.survivors = 0
        """Processes of stopped replicas that even SIGKILL did not end."""
        self._exit = ExitStack()
        self._directory = Path(tempfile.mkdtemp(prefix="specload-engine-", dir=folder))

    def start(self, *, ready_seconds: float) -> float:
        """Start every replica and return the seconds until the slowest was ready.

        Raises:
            EngineStartError: one of them did not become ready; those already started are stopped by `stop`.
        """
        with ThreadPoolExecutor(self.replicas) as threads:
            starts = [
                threads.submit(self._start_replica, replica, ready_seconds)
                for replica in range(self.replicas)
            ]
        errors = [error for start in starts if (error := start.exception()) is not None]
        self._running.extend(start.result() for start in starts if start.exception() is None)
        if errors:
            raise errors[0]
        return max(running.start_seconds for running in self._running)

    def stop(self, *, grace: float) -> None:
        """Stop every replica; after it nothing of them lives, and `start` may be called again."""
        for running in self._running:
            self.survivors += running.stop(grace).survivors
        self._running.clear()
        self._exit.close()

    def remove_files(self) -> None:
        """Remove the working folder: `files` has nothing to return after this."""
        shutil.rmtree(self._directory, ignore_errors=True)

    def check(self) -> None:
        """Raise `EngineDiedError` if a replica has ended."""
        for running in self._running:
            running.check()

    def check_service(self) -> None:
        """Raise unless every replica still serves: what its clients ran into may be its end, seen early.

        Raises:
            EngineDiedError: a replica ends, within the seconds that takes to be seen.
            EngineHungError: a replica lives and is not healthy.
        """
        for running in self._running:
            running.check_service()

    def explained(self, error: EngineError) -> EngineError:
        """Return the end of a replica where `error` came from that, else `error` itself."""
        if isinstance(error, EngineDiedError | EngineHungError):
            return error
        try:
            self.check_service()
        except EngineError as reason:
            return reason
        return error

    @property
    def servers(self) -> tuple[Server, ...]:
        """The started replicas."""
        return tuple(running.server for running in self._running)

    def reset_cache(self) -> bool:
        """Empty every prefix cache; True when all replicas confirmed it."""
        confirmed = [self.engine.reset_cache(server) for server in self.servers]
        return all(confirmed)

    def counters(self) -> Counters:
        """Return the counters summed over the replicas."""
        return Counters.combined([self.engine.counters(server) for server in self.servers])

    def capacities(self) -> tuple[KVCapacity, ...]:
        """Return the KV capacity of each replica."""
        return tuple(self.engine.capacity(server) for server in self.servers)

    def capacity_tokens(self) -> int | None:
        """Return the KV capacity of the slice in tokens; None where an engine does not say."""
        tokens = [capacity.tokens for capacity in self.capacities()]
        known = [count for count in tokens if count is not None]
        return sum(known) if len(known) == len(tokens) else None

    def block_size(self) -> int | None:
        """Return the KV block size in tokens."""
        return self.engine.capacity(self.servers[0]).block_size

    def resolved(self) -> Mapping[str, Any]:
        """Return the resolved configuration of the first replica: all are started alike."""
        return self._running[0].resolved

    def files(self) -> dict[str, bytes]:
        """Return what the engines leave behind: command lines (or where somebody else's are) and logs."""
        found: dict[str, bytes] = {}
        for replica in range(self.replicas):
            for name in ("command.json", REMOTE_NAME, LOG_NAME):
                path = self._site_directory(replica) / name
                if path.exists():
                    found[f"r{replica}-{name}"] = path.read_bytes()
        return found

    def log_tail(self) -> str:
        """Return the last lines of every replica's log."""
        return "\n".join(running.log_tail() for running in self._running)

    def site(self, replica: int) -> Site:
        """Return a place for one replica: its devices and cores, a leased port, a folder of its own."""
        width = self.config.layout.devices
        directory = self._site_directory(replica)
        directory.mkdir(exist_ok=True)
        port = self._exit.enter_context(lease_port()).port
        return Site(
            port=port,
            directory=directory,
            devices=self.device_names[replica * width : (replica + 1) * width],
            cpus=self._cores.of_replica(replica, self.replicas),
            start_cpus=tuple(sorted({*self._cores.engine, *self._cores.load})),
            kv=self.kv,
        )

    def _start_replica(self, replica: int, ready_seconds: float) -> Running:
        remote = self.engine.remote_servers(self.config)
        if remote:
            assert replica < len(remote), f"{len(remote)} servers for {self.replicas} replicas"
            return self._attached(replica, remote[replica], ready_seconds)
        for attempt in range(1, PORT_ATTEMPTS + 1):
            site = self.site(replica)
            command = self.engine.command(self.config, site)
            record = {
                "argv": list(command.argv),
                "env": dict(command.env),
                "files": dict(command.files),
                "site": asdict(site),
            }
            (site.directory / "command.json").write_text(json.dumps(record, indent=1, default=str))
            try:
                return start_engine(self.engine, self.config, site, ready_seconds=ready_seconds)
            except PortInUseError:
                if attempt == PORT_ATTEMPTS:
                    raise
        raise AssertionError

    def _attached(self, replica: int, server: Server, ready_seconds: float) -> Running:
        directory = self._site_directory(replica)
        directory.mkdir(exist_ok=True)
        record = {"url": server.url, "header_variables": dict(server.header_variables)}
        (directory / REMOTE_NAME).write_text(json.dumps(record, indent=1))
        return attach_engine(self.engine, server, ready_seconds=ready_seconds)

    def _site_directory(self, replica: int) -> Path:
        return self._directory / f"{self.name}-r{replica}"


def visible_devices(resource: str, count: int) -> tuple[str, ...]:
    """Return the concrete GPUs that Ray gave this process; empty where a stand-in resource is used."""
    if resource != "GPU":
        return ()
    names = tuple(name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name)
    assert len(names) >= count, f"Ray promised {count} GPUs and shows {names}"
    return names[:count]
