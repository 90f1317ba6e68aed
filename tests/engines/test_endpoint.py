"""Settings and rules of servers that somebody else runs, and the pages that tell whose they are."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from engines.base import Server
from engines.endpoint import EndpointEngine
from engines.endpoint_rules import ENDPOINT_RULES
from engines.endpoint_settings import settings_of
from engines.errors import EngineConfigError, EngineError
from engines.spec import Drafter, EngineConfig, Layout, Model
from engines.strategy import CacheStrategy

ENGINE = EndpointEngine()
URLS: Mapping[str, Any] = {
    "none": "http://h:1",
    "tp2/none": "http://h:3",
    "ngram-k3": ["https://x/y/", "http://h:2"],
}
PAGES = Path(__file__).parent / "pages"


def config(**changes: Any) -> EngineConfig:
    plain = EngineConfig(
        engine="endpoint", version="unknown", model=Model(name="m"), device="remote", flags={"urls": URLS}
    )
    return replace(plain, **changes)


def test_an_arm_finds_its_servers_by_its_own_label_before_its_drafters() -> None:
    drafts = config(drafter=Drafter(method="ngram", k=3))
    assert [server.url for server in ENGINE.remote_servers(config())] == ["http://h:1"]
    assert [server.url for server in ENGINE.remote_servers(drafts)] == ["https://x/y", "http://h:2"]
    assert [server.url for server in ENGINE.remote_servers(config(layout=Layout(tp=2)))] == ["http://h:3"]
    with pytest.raises(EngineConfigError, match=r"no server of tp1/ngram-k5 .*urls=\{ngram-k5: URL"):
        ENGINE.remote_servers(config(drafter=Drafter(method="ngram", k=5)))


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"block_size": 16}, "engine.flags.block_size is no setting of an endpoint"),
        ({"urls": ["http://h:1"]}, "is no map"),
        ({"urls": {"none": "h:1"}}, "write http://HOST:PORT"),
        ({"urls": {"none": "ftp://h"}}, "write http://HOST:PORT"),
        ({"urls": {"none": "http://me@h:1"}}, "more than an address"),
        ({"urls": {"none": "http://h:1/?key=1"}}, "more than an address"),
        ({"urls": {"none": []}}, "lists no server"),
        ({"urls": {"none": "http://h:1", "ngram-k3": "http://h:1/"}}, "twice, for none and for ngram-k3"),
        ({"urls": {"none": ["http://h:1", "http://h:1"]}}, "twice"),
        ({"urls": URLS, "headers": {"X Key": "MY_TOKEN"}}, "no name of an HTTP header"),
        ({"urls": URLS, "headers": {"X-Key": "my-secret-value"}}, "never a value"),
        ({"urls": URLS, "headers": {"X-Key": "MY_VARIABLE"}}, "blanked"),
    ],
)
def test_a_setting_that_means_nothing_is_named(flags: dict[str, Any], words: str) -> None:
    with pytest.raises(EngineConfigError, match=words) as caught:
        settings_of(flags)
    assert "my-secret-value" not in str(caught.value)


EXAMPLES: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "endpoint_device": ({"device": "emulated"}, {"device": "gpu"}),
    "endpoint_settings": ({}, {"flags": {"urls": {"ngram-k3": "http://h:1"}}}),
    "endpoint_headers": (
        {"flags": {"urls": URLS, "headers": {"X-Key": "ENDPOINT_TOKEN"}}},
        {"flags": {"urls": URLS, "headers": {"X-Key": "ENDPOINT_ABSENT_TOKEN"}}},
    ),
    "endpoint_not_ours": ({}, {"cache": CacheStrategy(block_size=16)}),
    "endpoint_stateful": (
        {"drafter": Drafter(method="ngram", k=3)},
        {"drafter": Drafter(method="ngram", k=3, stateful=True)},
    ),
    "endpoint_routing": ({}, {"layout": Layout(routing="pinned")}),
}
"""Rule -> what it lets pass, and what it refuses."""


@pytest.mark.parametrize("rule", [rule.name for rule in ENDPOINT_RULES])
def test_each_rule_lets_pass_and_refuses(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENDPOINT_TOKEN", "abcdefgh")
    accepted, refused = EXAMPLES[rule]
    assert list(ENGINE.refusals(config(**accepted))) == []
    assert [refusal.rule for refusal in ENGINE.refusals(config(**refused))] == [rule]


Serve = Callable[[Mapping[str, str]], Server]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serve pages by path; everything else is not found."""
    with ExitStack() as stack:

        def start(pages: Mapping[str, str], **changes: Any) -> Server:
            class Handler(BaseHTTPRequestHandler):
                def do_GET(self) -> None:
                    text = pages.get(self.path.partition("?")[0])
                    status = 404 if text is None else 503 if text == "unwell" else 200
                    if text is None and f"{self.path}/" in pages:
                        status = 307
                    self.send_response(status)
                    if status == 307:
                        self.send_header("Location", f"{self.path}/")
                    self.end_headers()
                    self.wfile.write((text or "").encode())

                def log_message(self, *_: Any) -> None:
                    """Say nothing."""

            server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            stack.callback(server.server_close)
            stack.callback(server.shutdown)
            arm = config(drafter=Drafter(method="eagle3", k=3), **changes)
            return Server(url=f"http://127.0.0.1:{server.server_port}", config=arm)

        yield start


