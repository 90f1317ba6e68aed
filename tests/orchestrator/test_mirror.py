"""The copy at a results URL: follows, catches up after a failure, has one owner, gives back what was lost."""

import json
import os
import shutil
import time
from dataclasses import asdict, replace

import pytest

from orchestrator.errors import ConfigError, LedgerError
from orchestrator.ledger import put_beside
from orchestrator.lock import Owner
from orchestrator.mirror import Mirror
from orchestrator.mirror_files import LOCK, OWNER, files_of_sweep, replaced, restore
from orchestrator.mirror_owner import MirrorOwner
from orchestrator.remote import RemoteFolder
from orchestrator.results_root import ResultsRoot
from tests.cluster.conftest import wait_until

QUICK = 0.02


@pytest.fixture
def sweep(tmp_path):
    folder = tmp_path / "work" / "study-0123456789"
    (folder / "cells").mkdir(parents=True)
    (folder / "plan.json").write_text("{}")
    (folder / LOCK).write_text("process 1")
    add_cell(folder, "first")
    return folder


@pytest.fixture
def bucket(tmp_path):
    return tmp_path / "bucket"


def add_cell(folder, name, text="{}"):
    staging = folder / "cells" / f".tmp-{name}"
    staging.mkdir()
    for file in ("result.json", "requests.parquet", "manifest.json"):
        (staging / file).write_text(text)
    staging.rename(folder / "cells" / name)


def follow(bucket, sweep, said=None):
    say = (lambda _: None) if said is None else said.append
    return Mirror(bucket.as_uri(), sweep, say=say, interval=QUICK)


def files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_what_is_recorded_is_copied_while_the_sweep_runs_and_at_its_end(sweep, bucket):
    copy = bucket / sweep.name
    with follow(bucket, sweep):
        add_cell(sweep, "second")
        assert wait_until((copy / "cells/second/manifest.json").exists, seconds=20)
        (sweep / "report.html").write_text("late")
    assert files(copy) == files(sweep) - {LOCK}
    (sweep / "report.html").write_text("changed")
    with follow(bucket, sweep):
        pass
    assert (copy / "report.html").read_text() == "changed"


def test_a_cell_at_the_url_is_whole_once_its_manifest_is_there(sweep, bucket, monkeypatch):
    copied = []
    put = RemoteFolder.put
    monkeypatch.setattr(
        RemoteFolder, "put", lambda self, local, name: (copied.append(name), put(self, local, name))[1]
    )
    add_cell(sweep, "second")
    with follow(bucket, sweep):
        pass
    assert copied[-4:] == [
        f"cells/{cell}/{file}" for file in ("result.json", "manifest.json") for cell in ("first", "second")
    ]
    assert sorted(copied[:-4]) == [
        "cells/first/requests.parquet", "cells/second/requests.parquet", "plan.json"
    ]  # fmt: skip


def test_a_cell_that_a_later_one_replaced_counts_at_the_url_no_more(sweep, bucket):
    copy = bucket / sweep.name
    add_cell(sweep, "damaged")
    with follow(bucket, sweep):
        assert wait_until((copy / "cells/damaged/manifest.json").exists, seconds=20)
        put_beside(sweep / "cells" / "first", 7)
        add_cell(sweep, "second")
        (sweep / "aside").mkdir()
        (sweep / "cells" / "damaged").rename(sweep / "aside" / "damaged")
    cell = ("result.json", "requests.parquet", "manifest.json")
    assert files(copy / "cells") == {
        f"{name}/{file}" for name in (".earlier-000007-first", "second", "damaged") for file in cell
    }, "what was set aside here may be whole there, and is the only copy then"


def test_what_replaced_cells_leave_at_the_url_is_no_cell_while_it_is_removed():
    names = [
        f"cells/{cell}/{file}" for cell in ("a", "ab") for file in ("data", "manifest.json", "result.json")
    ]
    present = {f"cells/.earlier-000002-a/{file}" for file in ("data", "manifest.json", "result.json")}
    assert replaced([*names, *present], present) == [
        "cells/a/manifest.json", "cells/a/result.json", "cells/a/data"
    ]  # fmt: skip
    assert replaced([*names, *present], {*names, *present}) == []


def test_half_written_files_and_links_are_not_copied(sweep, bucket, tmp_path):
    (sweep / "cells" / ".tmp-half").mkdir()
    (sweep / "cells" / ".tmp-half" / "result.json").write_text("{")
    (sweep / ".status.json.part").write_text("{")
    (sweep / "stolen").symlink_to(tmp_path)
    with follow(bucket, sweep):
        pass
    assert files(bucket / sweep.name) == {
        "plan.json",
        *(f"cells/first/{name}" for name in ("result.json", "requests.parquet", "manifest.json")),
    }


def test_a_store_that_fails_costs_a_warning_and_is_caught_up(sweep, bucket, caplog, monkeypatch):
    monkeypatch.setattr("orchestrator.mirror.RETRY_SECONDS", QUICK)
    with follow(bucket, sweep):
        assert wait_until((bucket / sweep.name / "plan.json").exists, seconds=20)
        shutil.move(bucket, bucket.with_name("away"))
        bucket.write_text("no folder any more")  # every write fails now
        add_cell(sweep, "second")
        assert wait_until(lambda: "cannot be copied" in caplog.text, seconds=20)
        bucket.unlink()
        shutil.move(bucket.with_name("away"), bucket)
        assert wait_until(lambda: "copied to" in caplog.text.rpartition("cannot be copied")[2], seconds=20)
    assert (bucket / sweep.name / "cells" / "second" / "manifest.json").exists()
    assert caplog.text.count("cannot be copied") == 1


