"""Completing conversations: in order, with the reply as history, ended by the engine, and by its death."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import psutil
import pytest

from engines.emulator.tokenizer import EmulatedTokenizer
from engines.registry import engine_named
from engines.spec import EngineConfig, Model
from jobs.errors import RecordError
from jobs.record import (
    Completer,
    RecorderFailed,
    RecorderReady,
    RecorderSkipped,
    RecordReport,
    RecordRunner,
    RecordTask,
)
from jobs.workload.conversation import Conversation, Message, Turn
from jobs.workload.recorded import Recording


def conversation(name: str, *asked: str, replies: tuple[str | None, ...] = ()) -> Conversation:
    known = [*replies, *[None] * len(asked)]
    return Conversation(
        id=name,
        turns=tuple(
            Turn(messages=(Message(role="user", content=text),), reply=reply)
            for text, reply in zip(asked, known, strict=False)
        ),
    )


TALKS = (
    conversation("two", "Compose.", "Rewrite."),
    conversation("half", "What?", "And?", replies=("This.",)),
    conversation("grows", "Hello", "word " * 300),
    conversation("long", "word " * 300),
)


def task(*conversations: Conversation, **changes: Any) -> RecordTask:
    model = Model(name="llama-3.1-8b", max_context=200)
    fields: dict[str, Any] = {
        "config": EngineConfig(
            engine="emulator",
            version=engine_named("emulator").version(None),
            model=model,
            device="emulated",
            flags={"gpu": "a10", "time_scale": 0.02},
        ),
        "conversations": conversations,
        "resource": "engine_slot",
        "engine_cores": 1,
        "load_cores": 1,
        "concurrency": 2,
        "max_output_tokens": 8,
        "temperature": 0.0,
        "seed": 3,
        "ready_seconds": 60.0,
        "stop_seconds": 5.0,
        "answer_seconds": 60.0,
    }
    return RecordTask(**{**fields, **changes})


def engines() -> list[psutil.Process]:
    """Processes below this one that are part of an engine."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if any("engines" in word for word in process.cmdline()):
                found.append(process)
    return found


class Echo(BaseHTTPRequestHandler):
    """Answers a completion with its number, and keeps what it was asked."""

    asked: list[dict[str, Any]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.asked.append(body)
        choice = {"index": 0, "text": f"reply {len(self.asked)}", "finish_reason": "stop"}
        data = json.dumps(
            {"choices": [choice], "usage": {"completion_tokens": 40 + len(self.asked)}}
        ).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def echo() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    handler = type("Handler", (Echo,), {"asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", handler.asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_reply_is_history_of_the_next_turn(echo: tuple[str, list[dict[str, Any]]]) -> None:
    url, asked = echo
    with httpx.Client() as client:
        done = Completer(task(), client, url).complete(TALKS[0])
    assert isinstance(done, Recording)
    assert [(turn.reply, turn.output_tokens) for turn in done.conversation.turns] == [
        ("reply 1", 41),
        ("reply 2", 42),
    ]
    assert done.finish_reasons == ("stop", "stop")
    render = EmulatedTokenizer().render
    chat = [("user", "Compose."), ("assistant", "reply 1"), ("user", "Rewrite.")]
    assert [body["prompt"] for body in asked] == [render(chat[:1]), render(chat)]
    # the engine ends a reply itself, and nothing else is asked of it
    assert {key for body in asked for key in body} == {"model", "prompt", "max_tokens", "temperature", "seed"}
    assert [body["temperature"] for body in asked] == [0.0, 0.0]
    assert len({body["seed"] for body in asked}) == 2


def test_a_reply_has_room_up_to_the_cap_and_the_context(echo: tuple[str, list[dict[str, Any]]]) -> None:
    url, asked = echo
    length = len(EmulatedTokenizer().render([("user", "Compose.")]))
    with httpx.Client() as client:
        for context in (length + 100, length + 3):
            limited = task()
            config = replace(limited.config, model=replace(limited.config.model, max_context=context))
            completer = Completer(replace(limited, config=config), client, url)
            completer.complete(conversation("x", "Compose."))
    assert [body["max_tokens"] for body in asked] == [8, 3]


@pytest.mark.parametrize(
    ("model", "found"),
    [
        ("http_500", "turn 1 of conversation 'two' was refused with HTTP 500: .*boom"),
        ("error_200", "turn 1 of conversation 'two' got an answer without text"),
        ("cut_before", "turn 1 of conversation 'two' got no answer after"),
    ],
)
def test_a_request_that_fails_is_named(scripted_url: str, model: str, found: str) -> None:
    asked = task()
    config = replace(asked.config, model=replace(asked.config.model, name=model))
    with httpx.Client() as client, pytest.raises(RecordError, match=found):
        Completer(replace(asked, config=config), client, scripted_url).complete(TALKS[0])


def test_conversations_on_the_emulator() -> None:
    def run() -> dict[str, RecordReport]:
        reports = list(RecordRunner().run(task(*TALKS)))
        assert isinstance(reports[0], RecorderReady)
        named: dict[str, RecordReport] = {}
        for report in reports[1:]:
            assert isinstance(report, Recording | RecorderSkipped), report
            named[report.conversation.id if isinstance(report, Recording) else report.conversation] = report
        return named

    found = run()
    assert set(found) == {"two", "half", "grows", "long"}
    two, half, grows, long = (found[name] for name in ("two", "half", "grows", "long"))
    assert isinstance(two, Recording)
    assert [turn.output_tokens for turn in two.conversation.turns] == [8, 8]
    assert two.finish_reasons == ("length", "length")
    assert isinstance(half, Recording)
    assert half.conversation.turns[0].reply == "This."
    assert half.conversation.turns[0].output_tokens is None
    assert half.finish_reasons == (None, "length")
    assert isinstance(grows, Recording)
    assert len(grows.conversation.turns) == 1
    assert grows.shortened is not None
    assert grows.shortened.startswith("ends after 1 of 2 turns: the prompt of turn 2 has ")
    assert isinstance(long, RecorderSkipped)
    assert "context holds 200" in long.reason
    assert run() == found, "the same words give the same replies"
    assert not engines()


def test_an_engine_that_cannot_start_ends_the_recording() -> None:
    broken = task(TALKS[0])
    config = replace(broken.config, flags={**broken.config.flags, "gpu_memory_utilization": 0.1})
    [report] = RecordRunner().run(replace(broken, config=config))
    assert isinstance(report, RecorderFailed)
    assert report.message
    assert report.log_tail
    assert not engines()


def kill_the_engine() -> None:
    for process in engines():
        if "engines.emulator" in process.cmdline():
            process.kill()


def until(condition: Callable[[], bool], *, seconds: float = 30.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def test_an_engine_that_dies_ends_the_recording_with_its_log() -> None:
    slow = task(*(conversation(f"c{index}", "Go.") for index in range(6)), max_output_tokens=150)
    config = replace(slow.config, flags={"gpu": "a10", "time_scale": 2.0})
    reports = RecordRunner().run(replace(slow, config=config))
    assert isinstance(next(reports), RecorderReady)
    threading.Timer(0.5, kill_the_engine).start()
    last = list(reports)[-1]
    assert isinstance(last, RecorderFailed), last
    assert last.log_tail
    assert until(lambda: not engines())
