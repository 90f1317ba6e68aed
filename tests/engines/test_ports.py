import os
import signal
import socket
import subprocess
import sys

import pytest

from engines import ports
from engines.errors import PortInUseError
from engines.ports import is_free, lease_port

HOLDER = """
import time
from engines.ports import lease_port
lease = lease_port()
print(lease.port, flush=True)
time.sleep(600)
"""


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Three ports and no others."""
    with lease_port() as first, lease_port() as second, lease_port() as third:
        few = [first.port, second.port, third.port]
    monkeypatch.setattr(ports, "_candidates", lambda: list(few))
    return few


def test_no_port_is_leased_twice_and_closing_gives_it_back(only: list[int]) -> None:
    leases = [lease_port() for _ in only]
    assert sorted(lease.port for lease in leases) == sorted(only)
    with pytest.raises(PortInUseError, match=f"no free port from {min(only)} to {max(only)}"):
        lease_port()
    leases[1].close()
    with lease_port() as again:
        assert again.port == leases[1].port
    for lease in leases:
        lease.close()


def test_a_port_that_somebody_listens_on_is_not_leased(only: list[int]) -> None:
    with socket.create_server(("127.0.0.1", only[0])):
        assert not is_free(only[0])
        leases = [lease_port(), lease_port()]
        assert sorted(lease.port for lease in leases) == sorted(only[1:])
        with pytest.raises(PortInUseError):
            lease_port()
        for lease in leases:
            lease.close()
    assert is_free(only[0])


def test_old_connections_do_not_hold_a_port(only: list[int]) -> None:
    server = socket.create_server(("127.0.0.1", only[0]))
    client = socket.create_connection(("127.0.0.1", only[0]))
    accepted, _ = server.accept()
    accepted.close()  # the server's side closes first, and its end waits in TIME_WAIT
    client.close()
    server.close()
    assert is_free(only[0])


def test_a_killed_holder_gives_its_port_back(monkeypatch: pytest.MonkeyPatch) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    port = int(holder.stdout.readline())
    monkeypatch.setattr(ports, "_candidates", lambda: [port])
    with pytest.raises(PortInUseError):
        lease_port()
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    with lease_port() as lease:
        assert lease.port == port


def test_ports_come_from_outside_the_range_of_outgoing_connections() -> None:
    low, high = map(int, ports.EPHEMERAL.read_text().split())
    assert not [port for port in ports._candidates() if low <= port <= high]
