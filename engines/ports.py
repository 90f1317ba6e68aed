"""TCP ports: leases, so that two engines on one machine never get the same one, and who listens on one."""

import random
import socket
from pathlib import Path
from typing import Self

import psutil

from engines.errors import PortInUseError

FIRST, LAST = 18_000, 32_000
"""Below the range from which Linux takes ports for outgoing connections: those come and go unasked."""
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
LOCK = "\0specload-port-{}"
"""Name of a port's lock: an abstract Unix socket. It exists in the same network namespace as the port itself,
needs no folder that all users and containers share, and the kernel frees it however its holder ends."""

ANYWHERE = ("0.0.0.0", "::")  # noqa: S104  compared with, never bound
"""Addresses that stand for all of a machine's."""


class PortLease:
    """One leased port; `close`, the end of a `with`, or the death of this process gives it back."""

    def __init__(self, port: int, lock: socket.socket) -> None:
        self.port = port
        self._lock = lock

    def close(self) -> None:
        """Give the port back."""
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def lease_port(host: str = "127.0.0.1") -> PortLease:
    """Lease a port that nobody listens on and nobody else has leased.

    Raises:
        PortInUseError: not one is free.
    """
    ports = _candidates()
    random.shuffle(ports)
    for port in ports:
        lock = _locked(port)
        if lock is None:
            continue
        if is_free(port, host):
            return PortLease(port, lock)
        lock.close()
    message = f"no free port from {ports and min(ports)} to {ports and max(ports)} on {host}"
    raise PortInUseError(message)


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Whether a server could listen on `port` now."""
    with socket.socket() as probe:
        probe.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # as servers do: old connections do not count
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError:
            return False
        return True


def listeners(host: str, port: int) -> list[int | None]:
    """Return the process of each socket that takes connections to `host:port`; None for another user's."""
    addresses = (host, *ANYWHERE)
    return [
        found.pid
        for found in psutil.net_connections(kind="tcp")
        if found.status == psutil.CONN_LISTEN
        and found.laddr
        and found.laddr.port == port
        and (found.laddr.ip in addresses or host in ANYWHERE)
    ]


def _candidates() -> list[int]:
    low, high = (int(word) for word in EPHEMERAL.read_text().split())
    outside = [port for port in range(FIRST, LAST) if not low <= port <= high]
    return outside or list(range(FIRST, LAST))


def _locked(port: int) -> socket.socket | None:
    lock = socket.socket(socket.AF_UNIX)
    try:
        lock.bind(LOCK.format(port))
    except OSError:
        lock.close()
        return None
    return lock
