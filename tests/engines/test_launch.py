"""Starting engines that behave in every way an engine was seen to behave: small real servers."""

import os
import pickle
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest

from engines.acceptance_translation import Forced
from engines.base import Capabilities, Command, KVCapacity, Refusal, Server, Site
from engines.counters import Counters
from engines.errors import (
    EngineDiedError,
    EngineError,
    EngineMemoryError,
    EngineStartError,
    MissingModelError,
    PortInUseError,
    StartTimeoutError,
    WrongServerError,
)
from engines.launch import RunningEngine, start_engine
from engines.ports import lease_port, listeners
from engines.spec import EngineConfig, Model

SERVER = r"""
import json, os, sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer
port, manner, model = int(sys.argv[1]), sys.argv[2], sys.argv[3]
print("engine starts", flush=True)
if manner == "oom":
    print("torch.OutOfMemoryError: no memory for the KV cache", flush=True)
    sys.exit(1)
if manner == "no-model":
    sys.exit("the model folder is not there")
if manner == "unknown":
    sys.exit("RuntimeError: something else")
if manner == "signal":
    os.kill(os.getpid(), 11)
if manner == "silent":
    time.sleep(600)
if manner == "child" and os.fork():
    while True:
        time.sleep(600)
asked = {"health": 0, "completion": 0}
class Handler(BaseHTTPRequestHandler):
    def answer(self, status, body):
        self.send_response(status)
        text = json.dumps(body).encode()
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def do_GET(self):
        asked["health"] += self.path == "/health"
        if manner in ("late", "shares") and asked["health"] < 4:
            return self.answer(503, {})
        if manner == "no-list" and self.path == "/v1/models":
            return self.answer(200, ["?"])
        self.answer(200, {"data": [{"id": "other" if manner == "other-model" else model}]})
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked["completion"] += 1
        if manner == "dies-at-first":
            print("EngineDeadError: the first request", flush=True)
            os._exit(1)
        if manner == "refuses":
            return self.answer(400, {"error": {"message": "no such thing"}})
        if manner == "warms-up" and asked["completion"] < 3:
            return self.answer(500, {})
        print("completed", body["model"], body["max_tokens"], flush=True)
        self.answer(200, {"choices": [{"text": "yes"}]})
    def log_message(self, *args):
        pass
if manner == "shares":
    HTTPServer.allow_reuse_port = True
HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


class Scripted:
    """An engine whose server is the script above."""

    name = "scripted"
    capabilities = Capabilities(emulated=True, cache_salt=False, cache_reset=False)

    def version(self, python: str | None, *, device: str = "gpu") -> str:
        return "1"

    def refusals(self, config: EngineConfig) -> Sequence[Refusal]:
        return ()

    def remote_servers(self, config: EngineConfig) -> Sequence[Server]:
        return ()

    def command(self, config: EngineConfig, site: Site) -> Command:
        argv = (sys.executable, "-S", "-c", SERVER, str(site.port), config.flags["manner"], config.model.name)
        return Command(argv=argv, env={"PATH": os.environ["PATH"]}, cwd=site.directory)

    def forced_acceptance(self, config: EngineConfig) -> Forced | None:
        return None

    def resolved(self, server: Server) -> Mapping[str, Any]:
        return {}

    def contradictions(self, config: EngineConfig, resolved: Mapping[str, Any]) -> Sequence[str]:
        return ("it runs on steam",) if config.flags["manner"] == "other-configuration" else ()

    def drafter_keys(self, config: EngineConfig) -> Sequence[str]:
        return ()

    def reset_cache(self, server: Server) -> bool:
        return False

    def counters(self, server: Server) -> Counters:
        raise EngineError("no counters")

    def capacity(self, server: Server) -> KVCapacity:
        return KVCapacity(tokens=None, block_size=None)

    def classify(self, log_tail: str, returncode: int | None) -> str:
        words = {"OutOfMemory": "out_of_memory", "not there": "missing_model", "Dead": "died"}
        return next((cause for word, cause in words.items() if word in log_tail), "start")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with lease_port() as lease:
        yield Site(port=lease.port, directory=tmp_path / "engine")


def start(site: Site, manner: str, seconds: float = 60.0) -> RunningEngine:
    config = EngineConfig(engine="scripted", version="1", model=Model(name="m"), flags={"manner": manner})
    return start_engine(Scripted(), config, site, ready_seconds=seconds)


def processes_of(site: Site) -> list[int]:
    """Return the living processes that have the site's port on their command line."""
    found = []
    for process in psutil.process_iter():
        try:
            if str(site.port) in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.NoSuchProcess:
            continue
    return found


