"""The real server process over HTTP."""

import json
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from engines.emulator import EMULATOR_VERSION
from engines.emulator.adapter import EmulatorEngine
from engines.spec import Layout

ENGINE = EmulatorEngine()


@pytest.fixture(scope="module")
def running(start, emulated):
    """Two ranks, a drafter that is right 74 % of the time, ten times real speed."""
    return start(emulated("eagle3", 3, alpha=0.74, layout=Layout(dp=2), time_scale=0.1))


def completion(**body: Any) -> dict[str, Any]:
    return {
        "model": "llama-3.1-8b", "prompt": list(range(100)), "max_tokens": 20, "temperature": 0,
        "ignore_eos": True, "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True}, **body,
    }  # fmt: skip


def stream(
    running, path: str = "/v1/completions", headers: dict[str, str] | None = None, **body: Any
) -> list[Any]:
    """Return the JSON events of a stream that ended as it should."""
    with httpx.stream(
        "POST", running.url + path, json=body, headers=headers, timeout=30, trust_env=False
    ) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        events = [line.removeprefix("data: ") for line in response.iter_lines() if line]
    assert events.pop() == "[DONE]"
    return [json.loads(event) for event in events]


def test_it_says_who_it_is(running):
    assert running.get("/health").status_code == 200
    assert running.get("/version").json() == {"version": EMULATOR_VERSION}
    [card] = running.get("/v1/models").json()["data"]
    assert (card["id"], card["max_model_len"]) == ("llama-3.1-8b", 4096)
    helps = [line for line in running.get("/metrics").text.splitlines() if line.startswith("# HELP")]
    assert len(helps) > 15
    assert all(" emulated: " in line for line in helps)
    assert ENGINE.resolved(running.server)["emulated"] is True
    assert "step times are modelled" in running.log.read_text()


