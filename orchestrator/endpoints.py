"""Sweeps over servers that somebody else runs: one block at a time, and a server for every replica."""

from collections.abc import Sequence
from dataclasses import replace

from engines.registry import engine_named
from engines.spec import EngineConfig
from orchestrator.errors import ConfigError
from orchestrator.plan import Arm, Block, Cluster


def is_remote(config: EngineConfig) -> bool:
    """Whether somebody else runs the servers of an arm."""
    return engine_named(config.engine).capabilities.remote


def one_at_a_time(cluster: Cluster) -> Cluster:
    """Return the cluster so that no two blocks meet on one server.

    Raises:
        ConfigError: it has several nodes, which would each run a block.
    """
    if cluster.address is not None:
        message = (
            "engine=endpoint measures servers that lie elsewhere, one block at a time, and "
            f"cluster.address={cluster.address} offers nodes that would each run one; leave cluster.address "
            "out: the load comes from where the sweep is started"
        )
        raise ConfigError(message)
    return replace(cluster, exclusive_node=True)


def check_servers(blocks: Sequence[Block], arms: Sequence[Arm]) -> None:
    """Check that every replica of an endpoint has a server.

    Raises:
        ConfigError: a block's slice holds more copies of an arm than it has servers.
    """
    by_digest = {arm.digest: arm for arm in arms}
    for block in blocks:
        for run in block.runs:
            arm = by_digest[run.arm]
            if not is_remote(arm.config):
                continue
            replicas = block.devices // arm.config.layout.devices
            servers = len(engine_named(arm.config.engine).remote_servers(arm.config))
            if servers != replicas:
                message = (
                    f"{arm.label} has {servers} in engine.flags.urls, and a slice of {block.devices} devices "
                    f"holds {replicas} servers of its size; list {replicas}, or choose design.share=layout"
                )
                raise ConfigError(message)


def engine_notes(arms: Sequence[Arm]) -> tuple[str, ...]:
    """Return what to keep in mind with the engines of a plan."""
    engines = dict.fromkeys(arm.config.engine for arm in arms)
    return tuple(caveat for name in engines for caveat in engine_named(name).capabilities.caveats)
