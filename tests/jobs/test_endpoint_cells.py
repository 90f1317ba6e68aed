"""Cells on servers that somebody else runs: emulators that the tests start, not the code under test."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx
import pytest

from engines.acceptance import Acceptance
from engines.attach import attach_engine
from engines.emulator import EMULATOR_VERSION
from engines.emulator.adapter import EmulatorEngine
from engines.endpoint import EndpointEngine
from engines.errors import EngineEnvironmentError, StartTimeoutError, WrongServerError
from engines.spec import Drafter, EngineConfig, Model
from engines.vllm_http import control_client
from jobs.block import BlockRunner
from jobs.result import INVALID, MEASURED, OPENING, TREATMENT, CellResult
from jobs.task import CellReport, EngineReport
from tests.fleets import running
from tests.jobs.test_cell_emulated import run_task, task
from tests.lateness import broken

DRAFTER = Drafter(method="eagle3", k=3, acceptance=Acceptance(alpha=0.7))
THEIRS = EngineConfig(
    engine="emulator",
    version=EMULATOR_VERSION,
    model=Model(name="llama-3.1-8b", max_context=4096),
    device="emulated",
    flags={"gpu": "h100", "noise": {"start": 0.0, "drift": 0.0, "step": 0.0}, "time_scale": 0.1},
)
TOKEN = "open-sesame-8341"


class Gateway(BaseHTTPRequestHandler):
    """Somebody's gateway: lets through who shows a token, and only the paths that `hidden` does not match."""

    protocol_version = "HTTP/1.1"
    behind = ""
    hidden = re.compile("(?!)")
    refused: list[str]

    def do_GET(self) -> None:
        self._pass_on("GET", None)

    def do_POST(self) -> None:
        self._pass_on("POST", self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def _pass_on(self, method: str, body: bytes | None) -> None:
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.refused.append(self.path)
            self._answer(401, b"who are you?", "text/plain")
        elif self.hidden.match(self.path):
            self._answer(404, b"nothing here", "text/plain")
        else:
            headers = {"Content-Type": "application/json"}
            with control_client() as client:
                answer = client.request(method, self.behind + self.path, content=body, headers=headers)
            self._answer(answer.status_code, answer.content, answer.headers["content-type"])

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def theirs() -> Iterator[dict[str, str]]:
    """Label of an arm -> URL of a server of it."""
    with ExitStack() as stack:
        urls = {}
        for config in (THEIRS, replace(THEIRS, drafter=DRAFTER)):
            fleet = stack.enter_context(running(EmulatorEngine(), config))
            urls[config.drafter.label] = fleet.servers[0].url
        yield urls


@pytest.fixture
def gateway() -> Iterator[Callable[[str, str], str]]:
    """Put a gateway before a server, which hides paths; return its URL."""
    with ExitStack() as stack:

        def make(behind: str, hidden: str = "(?!)") -> str:
            parts = {"behind": behind, "hidden": re.compile(hidden), "refused": []}
            server = ThreadingHTTPServer(("127.0.0.1", 0), type("Mine", (Gateway,), parts))
            Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            stack.callback(server.server_close)
            stack.callback(server.shutdown)
            return f"http://127.0.0.1:{server.server_port}"

        yield make


def endpoint(urls: dict[str, str], drafter: Drafter | None = None, **flags: Any) -> EngineConfig:
    return EngineConfig(
        engine="endpoint",
        version="unknown",
        model=THEIRS.model,
        drafter=drafter or Drafter(),
        device="emulated",
        flags={"urls": urls, **flags},
    )


def measured(*configs: EngineConfig) -> tuple[list[CellResult], list[EngineReport]]:
    runs = [run_task(config, 1, role=TREATMENT if index else OPENING) for index, config in enumerate(configs)]
    reports = list(BlockRunner().run(task(*runs)))
    results = [report.result for report in reports if isinstance(report, CellReport)]
    return results, [report for report in reports if isinstance(report, EngineReport)]


def test_a_pair_on_servers_of_somebody_else(theirs: dict[str, str]) -> None:
    (opening, treatment), reports = measured(endpoint(theirs), endpoint(theirs, DRAFTER))
    for result in (opening, treatment):
        assert broken(result) == {}
        assert result.outcome in (MEASURED, INVALID)  # lateness is no matter here
        assert result.emulated
        assert result.identity["cache"]["how"] == "salt"
        assert any("somebody else runs the server" in caveat for caveat in result.caveats)
        assert result.metrics["tokens/client_output"] == result.metrics["tokens/engine_output"] == 8 * 2 * 12
    assert treatment.metrics["spec/mal"] is not None
    assert treatment.metrics["spec/mal"] > 1.5
    assert opening.metrics["spec/mal"] == 1.0
    assert {gate.name: gate.passed for gate in treatment.gates}["configuration"] is True
    remote = json.loads(reports[0].files["r0-remote.json"])
    assert remote == {"url": theirs["none"], "header_variables": {}}
    assert httpx.get(f"{theirs['none']}/health").status_code == 200  # nobody stopped it


def test_what_a_server_does_not_show_is_neither_passed_nor_failed(
    theirs: dict[str, str], gateway: Callable[[str, str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_TOKEN", TOKEN)
    urls = {label: gateway(url, r"/(metrics|prometheus|server_info|health)") for label, url in theirs.items()}
    headers = {"Authorization": "GATEWAY_TOKEN"}
    arms = [endpoint(urls, drafter, headers=headers) for drafter in (None, DRAFTER)]
    (opening, treatment), reports = measured(*arms)
    assert broken(opening) == broken(treatment) == {}
    unchecked = {gate.name for gate in treatment.gates if gate.passed is None}
    assert unchecked >= {
        "output_identity",
        "prompt_identity",
        "computed_identity",
        "configuration",
        "cold_cache",
    }
    assert any("not checked" in caveat and "output_identity" in caveat for caveat in treatment.caveats)
    assert treatment.metrics["spec/mal"] is None
    assert treatment.metrics["tokens/engine_output"] is None
    assert treatment.metrics["kv/capacity_tokens"] is None
    assert {gate.name: gate.passed for gate in treatment.gates}["equal_work"] is True
    assert treatment.metrics["latency/e2el_p50_ms"] is not None  # the gateway hands answers over whole
    written = repr((treatment.to_dict(), [report.files for report in reports]))
    assert TOKEN not in written
    assert "GATEWAY_TOKEN" in written


def test_a_token_that_is_not_set_or_wrong(
    theirs: dict[str, str], gateway: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = endpoint({"none": gateway(theirs["none"])}, headers={"Authorization": "GATEWAY_TOKEN"})
    engine = EndpointEngine()
    assert [refusal.rule for refusal in engine.refusals(config)] == ["endpoint_headers"]
    (server,) = engine.remote_servers(config)
    with pytest.raises(EngineEnvironmentError, match=r"headers\.Authorization"):
        attach_engine(engine, server, ready_seconds=5)
    monkeypatch.setenv("GATEWAY_TOKEN", "wrong-token-1234")
    with pytest.raises(WrongServerError, match="status 401") as caught:
        attach_engine(engine, server, ready_seconds=5)
    assert "wrong-token" not in str(caught.value)


def test_a_server_that_is_not_the_arm_it_stands_for(theirs: dict[str, str]) -> None:
    engine = EndpointEngine()
    swapped = endpoint({"none": theirs[DRAFTER.label]})
    with pytest.raises(WrongServerError, match="it drafts 3 tokens a step, not 0"):
        attach_engine(engine, engine.remote_servers(swapped)[0], ready_seconds=5)
    other = replace(endpoint(theirs), model=Model(name="qwen3-8b", max_context=4096))
    with pytest.raises(WrongServerError, match=r"serves \['llama-3.1-8b'\], not 'qwen3-8b'"):
        attach_engine(engine, engine.remote_servers(other)[0], ready_seconds=5)


def test_a_server_that_does_not_answer_is_waited_for() -> None:
    engine = EndpointEngine()
    config = endpoint({"none": "http://127.0.0.1:9"})  # the discard port: nobody listens
    with pytest.raises(StartTimeoutError, match=r"not ready after 0\.6 s"):
        attach_engine(engine, engine.remote_servers(config)[0], ready_seconds=0.6)
