"""Bringing results back: from a URL, checked cell by cell."""

import json
import shutil
from dataclasses import replace

import pytest

from jobs.result import TREATMENT
from orchestrator import cli
from orchestrator.cleaning import cleaned_files, cleaned_result
from orchestrator.errors import FetchError
from orchestrator.fetch import fetch_url
from orchestrator.ledger import Ledger
from orchestrator.manifest import MANIFEST, make_manifest
from orchestrator.mirror import Mirror
from orchestrator.pending import pending
from orchestrator.remote import RemoteFolder
from tests.orchestrator.conftest import outcomes

SECRET = "hunter2-Zq81-marker"


@pytest.fixture
def measured(small_plan, tmp_path):
    """A sweep of two blocks in a results folder, and its copy at a URL."""
    results = tmp_path / "work"
    with (
        Mirror((tmp_path / "bucket").as_uri(), results / small_plan.sweep, say=lambda _: None, interval=9),
        Ledger(results, small_plan) as ledger,
    ):
        for segment in pending(small_plan, []):
            for result in outcomes(small_plan, segment):
                ledger.record(result, {"requests.parquet": b"rows"})
    return results / small_plan.sweep


def test_a_sweep_comes_back_whole_and_again_only_what_is_new(small_plan, measured, tmp_path):
    remote = RemoteFolder.at((tmp_path / "bucket").as_uri()).child(small_plan.sweep)
    fetched = fetch_url(remote, tmp_path / "here")
    cells = sorted((measured / "cells").iterdir())
    assert fetched.folder == tmp_path / "here" / small_plan.sweep
    assert (fetched.cells, fetched.unfinished) == (len(cells), 0)
    for cell in cells:
        for file in cell.iterdir():
            assert (fetched.folder / "cells" / cell.name / file.name).read_bytes() == file.read_bytes()
    shutil.rmtree(fetched.folder / "cells" / cells[0].name)
    again = fetch_url(remote, tmp_path / "here")
    assert again.cells == len(cells)
    assert (fetched.folder / "cells" / cells[0].name / "manifest.json").exists()


def test_a_damaged_copy_here_is_brought_again_and_one_at_the_source_is_named(small_plan, measured, tmp_path):
    remote = RemoteFolder.at((tmp_path / "bucket").as_uri()).child(small_plan.sweep)
    folder = fetch_url(remote, tmp_path / "here").folder
    first, second, *_ = sorted(path.name for path in (measured / "cells").iterdir())
    (folder / "cells" / first / "requests.parquet").write_bytes(b"cut")
    fetch_url(remote, tmp_path / "here")
    assert (folder / "cells" / first / "requests.parquet").read_bytes() == b"rows"

    source = tmp_path / "bucket" / small_plan.sweep / "cells"
    (source / first / "requests.parquet").write_bytes(b"cut")
    (source / second / "manifest.json").unlink()  # as if it were being copied now
    with pytest.raises(FetchError, match=rf"damaged cells at .*{first}: its requests\.parquet is truncated"):
        fetch_url(remote, tmp_path / "fresh")
    assert not (tmp_path / "fresh" / small_plan.sweep / "cells" / first).exists()
    shutil.rmtree(source / first)
    assert fetch_url(remote, tmp_path / "other").unfinished == 1


