"""Recordings: lines that give back the conversation, a header that vouches for the file."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jobs.errors import WorkloadError
from jobs.workload.conversation import RECORDED, SYNTHETIC, Conversation, Message, Turn
from jobs.workload.formats import load_workload
from jobs.workload.json_file import parse
from jobs.workload.recorded import (
    FORMAT,
    Recording,
    RecordingHeader,
    RecordingIdentity,
    header_path,
    line_of,
    recording_of,
)

TALK = Conversation(
    id="81",
    group="writing",
    start=1.5,
    turns=(
        Turn(
            messages=(
                Message(role="system", content="s"),
                Message(role="user", content="an example"),
                Message(role="assistant", content="of history"),
                Message(role="user", content="Ask.\u2028\n"),
            ),
            reply="Told.",
            output_tokens=9,
        ),
        Turn(messages=(Message(role="user", content="And?"),), reply="", gap=2.0, output_tokens=1),
        Turn(messages=(Message(role="tool", content="t"),), reply="known"),
    ),
)
RECORDING = Recording(conversation=TALK, finish_reasons=("stop", "length", None))


def header(**changes: Any) -> RecordingHeader:
    identity = RecordingIdentity(
        source="s" * 64,
        source_name="spec_bench",
        source_format="spec_bench",
        engine="vllm",
        engine_version="1.2",
        arm="a" * 64,
        model="tiny",
        model_digest=None,
        tokenizer="t" * 64,
        max_context=2048,
        max_output_tokens=100,
        temperature=0.0,
        seed=0,
    )
    fields: dict[str, Any] = {
        "format": FORMAT,
        "identity": identity,
        "validity": RECORDED,
        "date": "2031-05-06T07:08:09+00:00",
        "specload": "0",
        "concurrency": 2,
        "wanted": 1,
        "complete": True,
        "finish_reasons": {"stop": 1, "length": 1, "recorded before": 1},
    }
    return RecordingHeader(**{**fields, **changes})


def write(tmp_path: Path, **changes: Any) -> Path:
    path = tmp_path / "r.jsonl"
    path.write_bytes(line_of(RECORDING))
    signed = {"digest": hashlib.sha256(path.read_bytes()).hexdigest(), **changes}
    header_path(path).write_bytes(msgspec.json.encode(header(**signed)))
    return path


def test_a_line_gives_back_the_conversation_with_its_history_uncut() -> None:
    line = line_of(RECORDING)
    assert line.count(b"\n") == 1
    assert recording_of(parse(line.decode(), where="here"), where="here") == RECORDING


def test_a_recording_is_a_workload_with_natural_lengths(tmp_path: Path) -> None:
    path = write(tmp_path, dropped=(("82", "left out: too long"),))
    workload = load_workload(name="w", format="recorded", paths=[path])
    assert workload.conversations == (TALK,)
    assert workload.validity == RECORDED
    assert workload.notes == (
        (
            "r.jsonl: replies to spec_bench written by tiny on vllm 1.2 greedily, at most 100 tokens each "
            "(1 by length, 1 by recorded before, 1 by stop), 2031-05-06"
        ),
        "conversation 82 of r.jsonl: left out: too long",
    )


def test_it_is_chat_too_without_the_lengths(tmp_path: Path) -> None:
    workload = load_workload(name="w", format="chat_jsonl", paths=[write(tmp_path)])
    [conversation] = workload.conversations
    assert [turn.reply for turn in conversation.turns if isinstance(turn, Turn)] == [
        "of history",
        "Told.",
        "",
        "known",
    ]


def test_filler_is_not_recorded_text(tmp_path: Path) -> None:
    path = write(tmp_path, validity=SYNTHETIC)
    assert load_workload(name="w", format="recorded", paths=[path]).validity == SYNTHETIC


def test_what_cannot_be_vouched_for_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, complete=False)
    with pytest.raises(WorkloadError, match=r"is not complete .*run the same"):
        load_workload(name="w", format="recorded", paths=[path])
    path = write(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"Told.", b"Tell."))
    with pytest.raises(WorkloadError, match="changed since it was recorded"):
        load_workload(name="w", format="recorded", paths=[path])
    header_path(path).write_text("{}")
    with pytest.raises(WorkloadError, match=r"r\.jsonl\.json is no header"):
        load_workload(name="w", format="recorded", paths=[path])
    header_path(path).write_bytes(msgspec.json.encode(header(format="other-1")))
    with pytest.raises(WorkloadError, match="is of the form 'other-1'"):
        load_workload(name="w", format="recorded", paths=[path])
    header_path(path).unlink()
    with pytest.raises(WorkloadError, match=r"has no readable header r\.jsonl\.json"):
        load_workload(name="w", format="recorded", paths=[path])


@pytest.mark.parametrize(
    "change",
    [
        {"turns": [{"messages": 4}]},
        {"turns": [{"messages": 4}, {"messages": 1}, {"messages": 2}]},
        {"turns": []},
        {"turns": [{}]},
        {"messages": []},
        {"id": 3, "turns": 7},
    ],
)
def test_lines_that_do_not_fit_are_named(change: dict[str, Any]) -> None:
    value = parse(line_of(RECORDING).decode(), where="here")
    with pytest.raises(WorkloadError, match=r"f\.jsonl, line 3: "):
        recording_of({**value, **change}, where="f.jsonl, line 3")


def test_a_turn_without_a_reply_is_no_recording() -> None:
    silent = replace(TALK, turns=(replace(TALK.turns[0], reply=None), *TALK.turns[1:]))
    with pytest.raises(AssertionError):
        line_of(replace(RECORDING, conversation=silent))