@pytest.mark.parametrize("manner", ["ready", "late", "warms-up", "child"])
def test_ready_means_a_completion_from_our_own_process(site: Site, manner: str) -> None:
    with start(site, manner) as running:
        running.check()
        assert "completed m 4" in running.process.log_tail()
        assert running.server.url == f"http://127.0.0.1:{site.port}"
        assert running.server.pid == running.process.pid
        assert running.start_seconds > 0
        assert (site.directory / "engine.log").exists()
        assert processes_of(site)
    assert processes_of(site) == []


@pytest.mark.parametrize(
    ("manner", "error", "cause", "words"),
    [
        ("oom", EngineMemoryError, "out_of_memory", "exit code 1, out_of_memory.*no memory for the KV cache"),
        ("no-model", MissingModelError, "missing_model", "exit code 1, missing_model.*is not there"),
        ("unknown", EngineStartError, "start", "exit code 1, start.*RuntimeError: something else"),
        ("signal", EngineStartError, "start", "signal 11"),
        ("dies-at-first", EngineStartError, "start", "exit code 1, died.*the first request"),
        ("refuses", EngineStartError, "start", "refused its first completion.*no such thing"),
        ("other-model", WrongServerError, "wrong_server", r"serves \['other'\], not 'm'"),
        (
            "other-configuration",
            WrongServerError,
            "wrong_server",
            "not engine tp1/none as it was ordered: .*steam",
        ),
        ("no-list", WrongServerError, "wrong_server", r"serves \[\], not 'm'"),
    ],
)
def test_every_failure_is_named_with_the_log_and_leaves_nothing(
    site: Site, manner: str, error: type[EngineStartError], cause: str, words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        start(site, manner)
    assert type(caught.value) is error
    assert caught.value.cause == cause
    assert "engine starts" in caught.value.log_tail
    assert processes_of(site) == []
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.log_tail) == (error, str(caught.value), caught.value.log_tail)


def test_an_engine_that_says_nothing_ends_at_the_deadline(site: Site) -> None:
    with pytest.raises(StartTimeoutError, match=r"waited 2 s for the first answer of /health.*engine starts"):
        start(site, "silent", seconds=2.0)
    assert processes_of(site) == []


def test_a_taken_port_is_found_before_anything_starts(site: Site) -> None:
    with (
        socket.create_server(("127.0.0.1", site.port)),
        pytest.raises(PortInUseError, match=f"port {site.port} on 127.0.0.1 is taken"),
    ):
        start(site, "ready")
    assert not site.directory.exists()


def test_somebody_elses_server_on_the_port_is_not_ours(site: Site) -> None:
    """Our engine never listens; meanwhile another server that knows all the right answers takes its port."""

    class Impostor(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    def intrude() -> None:
        while not (site.directory / "engine.log").exists():
            time.sleep(0.01)
        with ThreadingHTTPServer(("127.0.0.1", site.port), Impostor) as server:
            intruder.append(server)
            server.serve_forever(poll_interval=0.01)

    intruder: list[ThreadingHTTPServer] = []
    thread = threading.Thread(target=intrude)
    thread.start()
    try:
        with pytest.raises(WrongServerError, match=f"answers on port {site.port}"):
            start(site, "silent", seconds=20.0)
    finally:
        while not intruder:
            time.sleep(0.01)
        intruder[0].shutdown()
        thread.join()
    assert processes_of(site) == []


def test_a_server_that_shares_the_port_with_ours_is_found(site: Site) -> None:
    """vLLM's servers ask for SO_REUSEPORT: two of them share a port and get half of the requests each."""
    with socket.socket() as other:
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            other.setsockopt(socket.SOL_SOCKET, option, 1)
        other.bind(("127.0.0.1", site.port))  # not listening yet: the port looks free
        over = threading.Event()

        def intrude() -> None:
            while not listeners("127.0.0.1", site.port) and not over.wait(0.02):
                pass
            other.listen()

        thread = threading.Thread(target=intrude)
        thread.start()
        try:
            with pytest.raises(WrongServerError, match=f"others listen too.*process {os.getpid()}"):
                start(site, "shares", seconds=30.0)
        finally:
            over.set()
            thread.join()
    assert processes_of(site) == []


def test_an_engine_that_dies_in_use_is_reported_by_check(site: Site) -> None:
    with start(site, "ready") as running:
        os.kill(running.process.pid, signal.SIGKILL)
        deadline = time.monotonic() + 15
        while running.process.returncode() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        with pytest.raises(EngineDiedError, match="signal 9") as caught:
            running.check()
        assert "completed m 4" in caught.value.log_tail
        assert running.stop(1.0).survivors == 0
