"""The client held against a server whose truth is known."""

import json
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jobs.errors import ReplayError
from jobs.replay.ceiling import NullServerProcess, Pour, _compare
from jobs.replay.data import ReplayData

MS = 1_000_000


def test_the_null_server_streams_what_it_says_it_did(tmp_path: Path) -> None:
    server = NullServerProcess(Pour(streams=1, interval=0.002, chunks=3, tokens=4), tmp_path / "truth.bin")
    body = json.dumps({"prompt": [42, 7, 7], "max_tokens": 10}).encode()
    head = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
    received = b""
    with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2]))) as client:
        client.sendall(head + body[:5])
        client.sendall(body[5:])
        while not received.endswith(b"0\r\n\r\n"):
            received += client.recv(65536)
        client.sendall(b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b'"null"' in client.recv(65536)
    [(key, when, sent)] = server.stop()
    assert key == 42
    assert len(sent) == 3
    assert when < sent[0] < sent[1] < sent[2]
    events = [json.loads(line[6:]) for line in received.split(b"\n") if line.startswith(b"data: {")]
    assert [event["usage"]["completion_tokens"] for event in events] == [4, 8, 10, 10]
    assert [event["usage"]["prompt_tokens"] for event in events] == [3] * 4
    assert events[2]["choices"][0]["finish_reason"] == "length"
    assert b"data: [DONE]" in received


@pytest.fixture
def replay(make_replay: Callable[..., ReplayData]) -> ReplayData:
    """One request: dispatched at 0, chunks at 20, 30, 40, 50 and 60 ms."""
    data = make_replay(users=1, rounds=1)
    return replace(data, requests=(replace(data.requests[0], conversation="5"),))


POUR = Pour(streams=1, interval=0.01, chunks=5)


def test_errors_are_the_clients_figure_minus_the_servers(replay: ReplayData) -> None:
    # Received at 1 ms, sent at 18, 28, 38, 48.5 and 58: the client's TTFT is 3 ms too long, two of its four
    # gaps are 0.5 ms off.
    sent = np.array([18 * MS, 28 * MS, 38 * MS, 48.5 * MS, 58 * MS]).astype(np.int64)
    cost = _compare(POUR, replay, [(5, 1 * MS, sent)], cpu=0.3)
    assert cost.ttft_error_p99_ms == pytest.approx(3.0)
    assert cost.itl_error_p50_ms == pytest.approx(0.25)
    assert cost.itl_error_p99_ms == pytest.approx(0.5)
    assert cost.wall_over_ideal == pytest.approx(61 / 50)
    assert cost.server_wall_over_ideal == pytest.approx(57 / 50)
    assert cost.us_per_chunk == pytest.approx(0.1e6 / 5)
    assert cost.fixed_cpu_seconds == pytest.approx(0.2)


def test_a_chunk_nobody_counted_is_an_error(replay: ReplayData) -> None:
    with pytest.raises(ReplayError, match="6 chunks were sent, 5 counted"):
        _compare(POUR, replay, [(5, 0, np.arange(6, dtype=np.int64))], cpu=0.3)
