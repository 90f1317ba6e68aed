"""JSON files entry by entry: whatever their form, with the place of what is wrong."""

import json
import tracemalloc
from pathlib import Path

import pytest

from jobs.errors import WorkloadError
from jobs.workload.json_file import json_entries, json_lines

BOM = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    ("data", "values"),
    [
        (b'{"a": 1}\n{"a": 2}\n', [{"a": 1}, {"a": 2}]),
        (b'{"a": 1}\r\n\r\n{"a": 2}', [{"a": 1}, {"a": 2}]),
        (BOM + b'{"a": 1}\n', [{"a": 1}]),
        (b'\n\n {"a":\n 1}\n', [{"a": 1}]),
        (b'[{"a": 1}, 2.5, "x", null]', [{"a": 1}, 2.5, "x", None]),
        (BOM + b'\n [ {"a": 1} ]\n', [{"a": 1}]),
        (b"[]", []),
        ('{"a": "b\u2028c"}\n{"a": 1}'.encode(), [{"a": "b\u2028c"}, {"a": 1}]),
    ],
)
def test_entries_of_every_form(tmp_path: Path, data: bytes, values: list[object]) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(data)
    assert [value for _, value in json_entries(path)] == values


def test_numbers_stay_plain(tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text("[[1, 1.5]]")
    [(where, value)] = json_entries(tmp_path / "f.json")
    assert [type(number) for number in value] == [int, float]
    assert where.endswith("f.json, entry 1")


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "is empty"),
        (b" \n ", "is empty"),
        (BOM, "is empty"),
        (b'[{"a": 1}, {"a"', "after entry 1: the JSON is truncated"),
        (b'[{"a": 1} {"a": 1}]', "after entry [01]: not JSON"),
        (b'[{"a": "\xff"}]', "after entry 0: not JSON"),
        (b'{"a": 1}\n{"a": \n', "line 2: the JSON is truncated"),
        (b'{"a": 1}\n{"a": "\xff"}\n', r"not UTF-8 text \(byte 16\)"),
        (b'{"a":\n', "the JSON is truncated"),
        (b"role,content", "line 1: not JSON"),
        (b'{"a": ' + b"[" * 200_000, "line 1: the JSON is nested too deeply"),
        (b'{"a": ' + b"9" * 6000 + b"}\n", "line 1: a number has too many digits"),
        (b'[1, {"a": ' + b"9" * 6000 + b"}]", "after entry 1: not JSON .*integer overflow"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, data: bytes, found: str) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(data)
    with pytest.raises(WorkloadError, match=found):
        list(json_entries(path))


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"none\.json does not exist"):
        list(json_entries(tmp_path / "none.json"))
    with pytest.raises(WorkloadError, match="cannot be read"):
        list(json_lines(tmp_path))


@pytest.mark.parametrize("form", ["array", "lines"])
def test_memory_is_that_of_an_entry_and_not_of_the_file(tmp_path: Path, form: str) -> None:
    path = tmp_path / "file.json"
    entry = json.dumps({"text": "x" * 20_000})
    path.write_text(f"[{','.join([entry] * 500)}]" if form == "array" else "\n".join([entry] * 500))
    assert path.stat().st_size > 10_000_000
    tracemalloc.start()
    try:
        assert sum(1 for _ in json_entries(path)) == 500
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000
