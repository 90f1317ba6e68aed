"""Metrics pages as servers write them, and a real HTTP server that answers with them."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

from engines.errors import EngineError
from engines.metrics_page import Page
from engines.series import Series
from engines.vllm_http import (
    parse_capacity,
    parse_counters,
    post_reset,
    read_capacity,
    read_counters,
    read_gauges,
    read_names,
    read_server_info,
)
from engines.vllm_series import EMULATOR_SERIES, PROMPT_BY_SOURCE


def page(*extra: str, drop: str = "") -> str:
    """Return the page of a server with two data-parallel ranks and a drafter of K=3."""
    text = """\
# HELP vllm:num_requests_running Requests in the batch.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 2.0
# HELP vllm:num_requests_waiting Requests queued.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 1.0
vllm:num_requests_waiting{engine="1",model_name="m"} 0.0
# HELP vllm:kv_cache_usage_perc KV cache in use; 1 is all of it.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.25
# HELP vllm:prompt_tokens_total Prompt tokens.
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="m"} 1000.0
vllm:prompt_tokens_total{engine="1",model_name="m"} 500.0
# HELP vllm:prompt_tokens_created Prompt tokens.
# TYPE vllm:prompt_tokens_created gauge
vllm:prompt_tokens_created{engine="0",model_name="m"} 1.7957e+09
vllm:prompt_tokens_created{engine="1",model_name="m"} 1.7957e+09
# HELP vllm:prompt_tokens_by_source_total Prompt tokens by where they came from.
# TYPE vllm:prompt_tokens_by_source_total counter
vllm:prompt_tokens_by_source_total{engine="0",model_name="m",source="local_compute"} 700.0
vllm:prompt_tokens_by_source_total{engine="0",model_name="m",source="local_cache_hit"} 300.0
vllm:prompt_tokens_by_source_total{engine="1",model_name="m",source="local_compute"} 400.0
vllm:prompt_tokens_by_source_total{engine="1",model_name="m",source="local_cache_hit"} 90.0
vllm:prompt_tokens_by_source_total{engine="1",model_name="m",source="external_kv_transfer"} 10.0
# HELP vllm:prompt_tokens_cached_total Cached prompt tokens, counted at admission.
# TYPE vllm:prompt_tokens_cached_total counter
vllm:prompt_tokens_cached_total{engine="0",model_name="m"} 333.0
vllm:prompt_tokens_cached_total{engine="1",model_name="m"} 100.0
# HELP vllm:generation_tokens_total Output tokens.
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="m"} 4.0e+02
vllm:generation_tokens_total{engine="1",model_name="m"} 1.23456789e+08
# HELP vllm:num_preemptions_total Preemptions.
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{engine="0",model_name="m"} 2.0
vllm:num_preemptions_total{engine="1",model_name="m"} 5.0
# HELP vllm:prefix_cache_queries_total Tokens looked up.
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 990.0
vllm:prefix_cache_queries_total{engine="1",model_name="m"} 510.0
# HELP vllm:prefix_cache_hits_total Tokens found.
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 300.0
vllm:prefix_cache_hits_total{engine="1",model_name="m"} 100.0
# HELP vllm:inter_token_latency_seconds Time between outputs of a request.
# TYPE vllm:inter_token_latency_seconds histogram
vllm:inter_token_latency_seconds_sum{engine="0",model_name="m"} 1.5
vllm:inter_token_latency_seconds_bucket{engine="0",le="0.01",model_name="m"} 40.0
vllm:inter_token_latency_seconds_bucket{engine="0",le="+Inf",model_name="m"} 60.0
vllm:inter_token_latency_seconds_count{engine="0",model_name="m"} 60.0
vllm:inter_token_latency_seconds_sum{engine="1",model_name="m"} 0.25
vllm:inter_token_latency_seconds_bucket{engine="1",le="+Inf",model_name="m"} 10.0
vllm:inter_token_latency_seconds_count{engine="1",model_name="m"} 10.0
# HELP vllm:time_to_first_token_seconds Time to the first token.
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 9.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 8.0
vllm:time_to_first_token_seconds_sum{engine="1",model_name="m"} 4.0
vllm:time_to_first_token_seconds_count{engine="1",model_name="m"} 4.0
# HELP vllm:spec_decode_num_drafts_total Steps with drafts.
# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 43.0
vllm:spec_decode_num_drafts_total{engine="1",model_name="m"} 20.0
# HELP vllm:spec_decode_num_draft_tokens_total Draft tokens.
# TYPE vllm:spec_decode_num_draft_tokens_total counter
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} 129.0
vllm:spec_decode_num_draft_tokens_total{engine="1",model_name="m"} 60.0
# HELP vllm:spec_decode_num_accepted_tokens_total Accepted draft tokens.
# TYPE vllm:spec_decode_num_accepted_tokens_total counter
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 10.0
vllm:spec_decode_num_accepted_tokens_total{engine="1",model_name="m"} 5.0
# HELP vllm:spec_decode_num_accepted_tokens_per_pos_total Accepted draft tokens by position.
# TYPE vllm:spec_decode_num_accepted_tokens_per_pos_total counter
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"} 4.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="1"} 3.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="2"} 3.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="1",model_name="m",position="0"} 5.0
# HELP vllm:spec_decode_num_accepted_tokens_per_pos_created Accepted draft tokens by position.
# TYPE vllm:spec_decode_num_accepted_tokens_per_pos_created gauge
vllm:spec_decode_num_accepted_tokens_per_pos_created{engine="0",model_name="m",position="7"} 1.7957e+09
# HELP vllm:cache_config_info The cache configuration.
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",engine="0",kv_cache_size_tokens="40000",num_gpu_blocks="5000"} 1.0
vllm:cache_config_info{block_size="16",engine="1",kv_cache_size_tokens="39984",num_gpu_blocks="5000"} 1.0
"""
    lines = [line for line in text.splitlines() if not drop or drop not in line]
    return "\n".join((*lines, *extra)) + "\n"


def test_counters_are_summed_over_the_ranks() -> None:
    counters = parse_counters(page(), time=5.0)
    assert counters.time == 5.0
    assert counters.prompt_tokens == 1500
    assert counters.computed_prompt_tokens == 1100
    assert counters.generation_tokens == 123_457_189
    assert counters.preemptions == 7
    assert (counters.prefix_queries, counters.prefix_hits) == (1500, 400)
    assert (counters.step_intervals, counters.step_seconds) == (70, 1.75)
    assert counters.first_tokens == 12
    assert (counters.drafts, counters.draft_tokens, counters.accepted_tokens) == (63, 189, 15)


def test_prompt_tokens_split_without_remainder() -> None:
    """The cached part is what was not computed: the engine's own cached counter moves before the others."""
    counters = parse_counters(page(), time=0.0)
    assert counters.cached_prompt_tokens == 400
    assert counters.cached_prompt_tokens + counters.computed_prompt_tokens == counters.prompt_tokens