def test_a_stream_counts_its_tokens(running):
    *chunks, trailing = stream(running, **completion(seed=1))
    counts = [chunk["usage"]["completion_tokens"] for chunk in chunks]
    assert counts[0] == 1
    assert counts[-1] == 20
    assert counts == sorted(set(counts))
    # Speculation: fewer chunks than tokens, at most K + 1 in one.
    steps = [after - before for before, after in pairwise(counts)]
    assert 1 < max(steps) <= 4
    assert chunks[-1]["choices"][0]["finish_reason"] == "length"
    assert all(chunk["choices"][0]["finish_reason"] is None for chunk in chunks[:-1])
    assert trailing["choices"] == []
    assert trailing["usage"]["prompt_tokens"] == 100
    assert trailing["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}


def test_the_same_seed_gives_the_same_steps(running):
    def shape(seed: int) -> list[int]:
        chunks = stream(running, **completion(seed=seed, max_tokens=60, cache_salt="shape"))
        return [chunk["usage"]["completion_tokens"] for chunk in chunks]

    assert shape(5) == shape(5)
    assert shape(5) != shape(6)


def test_client_tokens_are_engine_tokens(running):
    before = ENGINE.counters(running.server)
    with ThreadPoolExecutor(8) as pool:
        bodies = [completion(prompt=[seed] * 50, seed=seed, max_tokens=10 + seed) for seed in range(16)]
        answers = list(pool.map(lambda body: stream(running, **body), bodies))
    delta = ENGINE.counters(running.server).since(before)
    usages = [events[-1]["usage"] for events in answers]
    assert delta.generation_tokens == sum(one["completion_tokens"] for one in usages) == sum(range(10, 26))
    assert delta.prompt_tokens == sum(one["prompt_tokens"] for one in usages) == 800
    assert delta.cached_prompt_tokens + delta.computed_prompt_tokens == 800
    assert delta.first_tokens == 16
    # One interval a request and chunk after its first; the trailing chunk has no token.
    assert delta.step_intervals == sum(len(events) - 2 for events in answers)
    assert delta.accepted_tokens == sum(delta.accepted_per_position)
    assert delta.draft_tokens == 3 * delta.drafts
    assert (delta.running, delta.waiting, delta.kv_usage) == (0, 0, 0)


def test_prefixes_are_shared_within_a_salt_on_one_rank(running):
    def cached(rank: int, **body: Any) -> int:
        headers = {"X-data-parallel-rank": str(rank)}
        *_, trailing = stream(running, headers=headers, **completion(prompt=[777] * 200, **body))
        return int(trailing["usage"]["prompt_tokens_details"]["cached_tokens"])

    assert cached(0, cache_salt="a") == 0
    assert cached(0, cache_salt="a") == 192
    assert cached(0, cache_salt="b") == 0
    assert cached(0) == 0
    assert cached(1, cache_salt="a") == 0
    assert ENGINE.reset_cache(running.server)
    assert cached(0, cache_salt="a") == 0


def test_reset_is_refused_while_a_request_holds_blocks(running):
    thread = threading.Thread(target=lambda: stream(running, **completion(max_tokens=3000)))
    thread.start()
    deadline = time.monotonic() + 20
    while not ENGINE.counters(running.server).running and time.monotonic() < deadline:
        time.sleep(0.01)
    assert running.post("/reset_prefix_cache").json() == {"success": False}
    thread.join()
    assert running.post("/reset_prefix_cache").json() == {"success": True}


def test_chat_counts_like_the_tokenizer(running):
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Why is the sky blue?"},
    ]
    tokens = running.post("/tokenize", messages=messages).json()
    role, *chunks = stream(running, "/v1/chat/completions", messages=messages, max_tokens=6, stream=True)
    assert role["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert "".join(chunk["choices"][0]["delta"]["content"] for chunk in chunks).split()
    whole = running.post("/v1/chat/completions", messages=messages, max_tokens=6).json()
    assert whole["usage"]["prompt_tokens"] == tokens["count"] == len(tokens["tokens"])
    assert whole["choices"][0]["message"]["role"] == "assistant"
    assert len(whole["choices"][0]["message"]["content"].split()) == 6
    assert running.post("/tokenize", prompt="Why?").json()["max_model_len"] == 4096


def test_text_prompts_and_answers_in_one_piece(running):
    body = running.post("/v1/completions", prompt="Why is the sky blue?", max_tokens=7).json()
    assert body["usage"]["completion_tokens"] == 7
    assert len(body["choices"][0]["text"].split()) == 7
    assert body["system_fingerprint"] == EMULATOR_VERSION


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"prompt": [1] * 5000}, 400, "maximum context length is 4096"),
        ({"prompt": [1], "model": "another"}, 404, "another"),
        ({}, 400, "prompt"),
    ],
)
def test_errors_come_in_openai_form(running, body: dict[str, Any], status: int, words: str):
    response = running.post("/v1/completions", **body)
    assert response.status_code == status
    error = response.json()["error"]
    assert words in error["message"]
    assert error["code"] == status


def test_an_unknown_rank_and_an_unknown_route(running):
    pinned = httpx.post(
        running.url + "/v1/completions",
        json={"prompt": [1]},
        headers={"X-data-parallel-rank": "2"},
        trust_env=False,
    )
    assert pinned.status_code == 400
    assert "ranks 0 to 1" in pinned.json()["error"]["message"]
    assert running.get("/nowhere").status_code == 404


def test_a_client_that_leaves_ends_its_request(running):
    with socket.create_connection(("127.0.0.1", int(running.url.rsplit(":", 1)[1]))) as leaver:
        body = json.dumps(completion(max_tokens=3900)).encode()
        head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        leaver.sendall(head.encode() + body)
        assert leaver.recv(1000)
    deadline = time.monotonic() + 20
    while ENGINE.counters(running.server).running and time.monotonic() < deadline:
        time.sleep(0.02)
    assert ENGINE.counters(running.server).running == 0
    assert 'finished_reason="abort",model_name="llama-3.1-8b"} 1.0' in running.get("/metrics").text


def test_capacity_is_summed_over_ranks(running):
    capacity = ENGINE.capacity(running.server)
    resolved = ENGINE.resolved(running.server)
    assert capacity.block_size == 16
    assert capacity.tokens == 2 * resolved["cache_config.kv_cache_size_tokens"]
    assert capacity.tokens == 16 * resolved["cache_config.num_gpu_blocks"]