def test_a_page_is_read_by_the_names_on_it(serve: Serve) -> None:
    sglang = serve({"/metrics": (PAGES / "sglang_dp2_pp2.txt").read_text()})
    trtllm = serve({"/metrics": "[]", "/prometheus/metrics/": (PAGES / "trtllm.txt").read_text()})
    for server, tokens in ((sglang, 131_056), (trtllm, 65_536)):
        counters = ENGINE.counters(server)
        assert (counters.generation_tokens, counters.drafts, counters.accepted_tokens) == (2_100, 800, 1_200)
        assert ENGINE.capacity(server).tokens == tokens
        assert len(ENGINE.exposed(server)) > 10


@pytest.mark.parametrize(
    "page", [None, "", "up 1\n", 'up{x="\\nvllm:prompt_tokens_total 3"} 1\n', "vllm:num_requests_running 3\n"]
)
def test_a_page_that_tells_nothing_known_leaves_all_unknown(serve: Serve, page: str | None) -> None:
    server = serve({} if page is None else {"/metrics": page})
    assert not ENGINE.counters(server).knows("generation_tokens")
    assert ENGINE.capacity(server).tokens is None


def test_a_server_that_is_unwell_is_an_error(serve: Serve) -> None:
    with pytest.raises(EngineError, match="HTTP status 503"):
        ENGINE.counters(serve({"/metrics": "unwell"}))


SGLANG = {"tp_size": 1, "speculative_algorithm": "EAGLE3", "speculative_num_draft_tokens": 4, "port": 3}
VLLM = {
    "vllm_config": {
        "parallel_config": {"tensor_parallel_size": 1},
        "speculative_config": {"num_speculative_tokens": 3},
        "instance_id": "abc",
    },
    "system_env": {"HOST": "h"},
}


@pytest.mark.parametrize(
    ("info", "keys"),
    [
        (SGLANG, {"tp_size", "speculative_algorithm", "speculative_num_draft_tokens"}),
        (
            VLLM,
            {"parallel_config.tensor_parallel_size", "speculative_config.num_speculative_tokens"},
        ),
        ({"who": "knows"}, set()),
        ([1], set()),
        (None, set()),
    ],
)
def test_a_configuration_is_read_by_whose_it_is(serve: Serve, info: Any, keys: set[str]) -> None:
    server = serve({} if info is None else {"/server_info": json.dumps(info)})
    resolved = ENGINE.resolved(server)
    assert set(resolved) == keys
    assert list(ENGINE.contradictions(server.config, resolved)) == []
    other = replace(server.config, drafter=Drafter(method="eagle3", k=5), layout=Layout(tp=2))
    assert len(ENGINE.contradictions(other, resolved)) == (2 if keys else 0)