def test_an_engine_without_sources_is_read_by_its_cached_counter() -> None:
    counters = parse_counters(page(drop="by_source"), time=0.0)
    assert (counters.cached_prompt_tokens, counters.computed_prompt_tokens) == (433, 1067)


def test_positions_with_gaps_stay_in_place_and_add_up_to_the_accepted_tokens() -> None:
    """A histogram [39, 1, 0, 3] of steps is 4, 3, 3 by position; rank 1 has only position 0."""
    counters = parse_counters(page(), time=0.0)
    assert counters.accepted_per_position == (9, 3, 3)
    assert sum(counters.accepted_per_position) == counters.accepted_tokens
    gap = parse_counters(page(drop='position="1"'), time=0.0)
    assert gap.accepted_per_position == (9, 0, 3)


def test_one_request_has_its_published_acceptance() -> None:
    counters = parse_counters(page(drop='engine="1"'), time=0.0)
    assert 1 + counters.accepted_tokens / counters.drafts == pytest.approx(1.2325581395348837)
    assert counters.accepted_tokens / counters.draft_tokens == pytest.approx(0.07751937984496124)
    assert [accepted / 43 for accepted in counters.accepted_per_position] == [4 / 43, 3 / 43, 3 / 43]


def test_created_series_and_other_metrics_labels_count_nothing() -> None:
    decoys = [
        "# TYPE other:info gauge",
        'other:info{engine="0",text="vllm:generation_tokens_total{engine=\\"0\\"} 999"} 1.0',
        'vllm:generation_tokens_total_created{engine="0"} 1.7e+09',
        'not_vllm:generation_tokens_total{engine="0"} 5.0',
        'other:note{text="a # HELP } vllm:num_preemptions_total 7"} 4.0',
    ]
    assert parse_counters(page(*decoys), time=0.0) == parse_counters(page(), time=0.0)