def test_what_still_lacks_at_the_end_is_said(sweep, bucket, monkeypatch):
    monkeypatch.setattr("orchestrator.mirror.CLOSE_SECONDS", 0.0)
    said = []
    with follow(bucket, sweep, said):
        assert wait_until((bucket / sweep.name / "plan.json").exists, seconds=20)
        shutil.rmtree(bucket)
        bucket.write_text("no folder any more")
        add_cell(sweep, "second")
    assert f"they are in {sweep}" in said[-1]


def test_another_machine_goes_on_from_the_copy(sweep, bucket, tmp_path):
    with follow(bucket, sweep):
        pass
    (bucket / sweep.name / "cells" / "half").mkdir()
    (bucket / sweep.name / "cells" / "half" / "result.json").write_text("{}")
    other = tmp_path / "other" / sweep.name
    said = []
    with follow(bucket, other, said):
        assert files(other) == files(sweep) - {LOCK} | {"cells/half/result.json"}
        (other / "plan.json").write_text("mine")
    assert "files of this sweep brought back" in said[0]
    with follow(bucket, other):  # what is here is never overwritten by the copy
        assert (other / "plan.json").read_text() == "mine"


def test_the_copy_cannot_write_outside_the_sweep(sweep, bucket, tmp_path):
    class Hostile:
        url = "s3://bucket/x"

        def files(self):
            return dict.fromkeys(("../escaped", "/escaped", "cells/../../escaped", "a\0b", "fine"), 1)

        def get(self, name, local):
            local.parent.mkdir(parents=True, exist_ok=True)
            local.write_text(name)

    assert files_of_sweep(Hostile()) == ["fine"]
    assert restore(Hostile(), tmp_path / "inside") == 1
    assert files(tmp_path / "inside") == {"fine"}


def test_a_living_driver_elsewhere_is_not_disturbed_and_a_dead_one_is_followed(bucket):
    remote = RemoteFolder.at(bucket.as_uri())
    (bucket).mkdir()
    owner = asdict(replace(Owner.me(), host="another-host", pid=7))

    def write(beats=1):
        (bucket / OWNER).write_text(json.dumps({"id": "x", "beats": beats, "owner": owner}))

    class Beating(MirrorOwner):
        def _read(self):
            found = super()._read()
            write(beats=time.monotonic_ns())
            return found

    write()
    with pytest.raises(LedgerError, match="process 7 on another-host"):
        Beating(remote, say=lambda _: None, silent_seconds=10).take()
    said = []
    dead = MirrorOwner(remote, say=said.append, silent_seconds=0.1)
    dead.take()
    assert "watching" in said[0]
    assert json.loads((bucket / OWNER).read_text())["owner"]["pid"] == os.getpid()
    write()
    eager = MirrorOwner(remote, say=lambda _: None, take_over=True, silent_seconds=60)
    eager.take()
    dead._renew()
    assert dead.lost
    dead.release()
    assert json.loads((bucket / OWNER).read_text())["owner"]["pid"] == os.getpid()  # the eager one's
    eager.release()
    assert not (bucket / OWNER).exists()


@pytest.mark.parametrize(
    "changes", [{"pid": 2**22 + 1}, {"pid": os.getppid(), "started": 1.0}], ids=["ended", "its number again"]
)
def test_a_driver_of_this_machine_that_is_gone_is_not_waited_for(bucket, changes):
    bucket.mkdir()
    gone = {"id": "x", "beats": 1, "owner": asdict(replace(Owner.me(), **changes))}
    (bucket / OWNER).write_text(json.dumps(gone))
    said = []
    owner = MirrorOwner(RemoteFolder.at(bucket.as_uri()), say=said.append, silent_seconds=60)
    owner.take()
    owner.release()
    assert said == []


@pytest.mark.parametrize(
    ("results", "problem"),
    [
        ("", "give a folder"),
        ("a\0b", "give a folder"),
        ("s3://key:secret-word@bucket/x", "holds a password"),
    ],
)
def test_results_that_are_no_place_are_refused(results, problem):
    with pytest.raises(ConfigError, match=problem):
        ResultsRoot.of(results)


def test_results_at_an_unknown_kind_of_url_say_what_is_known():
    with pytest.raises(ConfigError, match="fsspec here knows"):
        RemoteFolder.at("nosuchstore://bucket/x")


def test_a_folder_needs_no_mirror_and_a_url_has_a_folder_beside_it(tmp_path):
    assert ResultsRoot.of(str(tmp_path)).url is None
    root = ResultsRoot.of("memory://sweeps/", work=tmp_path)
    assert (root.url, root.folder) == ("memory://sweeps", tmp_path)
    with pytest.raises(ConfigError, match="--work"):
        ResultsRoot.of(str(tmp_path), work=tmp_path)


def test_object_storage_that_has_no_folders_works_alike(sweep, tmp_path):
    with Mirror("memory://objects", sweep, say=lambda _: None, interval=QUICK):
        pass
    other = tmp_path / "other" / sweep.name
    with Mirror("memory://objects", other, say=lambda _: None, interval=QUICK):
        assert files(other) == files(sweep) - {LOCK}