def test_two_starts_of_a_pair_resolve_alike_but_for_the_drafter(running, start, emulated):
    layout = Layout(dp=2)
    same = start(emulated("eagle3", 3, alpha=0.74, layout=layout, time_scale=0.1))
    base = start(emulated(layout=layout, time_scale=0.1))
    here = ENGINE.resolved(running.server)
    assert here == ENGINE.resolved(same.server)
    there = ENGINE.resolved(base.server)
    differing = {key for key in {*here, *there} if here.get(key) != there.get(key)}
    allowed = tuple(ENGINE.drafter_keys(running.server.config))
    assert differing
    assert all(key.startswith(allowed) for key in differing)
    assert ENGINE.counters(base.server).accepted_per_position == ()


def test_time_is_what_the_model_says(start, emulated):
    # 100 steps of one request, 10.6 modelled milliseconds each. Real time may only be longer.
    engine = start(emulated(gpu="a100"))
    began = time.monotonic()
    stream(engine, **completion(max_tokens=101, prompt=[1] * 16))
    elapsed = time.monotonic() - began
    counters = ENGINE.counters(engine.server)
    page = engine.get("/metrics").text
    [line] = [line for line in page.splitlines() if line.startswith("emulator:step_seconds_total{")]
    modelled = float(line.split()[-1])
    assert modelled / 101 == pytest.approx(0.0106, rel=0.05)
    assert counters.step_intervals == 100
    assert elapsed > counters.step_seconds > 0.95 * modelled


@pytest.mark.parametrize(
    ("flags", "cause", "code"),
    [
        ({"fail": {"at": "start"}}, "died", 1),
        ({"fail": {"at": "oom_start"}}, "out_of_memory", 1),
        ({"fail": {"at": "bad_flag"}}, "bad_flag", 2),
        ({"fail": {"at": "missing_model"}}, "missing_model", 2),
        ({"fail": {"at": "port_in_use"}}, "port_in_use", 1),
        ({"gpu": "l4", "max_context": 131_072}, "out_of_memory", 1),
    ],
)
def test_failures_at_start(
    spawned, answers, emulated, tmp_path: Path, flags: dict[str, Any], cause: str, code: int
):
    with spawned(emulated(**flags), tmp_path) as broken:
        assert not answers(broken)
        assert broken.process.returncode == code
        assert ENGINE.classify(broken.log.read_text(), code) == cause


def test_a_taken_port(spawned, answers, emulated, tmp_path: Path):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        with spawned(emulated(), tmp_path, holder.getsockname()[1]) as late:
            late.process.wait(60)
        assert ENGINE.classify(late.log.read_text(), late.process.returncode) == "port_in_use"


def test_hanging_at_start_means_never_healthy(spawned, answers, emulated, tmp_path: Path):
    with spawned(emulated(fail={"at": "hang_start"}), tmp_path) as hung:
        assert answers(hung)
        assert hung.get("/health").status_code == 503


@pytest.mark.parametrize(("at", "cause"), [("mid", "died"), ("oom_mid", "out_of_memory")])
def test_failing_in_mid_stream_cuts_it_and_ends_the_process(
    spawned, answers, emulated, tmp_path: Path, at: str, cause: str
):
    config = emulated(fail={"at": at, "after_tokens": 5}, time_scale=0.1)
    with spawned(config, tmp_path) as dying:
        assert answers(dying)
        with pytest.raises(httpx.TransportError):
            stream(dying, **completion())
        assert dying.process.wait(20) == 1
        log = dying.log.read_text()
        assert "injected" in log
        assert ENGINE.classify(log, 1) == cause


def test_hanging_in_mid_stream_keeps_the_process(spawned, answers, emulated, tmp_path: Path):
    config = emulated(fail={"at": "hang_mid", "after_tokens": 5}, time_scale=0.1)
    with spawned(config, tmp_path) as hung:
        assert answers(hung)
        read: Callable[[], Any] = lambda: httpx.post(  # noqa: E731 - used once, named for the reader
            hung.url + "/v1/completions", json=completion(stream=False), timeout=1.0, trust_env=False
        )
        with pytest.raises(httpx.ReadTimeout):
            read()
        assert hung.process.poll() is None
        assert hung.get("/health").status_code == 200