def test_a_model_name_with_braces_quotes_and_newlines_is_only_a_label() -> None:
    odd = page().replace('model_name="m"', 'model_name="a \\"b\\" {c} \\\\ d\\n vllm:x 1"')
    assert parse_counters(odd, time=0.0) == parse_counters(page(), time=0.0)


def test_a_baseline_has_no_drafts() -> None:
    counters = parse_counters(page(drop="spec_decode"), time=0.0)
    assert (counters.drafts, counters.draft_tokens, counters.accepted_tokens) == (0, 0, 0)
    assert counters.accepted_per_position == ()


def test_gauges_are_summed_and_usage_is_the_mean() -> None:
    counters = parse_counters(page(), time=0.0)
    assert (counters.running, counters.waiting, counters.kv_usage) == (5, 1, 0.375)


def test_a_restarted_server_is_noticed() -> None:
    earlier = parse_counters(page(), time=0.0)
    later = parse_counters(page().replace("1.23456789e+08", "12.0"), time=1.0)
    with pytest.raises(EngineError, match="generation_tokens fell from"):
        later.since(earlier)


@pytest.mark.parametrize(
    "name", ["vllm:generation_tokens_total", "vllm:num_requests_waiting", "inter_token_latency_seconds_count"]
)
def test_a_page_without_what_a_measurement_needs_is_refused_by_name(name: str) -> None:
    with pytest.raises(EngineError, match=f"has no .*{name}.*not supported"):
        parse_counters(page(drop=name), time=0.0)


@pytest.mark.parametrize("text", ["<html>hello</html>", 'vllm:x{engine="0" 5'])
def test_what_is_no_metrics_page_is_refused(text: str) -> None:
    with pytest.raises(EngineError):
        parse_counters(text, time=0.0)


def test_capacity_is_summed_over_ranks_but_blocks_are_not() -> None:
    capacity = parse_capacity(page())
    assert (capacity.tokens, capacity.block_size) == (79_984, 16)
    capacity = parse_capacity(page().replace("kv_cache_size_tokens", "other"))
    assert (capacity.tokens, capacity.block_size) == (80_000, 16)


def test_capacity_that_is_not_told_is_absent() -> None:
    assert parse_capacity(page(drop="cache_config_info")).tokens is None
    untold = (
        page()
        .replace("kv_cache_size_tokens", "other")
        .replace('num_gpu_blocks="5000"', 'num_gpu_blocks="None"')
    )
    assert parse_capacity(untold).tokens is None


Answer = tuple[int, str]


