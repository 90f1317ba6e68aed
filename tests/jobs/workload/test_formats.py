import json
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import WorkloadError
from jobs.workload.conversation import RECORDED, Conversation, Workload
from jobs.workload.formats import FORMATS, load_workload

TRACES = Path(__file__).parents[4] / "shared" / "data" / "swe_agent"
CHAT = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "One"}, {"type": "text", "text": " two"}]},
        {"role": "assistant", "content": "Three."},
        {"role": "user", "content": "Four\u2028five"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "content": "done"},
        {"role": "assistant", "content": "Six."},
        {"role": "user", "content": "nobody answers this"},
    ]
}


def chat(tmp_path: Path, text: str) -> Workload:
    (tmp_path / "chat.jsonl").write_text(text)
    return load_workload(name="w", format="chat_jsonl", paths=["chat.jsonl"], root=tmp_path)


def line(*messages: tuple[str, Any], **more: Any) -> str:
    return json.dumps(
        {"messages": [{"role": role, "content": content} for role, content in messages], **more}
    )


def test_chat_turns_hold_what_is_new_since_the_reply_before(tmp_path: Path) -> None:
    workload = chat(
        tmp_path,
        json.dumps(CHAT, ensure_ascii=False) + "\n\n" + line(("user", "a"), ("assistant", "b"), id="x"),
    )
    first, second = workload.conversations
    assert (first.id, second.id) == ("chat-1", "x")
    assert [[(m.role, m.content) for m in turn.messages] for turn in first.turns] == [
        [("system", "Be brief."), ("user", "One two")],
        [("user", "Four\u2028five")],
        [("tool", "done")],
    ]
    assert [turn.reply for turn in first.turns] == [
        "Three.",
        '[{"function":{"name":"f","arguments":"{}"}}]',
        "Six.",
    ]
    assert workload.validity == RECORDED
    assert workload.turns == 4


def test_what_is_left_out_of_a_chat_is_counted(tmp_path: Path) -> None:
    tools = json.dumps({**CHAT, "tools": [{"type": "function"}]})
    assert chat(tmp_path, tools).notes == (
        "1 list of tool definitions dropped: prompts hold the messages only",
        "1 message dropped: they follow a conversation's last reply, so nobody answered them",
    )


def test_old_function_calls_are_tool_calls(tmp_path: Path) -> None:
    call = {"name": "f", "arguments": "{}"}
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": None, "function_call": call},
        {"role": "function", "name": "f", "content": "3"},
        {"role": "assistant", "content": "three"},
    ]
    [conversation] = chat(tmp_path, json.dumps({"messages": messages})).conversations
    assert isinstance(conversation, Conversation)
    assert conversation.turns[0].reply == json.dumps(call, separators=(",", ":"))
    assert [m.role for m in conversation.turns[1].messages] == ["tool"]


def test_replies_in_a_row_are_one_and_a_greeting_is_history(tmp_path: Path) -> None:
    text = line(("assistant", "Hello!"), ("user", "a"), ("assistant", "b"), ("assistant", "c"))
    [conversation] = chat(tmp_path, text).conversations
    [turn] = conversation.turns
    assert [m.role for m in turn.messages] == ["assistant", "user"]
    assert turn.reply == "b\nc"


