"""Shared pieces: token workloads, request records, a finished replay, the scripted server as a process."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from engines.counters import Counters
from jobs.replay.data import CHUNK, ReplayData
from jobs.replay.job import ReplaySummary, RequestRecord
from jobs.workload.conversation import RECORDED
from jobs.workload.tokens import TokenConversation, TokenTurn, TokenWorkload

MS = 1_000_000
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}\n<|{{ message['role'] }}|>{{ message['content'] }}<|end|>"
    "{% endfor %}\n{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@pytest.fixture(scope="session")
def make_workload() -> Callable[..., TokenWorkload]:
    def make(conversations: int = 8, turns: int = 2) -> TokenWorkload:
        made = []
        for index in range(conversations):
            first = TokenTurn(keep=0, suffix=(1, 2, 3, 100 + index), output_tokens=7)
            more = [
                TokenTurn(keep=4, suffix=(9, 200 + number, index), output_tokens=5)
                for number in range(turns - 1)
            ]
            made.append(TokenConversation(id=f"c{index}", turns=(first, *more)))
        return TokenWorkload(name="made", conversations=tuple(made), validity=RECORDED, tokenizer="none")

    return make


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a byte-level tokenizer and a chat template, as a model has it."""
    folder = tmp_path_factory.mktemp("model")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<s>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>"])
    tokenizer.enable_truncation(8)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"bos_token": {"content": "<s>"}, "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def record(**changes: Any) -> RequestRecord:
    """A request of 20 ms to its first chunk of 2 tokens, then 4 chunks of 2 tokens in 10 ms each."""
    fields: dict[str, Any] = {
        "conversation": "c0",
        "epoch": 0,
        "turn": 0,
        "user": 0,
        "replica": 0,
        "scheduled": 0,
        "dispatched": 0,
        "send_lag": 0,
        "first": 20 * MS,
        "last": 60 * MS,
        "ended": 61 * MS,
        "prompt_tokens": 100,
        "cached_tokens": 30,
        "completion_tokens": 10,
        "first_tokens": 2,
        "expected_prompt_tokens": 100,
        "expected_tokens": 10,
        "chunks": 5,
        "chunk_offset": 0,
        "finish_reason": "length",
        "error": None,
    }
    return RequestRecord(**{**fields, **changes})


@pytest.fixture(scope="session")
def make_record() -> Callable[..., RequestRecord]:
    return record


@pytest.fixture(scope="session")
def make_replay() -> Callable[..., ReplayData]:
    """Users who do nothing but `record()`, `rounds` times, each a pause after the last one ended."""

    def make(users: int = 4, rounds: int = 5, pause: int = MS, **changes: Any) -> ReplayData:
        requests: list[RequestRecord] = []
        chunks: list[tuple[int, int, int]] = []
        period = 61 * MS + pause
        for turn in range(rounds):
            for user in range(users):
                begin = turn * period
                at = {
                    name: begin + value * MS for name, value in (("first", 20), ("last", 60), ("ended", 61))
                }
                where = {
                    "scheduled": begin,
                    "dispatched": begin,
                    "chunk_offset": len(chunks),
                    "user": user,
                    "conversation": f"c{user}-{turn}",
                }
                requests.append(record(**at, **where, **changes))
                chunks += [(begin + (20 + 10 * i) * MS, 2 * (i + 1), len(requests) - 1) for i in range(5)]
        end = max(request.ended for request in requests)
        summary = ReplaySummary(
            started=0,
            ended=end,
            window_start=61 * MS,
            window_end=61 * MS + (rounds - 2) * period,
            loop_lag_p99_ms=1.0,
            send_lag_p99_ms=0.1,
            cpu_seconds=0.1,
            cpu_share=0.1,
            peak_rss_mib=50.0,
            processes=1,
            cap_waits=0,
            requests=len(requests),
            errors=0,
        )
        return ReplayData(
            summary=summary,
            requests=tuple(requests),
            chunks=np.array(chunks, dtype=CHUNK),
            concurrency=users,
        )

    return make


@pytest.fixture(scope="session")
def make_counters() -> Callable[..., Counters]:
    """The engine's side of `make_replay()`: 20 requests with K=3, a fifth of the steps without a draft."""

    def make(**changes: Any) -> Counters:
        fields: dict[str, Any] = {
            "time": 1.0,
            "prompt_tokens": 2000,
            "cached_prompt_tokens": 600,
            "computed_prompt_tokens": 1400,
            "generation_tokens": 200,
            "drafts": 64,
            "draft_tokens": 192,
            "accepted_tokens": 100,
            "accepted_per_position": (48, 32, 20),
            "preemptions": 0,
            "prefix_queries": 2000,
            "prefix_hits": 600,
            "step_intervals": 80,
            "step_seconds": 0.8,
            "first_tokens": 20,
            "running": 0,
            "waiting": 0,
            "kv_usage": 0.0,
        }
        return Counters(**{**fields, **changes})

    return make


@pytest.fixture(scope="session")
def scripted_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Base URL of the scripted server, a process of its own."""
    port_file = tmp_path_factory.mktemp("scripted") / "port.txt"
    script = Path(__file__).with_name("scripted_server.py")
    process = subprocess.Popen([sys.executable, str(script), str(port_file)])
    try:
        while not port_file.exists():
            assert process.poll() is None, "the scripted server did not start"
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port_file.read_text()}"
    finally:
        process.terminate()
        process.wait()
