"""ShareGPT files: who speaks, what is left out and why, and that nothing needs the whole file."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import WorkloadError
from jobs.workload.conversation import RECORDED, Workload
from jobs.workload.formats import load_workload
from jobs.workload.import_log import ImportLog
from jobs.workload.sharegpt import read_sharegpt


def said(*parts: tuple[Any, Any], **more: Any) -> dict[str, Any]:
    return {"conversations": [{"from": speaker, "value": value} for speaker, value in parts], **more}


def load(tmp_path: Path, *entries: Any) -> Workload:
    (tmp_path / "share.json").write_text(json.dumps(entries))
    return load_workload(name="w", format="sharegpt", paths=["share.json"], root=tmp_path)


def shape(workload: Workload) -> dict[str, list[tuple[list[str], str | None]]]:
    return {
        conversation.id: [([m.content for m in turn.messages], turn.reply) for turn in conversation.turns]  # type: ignore[union-attr]  # all are text
        for conversation in workload.conversations
    }


def test_people_and_models_take_turns(tmp_path: Path) -> None:
    workload = load(
        tmp_path,
        said(("system", "s"), ("human", "a"), ("gpt", "b"), ("user", "c"), ("chatgpt", "d"), id="x"),
        said(("human", "look"), ("function_call", "f()"), ("observation", "3"), ("gpt", "three")),
    )
    assert shape(workload) == {
        "x": [(["s", "a"], "b"), (["c"], "d")],
        "share-2": [(["look"], "f()"), (["3"], "three")],
    }
    assert [m.role for m in workload.conversations[1].turns[1].messages] == ["tool"]  # type: ignore[union-attr]  # text
    assert workload.validity == RECORDED
    assert workload.notes == ()


def test_a_part_of_a_conversation_starts_at_its_first_question(tmp_path: Path) -> None:
    workload = load(tmp_path, said(("gpt", "what?"), ("gpt", "more"), ("human", "a"), ("gpt", "b"), id="x"))
    assert shape(workload) == {"x": [(["a"], "b")]}
    assert workload.notes == ("2 messages dropped: a reply before the first question answers nothing here",)


def test_what_the_same_speaker_says_in_a_row_is_one(tmp_path: Path) -> None:
    workload = load(tmp_path, said(("human", "a"), ("human", "b"), ("gpt", "c"), ("gpt", "d"), id="x"))
    assert shape(workload) == {"x": [(["a\nb"], "c\nd")]}


@pytest.mark.parametrize("empty", ["", "  \n", None])
def test_a_conversation_ends_before_its_first_empty_message(tmp_path: Path, empty: str | None) -> None:
    workload = load(
        tmp_path, said(("human", "a"), ("gpt", "b"), ("human", "c"), ("gpt", empty), ("human", "d"), id="x")
    )
    assert shape(workload) == {"x": [(["a"], "b")]}
    assert set(workload.notes) == {
        "2 messages dropped: a conversation ends before its first empty message",
        "1 message dropped: they follow a conversation's last reply, so nobody answered them",
    }


def test_what_cannot_be_used_is_counted_with_its_reason(tmp_path: Path) -> None:
    good = said(("human", "a"), ("gpt", "b"), id="good")
    workload = load(
        tmp_path,
        said(("human", "a"), ("narrator", "b"), id="odd"),
        said((None, "a"), ("gpt", "b"), id="nobody"),
        said(("human", {"image": 1}), ("gpt", "b"), id="image"),
        said(("human", "a"), id="asks"),
        said(("gpt", "a"), id="tells"),
        said(id="empty"),
        {"id": "none"},
        "text",
        good,
    )
    assert list(shape(workload)) == ["good"]
    dropped = {note for note in workload.notes if "conversation" in note.split("dropped")[0]}
    assert dropped == {
        "3 conversations dropped: no question with a reply is left of it",
        "2 conversations dropped: it is no object with a list `conversations`",
        "1 conversation dropped: it has a message from 'narrator', who is nobody we know",
        "1 conversation dropped: it has a message from None, who is nobody we know",
        "1 conversation dropped: a message of it is no text",
    }


def test_a_file_of_something_else_says_why_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(
        WorkloadError, match=r"no conversation is left of \S+: 2 conversations dropped: it is no"
    ):
        load(tmp_path, {"messages": []}, 3)


def test_ids_that_are_used_twice_go_on(tmp_path: Path) -> None:
    pair = (("human", "a"), ("gpt", "b"))
    workload = load(tmp_path, said(*pair, id="x"), said(*pair, id="x"), said(*pair, id=7))
    assert list(shape(workload)) == ["x", "x#2", "7"]
    own = load(tmp_path, *(said(*pair, id=name) for name in ("x", "x#2", "x", "x#2", "x")))
    assert list(shape(own)) == ["x", "x#2", "x#3", "x#2#2", "x#4"]
    assert workload.notes == ("an id that several conversations have is continued with #2, #3, ...",)


def test_lone_halves_of_characters_are_replaced(tmp_path: Path) -> None:
    asked, answered = r'{"from": "human", "value": "a\ud83d"}', r'{"from": "gpt", "value": "\ud83d\ude00"}'
    (tmp_path / "share.jsonl").write_text(f'{{"id": "x", "conversations": [{asked}, {answered}]}}')
    workload = load_workload(name="w", format="sharegpt", paths=["share.jsonl"], root=tmp_path)
    assert shape(workload) == {"x": [(["a\ufffd"], "\U0001f600")]}


def test_conversations_come_before_the_file_was_read_to_its_end(tmp_path: Path) -> None:
    entry = json.dumps(said(("human", "a" * 2000), ("gpt", "b")))
    (tmp_path / "share.json").write_text("[" + ",".join([entry] * 200) + ", oh no")
    log = ImportLog(validity=RECORDED)
    stream = read_sharegpt([tmp_path / "share.json"], log)
    assert next(iter(stream)).id == "share-1"
    with pytest.raises(WorkloadError, match=r"share\.json, after entry \d+: not JSON"):
        list(stream)


def test_a_cut_file(tmp_path: Path) -> None:
    text = json.dumps([said(("human", "a"), ("gpt", "b"))] * 3)
    (tmp_path / "share.json").write_text(text[:-20])
    with pytest.raises(WorkloadError, match=r"share\.json, after entry 2: the JSON is truncated"):
        load_workload(name="w", format="sharegpt", paths=["share.json"], root=tmp_path)


def test_json_lines_are_read_too(tmp_path: Path) -> None:
    entry = json.dumps(said(("human", "a"), ("gpt", "b"), id="x"))
    (tmp_path / "share.jsonl").write_text(entry + "\n")
    workload = load_workload(name="w", format="sharegpt", paths=["share.jsonl"], root=tmp_path)
    assert shape(workload) == {"x": [(["a"], "b")]}
