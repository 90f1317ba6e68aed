"""What a test must not leave behind: processes, ports, reservations and temporary files of its sweeps."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import ray
from ray.util.placement_group import placement_group_table

from engines.ports import LOCK, listeners
from tests.cluster.conftest import wait_until

OURS = (
    "engines/guard",
    "engines.emulator",
    "vllm",
    "VLLM::",
    "jobs.replay",
    "jobs/janitor",
    "BlockRunner",
    "RecordRunner",
    "specload sweep",
)
"""Words in the command lines of all that a sweep starts, Ray's own processes apart."""
KEPT = "specload-cores-"
"""Prefix of the one folder that stays: the locks of the machine's cores."""
SECONDS = 30.0
"""How long what was told to end may take to be gone."""


@contextmanager
def nothing_left(temporary: Path, results: Path) -> Iterator[None]:
    """Check that what ran inside the `with` has left nothing.

    Args:
        temporary: TMPDIR of everything that ran.
        results: the results folder of its sweeps.
    """
    yield
    assert wait_until(lambda: not leftovers(temporary, results), seconds=SECONDS), leftovers(
        temporary, results
    )


def leftovers(temporary: Path, results: Path) -> list[str]:
    """Return what is left, one line each."""
    return [
        *(f"process {process}" for process in _processes(temporary)),
        *(f"port {port}" for port in _ports(results)),
        *(f"file {path}" for path in temporary.glob("specload-*") if not path.name.startswith(KEPT)),
        *(_reserved() if ray.is_initialized() else ()),
    ]


def _processes(temporary: Path) -> list[str]:
    """Return the command lines of what a sweep started and works below the temporary folder."""
    found = []
    for process in psutil.process_iter():
        try:
            line = " ".join(process.cmdline())
            if not any(word in line for word in OURS) or process.status() == psutil.STATUS_ZOMBIE:
                continue
            places = (line, process.cwd(), process.environ().get("TMPDIR", ""))
        except psutil.Error:
            continue
        if any(str(temporary) in place for place in places):
            found.append(f"{process.pid} {line[:200]}")
    return found


def _ports(results: Path) -> list[int]:
    """Return the ports of the sweeps' engines that somebody listens on or holds a lease of."""
    commands = results.glob("*/engines/*/*-command.json")
    ports = {int(json.loads(path.read_text())["site"]["port"]) for path in commands}
    locks = Path("/proc/net/unix").read_text().split()
    return [
        port
        for port in sorted(ports)
        if LOCK.format(port).replace("\0", "@") in locks or listeners("127.0.0.1", port)
    ]


def _reserved() -> list[str]:
    """Return what the cluster that this process is connected to still holds for blocks."""
    groups = placement_group_table().items()
    held = [f"placement group {name}: {group['state']}" for name, group in groups if _is_held(group["state"])]
    owned, free = ray.cluster_resources(), ray.available_resources()
    return held + [
        f"{owned[name] - free.get(name, 0.0):g} of {owned[name]:g} {name}"
        for name in ("GPU", "CPU")
        if free.get(name, 0.0) != owned.get(name, 0.0)
    ]


def _is_held(state: str) -> bool:
    return state != "REMOVED"
