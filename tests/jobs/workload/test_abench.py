"""abench sessions: messages since the last reply, tool times and stated lengths."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import WorkloadError
from jobs.workload.conversation import Conversation
from jobs.workload.formats import load_workload

SESSION: dict[str, Any] = {
    "session_id": "s-1",
    "source": {"dataset": "swe", "agent": "a", "model": "m", "trial": 0},
    "system_prompt": "You fix bugs.",
    "turns": [
        {
            "index": 0,
            "input_delta": [{"role": "user", "content": "Fix it."}],
            "assistant_text": "I look.",
            "input_tokens": 10,
            "output_tokens": 4,
            "cached_tokens": 0,
            "pre_gap_ms": 900.0,
        },
        {
            "index": 1,
            "input_delta": [{"role": "tool", "content": "ok"}, {"role": "user", "content": "go on"}],
            "assistant_text": "",
            "output_tokens": 17,
            "pre_gap_ms": 2500,
        },
        {"index": 2, "input_delta": [{"role": "tool", "content": "done"}], "assistant_text": "Fixed."},
    ],
}


def load(path: Path, *, unanswered: bool = False) -> list[Conversation]:
    found = load_workload(name="ab", format="abench", paths=[path], unanswered=unanswered).conversations
    return [conversation for conversation in found if isinstance(conversation, Conversation)]


@pytest.mark.parametrize("form", ["lines", "array", "object"])
def test_a_session(tmp_path: Path, form: str) -> None:
    path = tmp_path / "sessions.json"
    text = {
        "lines": json.dumps(SESSION) + "\n" + json.dumps({**SESSION, "session_id": "s-2"}),
        "array": json.dumps([SESSION], indent=1),
        "object": json.dumps(SESSION, indent=1),
    }
    path.write_text(text[form])
    first = load(path)[0]
    assert (first.id, first.group) == ("s-1", "swe")
    assert [[(m.role, m.content) for m in turn.messages] for turn in first.turns] == [
        [("system", "You fix bugs."), ("user", "Fix it.")],
        [("tool", "ok"), ("user", "go on")],
        [("tool", "done")],
    ]
    assert [turn.reply for turn in first.turns] == ["I look.", "", "Fixed."]
    assert [turn.gap for turn in first.turns] == [None, 2.5, None]
    assert [turn.output_tokens for turn in first.turns] == [4, 17, None]


def test_lengths_are_somebody_elses_tokens(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text(json.dumps(SESSION))
    workload = load_workload(name="ab", format="abench", paths=[tmp_path / "s.jsonl"])
    assert workload.notes == (
        "output lengths are stated by the recording, in tokens of the model that it recorded",
    )


def turn(**changes: Any) -> dict[str, Any]:
    return {"input_delta": [{"role": "user", "content": "a"}], "assistant_text": "b", **changes}


@pytest.mark.parametrize(
    ("session", "found"),
    [
        ({"session_id": "x", "turns": []}, "line 1: expected an abench session"),
        ({"turns": [turn()]}, "line 1: expected an abench session"),
        (
            {"session_id": "x", "turns": [turn(input_delta=None)]},
            r"turns\[0\]: expected an object",
        ),
        ({"session_id": "x", "turns": [turn(), turn(input_delta=[])]}, r"turns\[1\]: `input_delta` is empty"),
        (
            {"session_id": "x", "turns": [turn(), turn(pre_gap_ms=-1)]},
            r"turns\[1\]: 'pre_gap_ms' is -1; it must be a number of 0 or more",
        ),
        (
            {"session_id": "x", "turns": [turn(), turn(pre_gap_ms=float("inf"))]},
            r"turns\[1\]: 'pre_gap_ms' is inf",
        ),
        ({"session_id": "x", "turns": [turn(output_tokens=float("inf"))]}, "'output_tokens' is inf"),
        ({"session_id": "x", "turns": [turn(output_tokens=10**400)]}, "'output_tokens' has more digits"),
        ({"session_id": "x", "turns": [turn(output_tokens=3.5)]}, "'output_tokens' is 3.5, not a whole"),
        ({"session_id": "x", "system_prompt": ["p"], "turns": [turn()]}, "`system_prompt` is list, not text"),
        ({"session_id": "x", "turns": [turn(output_tokens="7")]}, "`output_tokens` is '7'"),
        ({"session_id": "x", "turns": [turn(assistant_text=3)]}, "`assistant_text` is int, not text"),
    ],
)
def test_other_files_are_named(tmp_path: Path, session: dict[str, Any], found: str) -> None:
    (tmp_path / "s.jsonl").write_text(json.dumps(session))
    with pytest.raises(WorkloadError, match=found):
        load(tmp_path / "s.jsonl")


def test_a_turn_without_text_of_the_assistant_has_no_reply(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text(
        json.dumps({"session_id": "x", "turns": [turn(), turn(assistant_text=None)]})
    )
    assert [entry.reply for entry in load(tmp_path / "s.jsonl", unanswered=True)[0].turns] == ["b", None]