@pytest.fixture
def serve() -> Iterator[Callable[..., tuple[str, list[str]]]]:
    """Start a server that answers each path in turn; returns its URL and what it was asked."""
    servers: list[ThreadingHTTPServer] = []

    def started(**answers: list[Answer]) -> tuple[str, list[str]]:
        asked: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                asked.append(f"{self.command} {self.path}")
                queue = answers.get(urlsplit(self.path).path.strip("/"), [(404, "")])
                status, body = queue.pop(0) if len(queue) > 1 else queue[0]
                self.send_response(status)
                self.send_header("Content-Length", str(len(body.encode())))
                self.end_headers()
                self.wfile.write(body.encode())

            do_GET = do_POST = answer  # noqa: N815  the base class's names

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}", asked

    yield started
    for server in servers:
        server.shutdown()
        server.server_close()


def test_everything_is_read_over_http(serve: Callable[..., tuple[str, list[str]]]) -> None:
    info = {"vllm_config": {"model_config": {"seed": 0, "names": ["a"]}, "empty": {}}, "version": None}
    url, asked = serve(metrics=[(200, page())], server_info=[(200, json.dumps(info))])
    assert read_counters(url).prompt_tokens == 1500
    assert read_capacity(url).tokens == 79_984
    assert read_gauges(url).running == 5
    assert {"vllm:prompt_tokens_total", "vllm:cache_config_info"} < read_names(url)
    assert read_server_info(url) == {
        "vllm_config.model_config.seed": 0,
        "vllm_config.model_config.names": ["a"],
        "vllm_config.empty": {},
        "version": None,
    }
    assert asked[-1] == "GET /server_info?config_format=json"


def test_proxies_of_the_environment_are_not_used(
    serve: Callable[..., tuple[str, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    url, _ = serve(metrics=[(200, page())])
    assert read_gauges(url).running == 5


@pytest.mark.parametrize(
    ("answers", "confirmed", "tries"),
    [
        (['{"success": true}'], True, 1),
        (['{"success": false}', '{"success": false}', '{"success": true}'], True, 3),
        (['{"success": false}'], False, 4),
        ([""], False, 4),
        (["null"], False, 4),
        (['{"success": "true"}'], False, 4),
    ],
)
def test_a_reset_is_repeated_until_it_is_confirmed(
    serve: Callable[..., tuple[str, list[str]]], answers: list[str], confirmed: bool, tries: int
) -> None:
    url, asked = serve(reset_prefix_cache=[(200, body) for body in answers])
    pauses: list[float] = []
    assert post_reset(url, attempts=4, pause=0.5, sleep=pauses.append) is confirmed
    assert asked == ["POST /reset_prefix_cache?reset_external=true"] * tries
    assert pauses == [0.5] * (tries - 1)


def test_a_server_without_the_reset_route_says_what_to_do(
    serve: Callable[..., tuple[str, list[str]]],
) -> None:
    url, _ = serve()
    with pytest.raises(EngineError, match="development mode"):
        post_reset(url)


def test_errors_name_the_address_and_the_status(serve: Callable[..., tuple[str, list[str]]]) -> None:
    url, _ = serve(metrics=[(503, "")], server_info=[(200, "[1]")])
    with pytest.raises(EngineError, match=f"{url}/metrics did not answer: HTTP status 503"):
        read_counters(url)
    with pytest.raises(EngineError, match="expected a JSON object"):
        read_server_info(url)


def test_nobody_there_is_an_engine_error() -> None:
    for read in (read_counters, read_gauges, read_capacity, read_server_info, post_reset):
        with pytest.raises(EngineError, match=r"127\.0\.0\.1:9/.* did not answer"):
            read("http://127.0.0.1:9")


def test_the_table_of_series_is_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: set[Series] = set()

    def has(self: Page, series: Series) -> bool:
        read.add(series)
        return series.name in self.names

    def values(self: Page, series: Series) -> list[tuple[dict[str, str], float]]:
        read.add(series)
        return []

    monkeypatch.setattr(Page, "has", has)
    monkeypatch.setattr(Page, "values", values)
    parse_counters(page(), time=0.0)
    parse_capacity(page())
    without = "\n".join(line for line in page().splitlines() if PROMPT_BY_SOURCE.name not in line)
    parse_counters(without, time=0.0)
    assert read == set(EMULATOR_SERIES)
