"""The ledger: atomic, checksummed, one writer, and honest about what it cannot count."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.result import FAILED, TREATMENT, CellResult
from orchestrator.errors import LedgerError
from orchestrator.ledger import Ledger
from orchestrator.manifest import examine
from orchestrator.pending import pending
from orchestrator.plan import Plan
from tests.orchestrator.conftest import outcomes


def cells(plan: Plan) -> list[CellResult]:
    return [result for segment in pending(plan, []) for result in outcomes(plan, segment)]


def fill(root: Path, plan: Plan, *, count: int = 4) -> list[Path]:
    """Record some cells, and return their folders."""
    with Ledger(root, plan) as ledger:
        return [ledger.record(each, {"rows": b"rows"}).directory for each in cells(plan)[:count]]


def test_a_cell_comes_back_as_it_was_recorded(tmp_path: Path, small_plan: Plan) -> None:
    result = cells(small_plan)[0]
    with Ledger(tmp_path, small_plan) as ledger:
        recorded = ledger.record(result, {"requests.parquet": b"rows"})
        assert (recorded.directory / "requests.parquet").read_bytes() == b"rows"
        assert recorded.result == replace(result, sequence=1)
        assert ledger.results() == [recorded.result]
    with Ledger(tmp_path, small_plan) as again:
        assert again.results() == [recorded.result]
        assert again.aside == []


def test_order_is_that_of_recording_whatever_the_clock_says(tmp_path: Path, small_plan: Plan) -> None:
    """A clock that is set back labels later cells with earlier times."""
    days = ["2026-05-05", "2026-05-04", "1970-01-01", "2026-05-06"]
    results = [
        replace(result, started=f"{day}T00:00:00+00:00")
        for result, day in zip(cells(small_plan), days, strict=False)
    ]
    with Ledger(tmp_path, small_plan) as ledger:
        for result in results[:3]:
            ledger.record(result, {})
    with Ledger(tmp_path, small_plan) as ledger:
        ledger.record(results[3], {})
        assert [result.cell for result in ledger.results()] == [result.cell for result in results]
    with Ledger(tmp_path, small_plan) as ledger:
        assert [result.started[:10] for result in ledger.results()] == days
        assert [result.sequence for result in ledger.results()] == [1, 2, 3, 4]


def test_what_a_kill_left_half_written_is_no_result(tmp_path: Path, small_plan: Plan) -> None:
    with Ledger(tmp_path, small_plan) as ledger:
        half = ledger.directory / "cells" / ".tmp-x"
        half.mkdir()
        (half / "result.json").write_text("{")
    with Ledger(tmp_path, small_plan) as ledger:
        assert ledger.results() == []
        assert not half.exists()


def truncate(folder: Path) -> None:
    path = folder / "result.json"
    path.write_bytes(path.read_bytes()[:100])


def alter(folder: Path) -> None:
    path = folder / "result.json"
    path.write_text(path.read_text().replace('"measured"', '"invalid"'))


def lose(folder: Path) -> None:
    (folder / "rows").unlink()


def alter_rows(folder: Path) -> None:
    (folder / "rows").write_bytes(b"r0ws")


def forge(folder: Path) -> None:
    """Alter a file and its checksum, but not the seal over the checksums."""
    path = folder / "manifest.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "files": {"result.json": content["files"]["result.json"]}}))


def unmark(folder: Path) -> None:
    (folder / "manifest.json").unlink()


def cut_manifest(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_bytes(path.read_bytes()[:-9])


def rename(folder: Path) -> None:
    shutil.copytree(folder, folder.with_name("another"))
    shutil.rmtree(folder)


def flatten(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("notes")


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (truncate, "its result.json is truncated or altered"),
        (alter, "its result.json is truncated or altered"),
        (alter_rows, "its rows is truncated or altered"),
        (lose, "its rows cannot be read"),
        (forge, "its manifest.json was altered"),
        (unmark, "it has no manifest.json"),
        (cut_manifest, "its manifest.json cannot be read"),
        (rename, "under another name"),
        (flatten, "it is no folder of a cell"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_what_is_not_as_it_was_written_is_set_aside_by_name(
    tmp_path: Path, small_plan: Plan, harm: Callable[[Path], None], words: str
) -> None:
    folders = fill(tmp_path, small_plan)
    harm(folders[1])
    with Ledger(tmp_path, small_plan) as ledger:
        (moved,) = ledger.aside
        assert words in moved.reason
        assert moved.name == f"cells/{'another' if harm is rename else folders[1].name}"
        kept = ledger.directory / moved.kept
        assert kept.exists(), "nothing is deleted"
        assert kept.parent == ledger.directory / "aside"
        assert [result.cell for result in ledger.results()] == [
            folder.name for index, folder in enumerate(folders) if index != 1
        ]
        notes = (ledger.directory / "aside" / "reasons.jsonl").read_text().splitlines()
        assert json.loads(notes[0])["reason"] == moved.reason
        # And it is measured again: the sequence goes on, the place is free.
        ledger.record(cells(small_plan)[1], {})
        assert len(ledger.results()) == 4
    with Ledger(tmp_path, small_plan) as ledger:
        assert ledger.aside == []
        assert len(ledger.results()) == 4


def test_a_cell_of_another_plan_is_set_aside(tmp_path: Path, small_plan: Plan) -> None:
    folder = fill(tmp_path, small_plan, count=1)[0]
    other = replace(small_plan, seed=1)
    with Ledger(tmp_path, other) as ledger:
        shutil.copytree(folder, ledger.cell_directory(folder.name))
    with Ledger(tmp_path, other) as ledger:
        (moved,) = ledger.aside
        assert f"another plan (sweep {small_plan.sweep})" in moved.reason
        assert ledger.results() == []
    assert examine(folder, plan=small_plan.digest, cell=folder.name).problem is None


def test_a_strange_file_is_set_aside_and_its_cell_stays(tmp_path: Path, small_plan: Plan) -> None:
    folder = fill(tmp_path, small_plan, count=1)[0]
    (folder / "notes.txt").write_text("mine")
    with Ledger(tmp_path, small_plan) as ledger:
        assert [moved.name for moved in ledger.aside] == [f"cells/{folder.name}/notes.txt"]
        assert (ledger.directory / "aside" / "notes.txt").read_text() == "mine"
        assert len(ledger.results()) == 1


def test_two_things_of_one_name_are_both_kept(tmp_path: Path, small_plan: Plan) -> None:
    folder = fill(tmp_path, small_plan, count=1)[0]
    for content in ("first", "second"):
        (folder / "notes.txt").write_text(content)
        with Ledger(tmp_path, small_plan):
            pass
    kept = sorted((tmp_path / small_plan.sweep / "aside").glob("notes.txt*"))
    assert [path.read_text() for path in kept] == ["first", "second"]


def test_a_plan_of_another_sweep_is_refused_and_a_damaged_one_made_again(
    tmp_path: Path, small_plan: Plan
) -> None:
    with Ledger(tmp_path, small_plan) as ledger:
        path = ledger.directory / "plan.json"
        whole = path.read_bytes()
    path.write_bytes(whole[:50])
    with Ledger(tmp_path, small_plan) as ledger:
        assert [moved.name for moved in ledger.aside] == ["plan.json"]
        assert path.read_bytes() == whole
    path.write_text(json.dumps({**json.loads(whole), "digest": "0" * 64}))
    with pytest.raises(LedgerError, match="belongs to another sweep"):
        Ledger(tmp_path, small_plan).__enter__()
    path.write_bytes(whole)
    with Ledger(tmp_path, small_plan):  # and the refused one left no lock
        pass


def test_a_failed_try_stays_beside_the_next_one(tmp_path: Path, small_plan: Plan) -> None:
    first = next(result for result in cells(small_plan) if result.role == TREATMENT)
    failed = replace(first, outcome=FAILED, cause="died")
    second = replace(first, cell="b0-s1-again", segment=1)
    with Ledger(tmp_path, small_plan) as ledger:
        ledger.record(failed, {"mark": b"first"})
        assert ledger.last_try(second) == replace(failed, sequence=1)
        ledger.record(second, {"mark": b"second"})
    for _ in range(2):
        with Ledger(tmp_path, small_plan) as ledger:
            assert [result.cell for result in ledger.results()] == ["b0-s1-again"]
            assert [(result.cell, result.cause) for result in ledger.earlier()] == [(first.cell, "died")]
            assert ledger.last_try(replace(second, cell="b0-s2", segment=2)) == ledger.results()[0]
            assert ledger.aside == []
    kept = list((tmp_path / small_plan.sweep / "cells").glob(".earlier-*/mark"))
    assert [path.read_bytes() for path in kept] == [b"first"]


def test_of_a_copy_with_a_try_and_the_next_one_the_last_counts(tmp_path: Path, small_plan: Plan) -> None:
    first = next(result for result in cells(small_plan) if result.role == TREATMENT)
    with Ledger(tmp_path, small_plan) as ledger:
        former = ledger.record(replace(first, outcome=FAILED, cause="died"), {"mark": b"first"}).directory
        shutil.copytree(former, tmp_path / "copy")
        ledger.record(replace(first, cell="b0-s1-again", segment=1), {})
        (beside,) = former.parent.glob(".earlier-*")

    shutil.rmtree(beside)  # copied before the next one came, and not after
    shutil.copytree(tmp_path / "copy", former)
    with Ledger(tmp_path, small_plan) as ledger:
        assert [result.cell for result in ledger.results()] == ["b0-s1-again"]
        assert [result.cell for result in ledger.earlier()] == [first.cell]
        assert (beside / "mark").read_bytes() == b"first"
        assert ledger.aside == []

    shutil.copytree(tmp_path / "copy", former)  # copied before, and after
    with Ledger(tmp_path, small_plan) as ledger:
        assert [result.cell for result in ledger.results()] == ["b0-s1-again"]
        assert [result.cell for result in ledger.earlier()] == [first.cell]
        assert [moved.reason for moved in ledger.aside] == ["it is a second copy of a replaced try"]
        assert not former.exists()


def test_a_try_that_lies_beside_already_is_replaced_once_more(tmp_path: Path, small_plan: Plan) -> None:
    first = next(result for result in cells(small_plan) if result.role == TREATMENT)
    with Ledger(tmp_path, small_plan) as ledger:
        former = ledger.record(replace(first, outcome=FAILED, cause="died"), {}).directory
    # a kill came before the second try was written, and a copy brought the first one back
    shutil.copytree(former, former.with_name(f".earlier-000002-{first.cell}"))
    with Ledger(tmp_path, small_plan) as ledger:
        ledger.record(replace(first, cell="b0-s1-again", segment=1), {})
        assert not former.exists()
        assert [moved.name for moved in ledger.aside] == [f"cells/{first.cell}"]
    with Ledger(tmp_path, small_plan) as ledger:
        assert [result.cell for result in ledger.results()] == ["b0-s1-again"]
        assert [result.cell for result in ledger.earlier()] == [first.cell]


def test_the_same_cell_again_keeps_what_it_was(tmp_path: Path, small_plan: Plan) -> None:
    result = cells(small_plan)[0]
    with Ledger(tmp_path, small_plan) as ledger:
        ledger.record(result, {"mark": b"first"})
        ledger.record(result, {"mark": b"second"})
        earlier = list((ledger.directory / "cells").glob(".earlier-*/mark"))
        assert [path.read_bytes() for path in earlier] == [b"first"]
        assert len(ledger.results()) == 1


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, small_plan: Plan) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(LedgerError, match="cannot be written"):
        Ledger(blocked, small_plan).__enter__()


def test_a_write_that_fails_leaves_nothing_half_written(tmp_path: Path, small_plan: Plan) -> None:
    first, second = cells(small_plan)[:2]
    with Ledger(tmp_path, small_plan) as ledger:
        ledger.record(first, {})
        folder = ledger.directory / "cells"
        folder.rename(folder.with_name("gone"))
        folder.write_text("no folder any more")
        with pytest.raises(OSError, match="Not a directory"):
            ledger.record(second, {"rows": b"rows"})
        folder.unlink()
        folder.with_name("gone").rename(folder)
        assert [path.name for path in folder.iterdir()] == [first.cell]
        ledger.record(second, {"rows": b"rows"})
        assert [result.sequence for result in ledger.results()] == [1, 2]
