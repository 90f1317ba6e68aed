"""A recording's file: what was appended stays, another recording is never mixed in, the end is the same."""

from dataclasses import replace
from pathlib import Path

import pytest

from jobs.workload.conversation import Conversation, Message, Turn
from jobs.workload.formats import load_workload
from jobs.workload.recorded import Recording, header_path, read_header
from orchestrator.errors import ConfigError, RecordingError
from orchestrator.recording_file import RecordingFile
from tests.jobs.workload.test_recorded import header

HEADER = header(complete=False, wanted=3, finish_reasons={})
ORDER = ["a", "b", "c"]


def recording(name: str, *, shortened: str | None = None) -> Recording:
    turn = Turn(messages=(Message(role="user", content=name),), reply=f"to {name}", output_tokens=3)
    return Recording(
        conversation=Conversation(id=name, turns=(turn,)), finish_reasons=("stop",), shortened=shortened
    )


def test_the_end_is_in_order_whatever_came_first(tmp_path: Path) -> None:
    contents = []
    for number, names in enumerate((["c", "a", "b"], ["b", "c", "a"])):
        path = tmp_path / f"{number}.jsonl"
        with RecordingFile(path, HEADER) as file:
            for name in names:
                file.append(recording(name))
            end = file.finish(ORDER)
        assert (end.complete, end.turns, end.output_tokens) == (True, 3, 9)
        assert end.finish_reasons == {"stop": 3}
        contents.append(path.read_bytes())
    assert contents[0] == contents[1]
    loaded = load_workload(name="w", format="recorded", paths=[tmp_path / "0.jsonl"])
    assert [conversation.id for conversation in loaded.conversations] == ORDER


def test_it_goes_on_after_a_line_that_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with RecordingFile(path, HEADER) as file:
        file.append(recording("b"))
        file.append(recording("a"))
    path.write_bytes(path.read_bytes()[:-9])
    with RecordingFile(path, replace(HEADER, date="2032-01-01T00:00:00+00:00")) as file:
        assert file.done == {"b"}
        assert file.header.date == HEADER.date
        file.drop("a", "left out: too long")
    with RecordingFile(path, HEADER) as file:
        assert file.done == {"a", "b"}
        file.append(recording("c", shortened="ends after 1 of 2 turns: x"))
        end = file.finish(ORDER)
    assert end.dropped == (("a", "left out: too long"), ("c", "ends after 1 of 2 turns: x"))
    assert read_header(path) == end
    with RecordingFile(path, HEADER) as file:
        assert file.header.complete


def test_another_recording_is_not_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with RecordingFile(path, HEADER) as file:
        file.append(recording("a"))
    before = path.read_bytes()
    other = replace(HEADER, identity=replace(HEADER.identity, temperature=0.7, model="big"))
    with (
        pytest.raises(ConfigError, match=r"model 'tiny' there, 'big' now; temperature 0\.0 there, 0\.7 now"),
        RecordingFile(path, other),
    ):
        pass
    assert path.read_bytes() == before


def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text("mine")
    for place, found in (
        (path, "is no recording"),
        (tmp_path, "is a folder"),
        (tmp_path / "none" / "r.jsonl", "does not exist"),
    ):
        with pytest.raises(ConfigError, match=found), RecordingFile(place, HEADER):
            pass
    assert path.read_text() == "mine"
    header_path(path).write_text("{}")
    with pytest.raises(ConfigError, match="cannot be gone on with"), RecordingFile(path, HEADER):
        pass
    assert path.read_text() == "mine"


def test_a_complete_file_that_was_touched_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with RecordingFile(path, HEADER) as file:
        file.append(recording("a"))
        file.finish(ORDER)
    path.unlink()
    with pytest.raises(ConfigError, match="is not what was recorded any more"), RecordingFile(path, HEADER):
        pass


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with RecordingFile(path, HEADER) as file:
        file.append(recording("a"))
        with pytest.raises(ConfigError, match="is being written by another"), RecordingFile(path, HEADER):
            pass


def test_nothing_recorded_is_an_error(tmp_path: Path) -> None:
    with RecordingFile(tmp_path / "r.jsonl", HEADER) as file:
        file.drop("a", "left out: too long")
        with pytest.raises(RecordingError, match=r"not one of 3 .* \(the first: a: left out: too long\)"):
            file.finish(ORDER)
    assert not read_header(tmp_path / "r.jsonl").complete
