import json
from pathlib import Path

import pytest

from jobs.errors import WorkloadError
from jobs.workload.guess import guess_format

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
LINES = {
    "chat_jsonl": {"id": "a", "messages": [{"role": "user", "content": '{"hash_ids": 1}'}]},
    "recorded": {"id": "a", "messages": [], "turns": [{"messages": 1, "output_tokens": 3}]},
    "mooncake": {"timestamp": 0, "input_length": 5, "output_length": 5, "hash_ids": [1]},
    "spec_bench": {"question_id": 81, "category": "writing", "turns": ['a "messages": b', "c"]},
    "abench": {"session_id": "s", "system_prompt": "p", "turns": [{"input_delta": []}]},
    "weka": {"id": "t", "block_size": 64, "requests": [{"t": 0.0, "hash_ids": [1]}]},
    "swe_agent": {"environment": "main", "trajectory": [{"messages": []}], "history": []},
}


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("indent", [None, 2])
def test_a_format_is_told_by_the_names_in_its_first_object(
    tmp_path: Path, name: str, indent: int | None
) -> None:
    file = tmp_path / "some.json"
    file.write_text(json.dumps(LINES[name], indent=indent) + "\n" + json.dumps({"messages": []}))
    assert guess_format([file]) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('[{"id": "x", "conversations": [{"from": "human", "value": "hi"}]}]', "sharegpt"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n", "azure"),
        (
            "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,x\n",
            "burstgpt",
        ),
        (
            "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n",
            "burstgpt",
        ),
        ('\ufeff{"messages": []}', "chat_jsonl"),
        ('  \n {"id": 1, "deep": {"requests": [], "block_size": 1}, "messages": [', "chat_jsonl"),
        ('{"text": "a \\" } {", "messages": []}', "chat_jsonl"),
    ],
)
def test_lists_tables_and_cut_off_heads_are_told(tmp_path: Path, text: str, name: str) -> None:
    file = tmp_path / "file"
    file.write_text(text, encoding="utf-8")
    assert guess_format([file]) == name


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"prompt": "x", "deep": {"messages": []}}', "its first record has: deep, prompt"),
        (b"\x00\xff\x1f\x8b binary", r"is not UTF-8 text \(byte 1\); is it compressed"),
        (b"\x1f\x8b\x08\x00 gzip", r"is not UTF-8 text \(byte 1\); is it compressed"),
        ('{"messages": []}'.encode("utf-16-le"), r"is not UTF-8 text \(byte 1\)"),
        (b"  \n", "is empty"),
        (b"[]", "nothing readable"),
    ],
)
def test_what_cannot_be_told_is_said_with_the_formats(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "odd.json"
    file.write_bytes(content)
    with pytest.raises(WorkloadError, match=words) as caught:
        guess_format([file])
    assert str(file) in str(caught.value)


def test_files_of_two_formats_are_not_one_workload(tmp_path: Path) -> None:
    one, two = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    one.write_text(json.dumps(LINES["mooncake"]))
    two.write_text(json.dumps(LINES["chat_jsonl"]))
    with pytest.raises(WorkloadError, match=r"a\.jsonl looks like mooncake and .*b\.jsonl like chat_jsonl"):
        guess_format([one, two])
    assert guess_format([one, one]) == "mooncake"


@pytest.mark.skipif(not DATA.is_dir(), reason="the public traces are not here")
@pytest.mark.parametrize(
    ("pattern", "count", "name"),
    [
        ("mooncake/*.jsonl", 1, "mooncake"),
        ("weka/*.json", 7, "weka"),
        ("spec_bench/*.jsonl", 1, "spec_bench"),
        ("swe_agent/*.traj", 8, "swe_agent"),
    ],
)
def test_the_public_traces_are_told(pattern: str, count: int, name: str) -> None:
    files = sorted(DATA.glob(pattern))
    assert len(files) == count
    assert guess_format(files) == name
