"""Reading a server that speaks vLLM's HTTP dialect: vLLM itself, and the emulator.

Metrics come from the Prometheus page. Every counter is summed over the `engine` label (one value a
data-parallel rank); `_created` series and other metrics' labels never count. `vllm_series.py` has the names.
"""

import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from engines import vllm_series as names
from engines.base import KVCapacity
from engines.counters import Counters
from engines.errors import EngineError
from engines.metrics_page import Page

TIMEOUT = httpx.Timeout(10.0, connect=2.0)
"""Seconds. A control request goes to this machine: whoever needs longer is stuck."""
PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""No certificates: engines here speak plain HTTP, and loading the usual ones costs 30 ms of CPU a client."""
INFO_TIMEOUT = httpx.Timeout(60.0, connect=2.0)
"""Seconds. The resolved configuration comes with a description of the machine, which takes vLLM several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """What a server is doing right now, over all its ranks."""

    running: int
    """Requests in the batch."""
    waiting: int
    """Requests queued."""
    kv_usage: float
    """Share of the KV cache in use, 0 to 1: mean over ranks."""


def control_client() -> httpx.Client:
    """Return an HTTP client for control requests: short patience, no proxies from the environment."""
    return httpx.Client(timeout=TIMEOUT, trust_env=False, verify=PLAIN)


def read_counters(url: str) -> Counters:
    """Return a snapshot of all counters of the server at `url`.

    Raises:
        EngineError: no answer, or a page without the metrics a measurement cannot do without.
    """
    taken = time.monotonic()
    return parse_counters(_get(url, "/metrics").text, time=taken)


def read_gauges(url: str) -> Gauges:
    """Return the gauges of the server at `url`; the same errors as `read_counters`."""
    return _gauges(Page(_get(url, "/metrics").text))


def read_capacity(url: str) -> KVCapacity:
    """Return the KV-cache capacity over all ranks of the server at `url`."""
    return parse_capacity(_get(url, "/metrics").text)


def read_names(url: str) -> frozenset[str]:
    """Return the names of all series on the metrics page of the server at `url`."""
    return Page(_get(url, "/metrics").text).names


def read_server_info(url: str) -> dict[str, Any]:
    """Return the server's resolved configuration with flat keys: `{"a": {"b": 1}}` becomes `{"a.b": 1}`.

    Raises:
        EngineError: no answer, or no JSON object (vLLM answers only in its development mode).
    """
    try:
        info = _get(url, "/server_info", INFO_TIMEOUT, config_format="json").json()
    except ValueError as error:
        message = f"{url}/server_info did not answer with JSON: {error}"
        raise EngineError(message) from error
    if not isinstance(info, Mapping):
        message = f"{url}/server_info answered with {type(info).__name__}; expected a JSON object"
        raise EngineError(message)
    return dict(_flat(info))


def post_reset(
    url: str, attempts: int = 20, pause: float = 0.25, sleep: Callable[[float], None] = time.sleep
) -> bool:
    """Empty the prefix cache; True once the server confirmed it.

    A server refuses while finished requests still hold blocks, so up to `attempts` tries are made with
    `pause` seconds between them.

    Raises:
        EngineError: the server is gone or has no such route (vLLM has it only in its development mode).
    """
    with control_client() as client:
        for attempt in range(attempts):
            if attempt:
                sleep(pause)
            try:
                # An external cache would serve what the engine's own has forgotten.
                answer = client.post(f"{url}/reset_prefix_cache", params={"reset_external": "true"})
            except httpx.HTTPError as error:
                message = f"{url}/reset_prefix_cache did not answer: {_words(error)}"
                raise EngineError(message) from error
            if answer.status_code in (404, 405):
                message = f"{url} has no /reset_prefix_cache; start the engine in its development mode"
                raise EngineError(message)
            if answer.is_success and _confirms(answer):
                return True
    return False


