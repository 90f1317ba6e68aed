"""Replicas behind https://, checked against an authority of the test's own."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from jobs.errors import ReplayError
from jobs.replay.data import ReplayData
from jobs.replay.job import ReplayJob
from jobs.replay.launch import run_replay
from jobs.workload.tokens import TokenConversation, TokenTurn, TokenWorkload

SERVER = Path(__file__).parents[1] / "scripted_server.py"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate of 127.0.0.1 with its key, in one PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "replica")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "certificate.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


@pytest.fixture(scope="module")
def tls_url(certificate: Path) -> Iterator[str]:
    port_file = certificate.with_name("port.txt")
    process = subprocess.Popen([sys.executable, str(SERVER), str(port_file), str(certificate)])
    try:
        while not port_file.exists():
            assert process.poll() is None, "the scripted server did not start"
            time.sleep(0.02)
        yield f"https://127.0.0.1:{port_file.read_text()}"
    finally:
        process.terminate()
        process.wait()


def replay(
    url: str, workload: TokenWorkload, folder: Path, *, model: str = "good", ca_file: Path | None = None
) -> ReplayData:
    job = ReplayJob(
        urls=(url,),
        model=model,
        workload="",
        order=tuple((index, 0) for index in range(len(workload.conversations))),
        concurrency=2,
        salt=None,
        ca_file=None if ca_file is None else str(ca_file),
    )
    return run_replay(job, workload, folder)


@pytest.mark.parametrize("model", ["good", "byte_by_byte", "closes"])
def test_a_replay_over_tls(
    tls_url: str,
    certificate: Path,
    make_workload: Callable[..., TokenWorkload],
    tmp_path: Path,
    model: str,
) -> None:
    data = replay(tls_url, make_workload(4), tmp_path, model=model, ca_file=certificate)
    assert data.summary.errors == 0
    assert data.summary.requests == 8
    for request in data.requests:
        assert request.first is not None
        assert request.send_lag is not None
        assert request.send_lag >= 0
        assert request.dispatched < request.first


def test_a_prompt_larger_than_the_socket_buffers_is_dispatched_when_its_last_byte_has_gone(
    tls_url: str, certificate: Path, tmp_path: Path
) -> None:
    turn = TokenTurn(keep=0, suffix=tuple(range(100_000, 500_000)), output_tokens=3)
    workload = TokenWorkload(
        name="large",
        conversations=(TokenConversation(id="c", turns=(turn,)),),
        validity="synthetic",
        tokenizer="none",
    )
    data = replay(tls_url, workload, tmp_path, ca_file=certificate)
    [request] = data.requests
    assert request.error is None
    assert request.prompt_tokens == 400_000
    assert request.send_lag is not None
    assert request.send_lag > 0


def test_a_certificate_nobody_vouches_for_is_refused(
    tls_url: str, make_workload: Callable[..., TokenWorkload], tmp_path: Path
) -> None:
    data = replay(tls_url, make_workload(2), tmp_path)
    assert {request.error for request in data.requests} == {"refused"}
    assert all("certificate" in request.error_detail.lower() for request in data.requests)
    assert all(request.send_lag is None for request in data.requests)


def test_a_ca_file_that_is_none_is_named(
    tls_url: str, make_workload: Callable[..., TokenWorkload], tmp_path: Path
) -> None:
    with pytest.raises(ReplayError, match=r"CA file .*missing\.pem"):
        replay(tls_url, make_workload(2), tmp_path, ca_file=tmp_path / "missing.pem")