def test_a_try_that_was_fetched_gives_way_to_the_next_one(small_plan, measured, tmp_path):
    bucket, there = (tmp_path / "bucket").as_uri(), measured.parent
    remote = RemoteFolder.at(bucket).child(small_plan.sweep)
    before = fetch_url(remote, tmp_path / "here")
    with (
        Mirror(bucket, measured, say=lambda _: None, interval=9),
        Ledger(there, small_plan) as ledger,
    ):
        first = next(result for result in ledger.results() if result.role == TREATMENT)
        ledger.record(replace(first, cell="b0-s1-again", segment=1), {})
    shutil.copytree(measured / "cells", tmp_path / "source")
    for _ in range(2):
        after = fetch_url(remote, tmp_path / "here")
        assert after.cells == before.cells
        cells = {path.name for path in (after.folder / "cells").iterdir()}
        assert cells == {path.name for path in (tmp_path / "source").iterdir()}
        assert f".earlier-{before.cells + 1:06d}-{first.cell}" in cells
    # the source was read between the copying of the one name and the removal of the other
    shutil.copytree(
        after.folder / "cells" / f".earlier-{before.cells + 1:06d}-{first.cell}",
        tmp_path / "bucket" / small_plan.sweep / "cells" / first.cell,
        dirs_exist_ok=True,
    )
    assert fetch_url(remote, tmp_path / "here").cells == before.cells


def test_a_cell_of_a_later_version_is_brought_as_it_is(small_plan, measured, tmp_path):
    cell = min((tmp_path / "bucket" / small_plan.sweep / "cells").iterdir())
    files = {path.name: path.read_bytes() for path in cell.iterdir() if path.name != MANIFEST}
    files["result.json"] = json.dumps(json.loads(files["result.json"]) | {"schema": 99}).encode()
    seal = make_manifest(files, sweep=small_plan.sweep, plan=small_plan.digest, cell=cell.name)
    for name, content in {**files, MANIFEST: seal}.items():
        (cell / name).write_bytes(content)
    remote = RemoteFolder.at((tmp_path / "bucket").as_uri()).child(small_plan.sweep)
    fetched = fetch_url(remote, tmp_path / "here")
    assert (fetched.folder / "cells" / cell.name / "result.json").read_bytes() == files["result.json"]


def test_the_folder_of_a_driver_keeps_what_is_newer(small_plan, measured, tmp_path):
    (measured / "summary.json").write_text("newer")
    (tmp_path / "bucket" / small_plan.sweep / "summary.json").write_text("older")
    remote = RemoteFolder.at((tmp_path / "bucket").as_uri()).child(small_plan.sweep)
    fetch_url(remote, measured.parent)
    assert (measured / "summary.json").read_text() == "newer"


def test_no_sweep_at_the_url_is_one_sentence(tmp_path, capsys):
    assert cli.main(["fetch", (tmp_path / "none").as_uri(), "--to", str(tmp_path)]) == 1
    assert "there is no sweep at" in capsys.readouterr().err


def test_what_blocks_report_is_cleaned_before_it_is_written(small_plan, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", SECRET)
    result = outcomes(small_plan, pending(small_plan, [])[0])[0]
    assert cleaned_result(result) is result
    told = replace(
        result,
        reason=f"refused {SECRET}",
        log_tail=f"line\nwith {SECRET}\n",
        caveats=(f"--api-key {SECRET}",),
        identity={"argv": ["vllm", "--api-key", SECRET], "env": {"TOKEN": "another-one"}},
        metrics={"mal": float("nan")},
    )
    clean = cleaned_result(told)
    assert SECRET not in repr(clean)
    assert "another-one" not in repr(clean)
    assert (clean.cell, clean.outcome) == (told.cell, told.outcome)
    raw = {
        "r0-engine.log": f"Bearer {SECRET}\n".encode() + b"\xff\xfe",
        "r0-command.json": json.dumps(
            {"env": {"HF_TOKEN": "x1y2z3"}, "argv": [f"http://u:{SECRET}@h"]}
        ).encode(),
        "requests.parquet": SECRET.encode(),
        "empty.json": b"",
    }
    found = cleaned_files(raw)
    assert SECRET.encode() not in found["r0-engine.log"]
    assert found["r0-engine.log"].endswith(b"\xff\xfe")
    assert json.loads(found["r0-command.json"]) == {"env": {"HF_TOKEN": "***"}, "argv": ["http://***@h"]}
    assert found["requests.parquet"] is raw["requests.parquet"]