GOOD = line(("user", "a"), ("assistant", "b"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "chat.jsonl is empty"),
        (" \n\n", "chat.jsonl is empty"),
        (GOOD + "\n" + GOOD[:-9], "chat.jsonl, line 2: the JSON is truncated"),
        (GOOD[:25], "chat.jsonl, line 1: the JSON is truncated"),
        ("role,content\nuser,a", "chat.jsonl, line 1: not JSON"),
        (GOOD + "\n[1, 2]", "chat.jsonl, line 2: expected an object with a list `messages`"),
        ('{"messages": []}', "expected an object with a list `messages`"),
        ('{"messages": [3]}', "line 1: a message is int"),
        (line(("robot", "a")), "the role 'robot'"),
        (line(("user", [{"type": "image_url"}])), "only text can be replayed"),
        ('{"messages": [{"role": "user", "text": "a"}]}', "'user' has no `content` (its keys: role, text)"),
        (
            '{"messages": [{"role": "assistant", "content": "a", "tool_calls": 5}]}',
            "line 1: a message's tool calls are int, not a list of objects",
        ),
        (line(("system", "s"), ("assistant", "b")), "line 1: the conversation has no user message"),
        (line(("user", "a")), "workload 'w' has no reply for 1 of its 1 turn"),
        (
            line(("user", "a"), ("assistant", "b"), id="x")
            + "\n"
            + line(("user", "a"), ("assistant", "b"), id="x"),
            "'x' is used twice",
        ),
    ],
)
def test_bad_chat_files_are_named_with_their_line(tmp_path: Path, text: str, found: str) -> None:
    with pytest.raises(WorkloadError) as error:
        chat(tmp_path, text)
    assert found in str(error.value)
    assert isinstance(error.value, ValueError)


def test_bad_paths(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "bytes.jsonl").write_bytes(b"\x1f\x8b\x08\xff")
    for path, found in (
        ("none.jsonl", "this file does not exist"),
        ("*.nothing", "no file matches this pattern"),
        ("folder", "this is a folder"),
        ("bytes.jsonl", "is not UTF-8 text"),
    ):
        with pytest.raises(WorkloadError, match=found):
            load_workload(name="w", format="chat_jsonl", paths=[path], root=tmp_path)
    (tmp_path / "one.jsonl").write_text(GOOD)
    with pytest.raises(WorkloadError, match=r"workload file \S+one\.jsonl is given twice"):
        load_workload(name="w", format="chat_jsonl", paths=["o*.jsonl", "./one.jsonl"], root=tmp_path)
    with pytest.raises(WorkloadError, match=r"workload\.paths is empty"):
        load_workload(name="w", format="chat_jsonl", paths=[])
    with pytest.raises(WorkloadError, match="known formats: builtin"):
        load_workload(name="w", format="parquet", paths=[])
    with pytest.raises(WorkloadError, match="reads no files"):
        load_workload(name="w", format="builtin", paths=["x.jsonl"], root=tmp_path) if (
            tmp_path / "x.jsonl"
        ).write_text(GOOD) else None


def test_patterns_are_read_in_sorted_order(tmp_path: Path) -> None:
    for name in ("b", "a[1]", "c"):
        (tmp_path / f"{name}.jsonl").write_text(GOOD)
    workload = load_workload(name="w", format="chat_jsonl", paths=["*.jsonl"], root=tmp_path)
    assert [c.id for c in workload.conversations] == ["a[1]-1", "b-1", "c-1"]
    literal = load_workload(name="w", format="chat_jsonl", paths=["a[1].jsonl"], root=tmp_path)
    assert [c.id for c in literal.conversations] == ["a[1]-1"]


def test_the_builtin_set() -> None:
    workload = load_workload(name="builtin", format="builtin", paths=[])
    assert len(workload.conversations) >= 24
    assert {len(c.turns) for c in workload.conversations} == {2, 3, 4}
    systems = [
        c.turns[0].messages[0].content
        for c in workload.conversations
        if c.turns[0].messages[0].role == "system"
    ]
    assert len(systems) > len(set(systems)) > 1  # some share a system prompt
    replies = [len(turn.reply.split()) for c in workload.conversations for turn in c.turns]
    assert min(replies) >= 20
    assert max(replies) <= 90


def test_every_format_without_files_loads() -> None:
    for name in FORMATS:
        if name.startswith("builtin"):
            assert load_workload(name=name, format=name, paths=[]).turns > 0