def parse_counters(text: str, *, time: float) -> Counters:
    """Return the counters of a metrics page read at `time` (`time.monotonic()`)."""
    page = Page(text)
    prompt = page.required(names.PROMPT_TOKENS)
    if page.has(names.PROMPT_BY_SOURCE):
        computed = page.total(names.PROMPT_BY_SOURCE, source="local_compute")
    else:
        computed = prompt - page.required(names.PROMPT_CACHED)
    gauges = _gauges(page)
    return Counters(
        time=time,
        prompt_tokens=int(prompt),
        # Not vllm:prompt_tokens_cached: that one moves at admission, the other two at the first token.
        cached_prompt_tokens=int(prompt - computed),
        computed_prompt_tokens=int(computed),
        generation_tokens=int(page.required(names.GENERATION_TOKENS)),
        drafts=int(page.total(names.DRAFTS)),
        draft_tokens=int(page.total(names.DRAFT_TOKENS)),
        accepted_tokens=int(page.total(names.ACCEPTED_TOKENS)),
        accepted_per_position=_positions(page),
        preemptions=int(page.total(names.PREEMPTIONS)),
        prefix_queries=int(page.total(names.PREFIX_QUERIES)),
        prefix_hits=int(page.total(names.PREFIX_HITS)),
        step_intervals=int(page.required(names.STEP_COUNT)),
        step_seconds=page.required(names.STEP_SECONDS),
        first_tokens=int(page.required(names.FIRST_TOKENS)),
        slipped_seconds=page.total(names.SLIPPED),
        running=gauges.running,
        waiting=gauges.waiting,
        kv_usage=gauges.kv_usage,
    )


def parse_capacity(text: str) -> KVCapacity:
    """Return the KV capacity of a metrics page.

    `kv_cache_size_tokens` is one rank's (vLLM's own figure over all kinds of KV that the model keeps), so it
    is summed over the ranks' series. `num_gpu_blocks` is the sum over ranks already and repeated on each of
    their series, so it is read once.
    """
    series = [labels for labels, _ in Page(text).values(names.CACHE_CONFIG)]
    block_size = next((size for labels in series if (size := _whole(labels.get("block_size")))), None)
    blocks = max((_whole(labels.get("num_gpu_blocks")) or 0 for labels in series), default=0) or None
    stated = [_whole(labels.get("kv_cache_size_tokens")) for labels in series]
    known = [count for count in stated if count is not None]
    tokens = sum(known) if series and len(known) == len(stated) else None
    if tokens is None and blocks and block_size:  # an engine that does not state tokens
        tokens = blocks * block_size
    return KVCapacity(tokens=tokens, block_size=block_size, blocks=blocks, ranks=max(1, len(series)))


def _gauges(page: Page) -> Gauges:
    usage = [value for _, value in page.values(names.KV_USAGE)]
    return Gauges(
        running=int(page.required(names.RUNNING)),
        waiting=int(page.required(names.WAITING)),
        kv_usage=sum(usage) / len(usage) if usage else 0.0,
    )


def _positions(page: Page) -> tuple[int, ...]:
    """Return accepted tokens by draft position; a position no rank has reported yet is 0."""
    sums: dict[int, float] = {}
    for labels, value in page.values(names.ACCEPTED_PER_POSITION):
        position = _whole(labels.get("position"))
        if position is not None:
            sums[position] = sums.get(position, 0.0) + value
    return tuple(int(sums.get(position, 0.0)) for position in range(max(sums, default=-1) + 1))


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def _get(url: str, path: str, timeout: httpx.Timeout = TIMEOUT, **params: str) -> httpx.Response:
    try:
        with control_client() as client:
            return client.get(url + path, params=params, timeout=timeout).raise_for_status()
    except httpx.HTTPError as error:
        message = f"{url}{path} did not answer: {_words(error)}"
        raise EngineError(message) from error


def _words(error: httpx.HTTPError) -> str:
    if isinstance(error, httpx.HTTPStatusError):
        return f"HTTP status {error.response.status_code}"
    return str(error) or type(error).__name__


def _confirms(answer: httpx.Response) -> bool:
    """Whether a 2xx answer says `{"success": true}`; anything else proves nothing."""
    try:
        body = answer.json()
    except ValueError:
        return False
    return isinstance(body, Mapping) and body.get("success") is True


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        path = f"{prefix}{key}"
        if isinstance(inner, Mapping) and inner:
            yield from _flat(inner, f"{path}.")
        else:
            yield path, inner
