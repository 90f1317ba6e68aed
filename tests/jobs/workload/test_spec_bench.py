"""Spec-Bench: both turns of a question, its category, and that it cannot be replayed as it is."""

import json
from collections import Counter
from pathlib import Path

import pytest

from jobs.errors import MissingRepliesError, WorkloadError
from jobs.workload.conversation import Conversation
from jobs.workload.formats import count_unanswered, load_workload

QUESTIONS = Path(__file__).parents[4] / "shared" / "data" / "spec_bench" / "question.jsonl"


def load(path: Path) -> list[Conversation]:
    found = load_workload(name="sb", format="spec_bench", paths=[path], unanswered=True).conversations
    return [conversation for conversation in found if isinstance(conversation, Conversation)]


def test_both_turns_and_the_category(tmp_path: Path) -> None:
    path = tmp_path / "question.jsonl"
    row = {"question_id": 81, "category": "writing", "turns": ["Compose.", "Rewrite."], "reference": ["x"]}
    path.write_text(json.dumps(row))
    [conversation] = load(path)
    assert (conversation.id, conversation.group) == ("81", "writing")
    assert [[(m.role, m.content) for m in turn.messages] for turn in conversation.turns] == [
        [("user", "Compose.")],
        [("user", "Rewrite.")],
    ]
    assert [turn.reply for turn in conversation.turns] == [None, None]
    notes = load_workload(name="sb", format="spec_bench", paths=[path], unanswered=True).notes
    assert notes == (
        "`reference` is not used: a solution is no reply of a model",
        "2 turns have no reply; `specload workload record` writes them",
    )


def test_it_has_to_be_recorded_before_it_is_replayed(tmp_path: Path) -> None:
    path = tmp_path / "question.jsonl"
    path.write_text('{"question_id": 1, "turns": ["a", "b"]}')
    with pytest.raises(MissingRepliesError, match=r"'sb' has no reply for 2 of its 2 turns.*workload record"):
        load_workload(name="sb", format="spec_bench", paths=[path])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"question_id": 1, "turns": []}', "line 1: expected a Spec-Bench question"),
        ('{"question_id": 1, "turns": [3]}', "line 1: expected a Spec-Bench question"),
        ('{"turns": ["a"]}', "line 1: the question has no `question_id`"),
        ('{"question_id": 1, "turns": ["a"]}\n[]', "line 2: expected a Spec-Bench question"),
    ],
)
def test_other_files_are_named(tmp_path: Path, text: str, found: str) -> None:
    path = tmp_path / "question.jsonl"
    path.write_text(text)
    with pytest.raises(WorkloadError, match=found):
        load(path)


@pytest.mark.skipif(not QUESTIONS.exists(), reason="the public traces are not on this machine")
def test_the_public_questions() -> None:
    conversations = load(QUESTIONS)
    assert len(conversations) == 480
    assert Counter(len(conversation.turns) for conversation in conversations) == {1: 400, 2: 80}
    assert count_unanswered(conversations) == 560
    groups = Counter(conversation.group for conversation in conversations)
    assert len(groups) == 13
    assert groups["translation"] == groups["rag"] == 80
    assert groups["writing"] == groups["coding"] == 10
    assert all(len(c.turns) == 2 for c in conversations if c.group == "writing")
    first = next(conversation for conversation in conversations if conversation.id == "81")
    assert first.turns[0].messages[0].content.startswith("Compose an engaging travel blog post")
    assert first.turns[1].messages[0].content.startswith("Rewrite your previous response.")