def trajectory(tmp_path: Path, history: list[dict[str, Any]]) -> Workload:
    (tmp_path / "task.traj").write_text(json.dumps({"history": history}))
    return load_workload(name="w", format="swe_agent", paths=["*.traj"], root=tmp_path)


def test_trajectories_with_tool_calls_and_demos(tmp_path: Path) -> None:
    workload = trajectory(
        tmp_path,
        [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "worked example", "is_demo": True},
            {"role": "assistant", "content": "of the example", "is_demo": True},
            {"role": "user", "content": "task"},
            {"role": "assistant", "content": "I look.", "tool_calls": [{"function": {"name": "ls"}}]},
            {"role": "tool", "content": "files"},
            {"role": "assistant", "content": "Done."},
        ],
    )
    [conversation] = workload.conversations
    assert conversation.id == "task"
    first, second = conversation.turns
    assert [m.role for m in first.messages] == ["system", "user", "assistant", "user"]
    assert first.reply == 'I look.\n[{"function":{"name":"ls"}}]'
    assert [(m.role, m.content) for m in second.messages] == [("tool", "files")]


@pytest.mark.parametrize("history", [[], "text", None])
def test_a_trajectory_without_history(tmp_path: Path, history: Any) -> None:
    with pytest.raises(WorkloadError, match=r"task\.traj: expected a SWE-agent trajectory"):
        trajectory(tmp_path, history)


@pytest.mark.skipif(not TRACES.exists(), reason="the public traces are not on this machine")
def test_public_trajectories() -> None:
    workload = load_workload(name="swe", format="swe_agent", paths=["*.traj"], root=TRACES)
    turns = {conversation.id: len(conversation.turns) for conversation in workload.conversations}
    assert len(turns) == 8
    assert min(turns.values()) == 4
    assert max(turns.values()) == 13
    assert turns["6e44b9__sweagenttestrepo-1c2844"] == 4
    demos = [c for c in workload.conversations if c.id.startswith(("pydicom", "swe-agent__test"))]
    assert [[m.role for m in c.turns[0].messages] for c in demos] == [["system", "user", "user"]] * 2
    called = next(c for c in workload.conversations if c.id.startswith("function_calling__"))
    assert '"name":"create"' in called.turns[0].reply


@pytest.mark.skipif(not TRACES.exists(), reason="the public traces are not on this machine")
def test_facts_of_the_public_trajectories() -> None:
    histories = {path.stem: json.loads(path.read_text())["history"] for path in TRACES.glob("*.traj")}
    demos = {name for name, history in histories.items() if any(entry.get("is_demo") for entry in history)}
    assert demos == {"pydicom__pydicom-1458", "swe-agent__test-repo-i1"}
    called = {name for name, history in histories.items() if any("tool_calls" in entry for entry in history)}
    assert called == {
        "6e44b9__sweagenttestrepo-1c2844",
        "function_calling__install-1__marshmallow-1867",
        "function_calling_replace_from_source__marshmallow-1867",
    }
    sizes = [sum(len(entry["content"]) for entry in history) for history in histories.values()]
    assert min(sizes) == 7163
    assert max(sizes) == 56550
    workload = load_workload(name="swe", format="swe_agent", paths=["*.traj"], root=TRACES)
    assert workload.notes == (
        "messages marked is_demo are history of the first turn, replies among them too",
        "3 messages dropped: they follow a conversation's last reply, so nobody answered them",
    )
    for conversation in workload.conversations:
        assert isinstance(conversation, Conversation)
        replies = sum(entry["role"] == "assistant" for entry in histories[conversation.id])
        assert len(conversation.turns) == replies  # no file has two replies in a row
        text = sum(len(m.content) for turn in conversation.turns for m in turn.messages)
        text += sum(len(turn.reply or "") for turn in conversation.turns)
        whole = sum(len(entry["content"]) for entry in histories[conversation.id])
        # tool calls are part of what the model wrote; what nobody answered is not part of the conversation
        assert text > whole if conversation.id in called else text <= whole
