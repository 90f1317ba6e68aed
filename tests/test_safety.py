"""What no code of ours does: unpickle files, listen beyond this machine, write outside its folder."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from engines.base import Site
from engines.registry import engine_named
from engines.spec import EngineConfig, Model
from orchestrator import cli
from orchestrator.errors import ConfigError
from orchestrator.ledger import Ledger
from orchestrator.names import check_name, folder_name
from orchestrator.pending import cell_id, pending
from orchestrator.planning import make_plan
from orchestrator.saved import read_plan
from orchestrator.sweep import collect

ROOT = Path(__file__).parents[1]
ROOMS = ("conf", "engines", "jobs", "analysis", "orchestrator", "benchmarks")
LOADERS = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "jsonpickle"}
CALLS = {"load", "loads", "read_pickle", "unsafe_load", "full_load", "load_all"}
HOSTILE = ("../x", "a/../../x", "/etc/x", "a\0b", "x" * 300, "", ".", "..", "a/b", "~/x", "-x", "x\ny")

CONFIGS = {
    "emulator": EngineConfig(
        engine="emulator", version="1", device="emulated", model=Model(name="llama-3.1-8b")
    ),
    "vllm": EngineConfig(
        engine="vllm", version="1", python="/usr/bin/python3", model=Model(name="m", path="m")
    ),
}


def sources():
    return [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


@pytest.mark.parametrize("room", ROOMS)
def test_nothing_is_unpickled(room):
    """Neither by a module for it, nor by a loader of another format that can hold objects."""
    for path in sorted((ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            where = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Import):
                names = {alias.name.partition(".")[0] for alias in node.names}
                assert not names & LOADERS, where
            elif isinstance(node, ast.ImportFrom):
                assert (node.module or "").partition(".")[0] not in LOADERS, where
            elif isinstance(node, ast.keyword):
                assert node.arg != "allow_pickle", where
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                called = (node.value.id, node.attr)
                assert called not in {("np", "load"), ("numpy", "load"), ("pd", "read_pickle")}, where
                if called == ("torch", "load"):
                    assert "weights_only=True" in path.read_text(), where
                if node.value.id == "yaml":
                    assert node.attr not in CALLS, where


def test_the_scan_looks_at_every_room():
    assert len(sources()) > 100


@pytest.mark.parametrize("engine", list(CONFIGS))
def test_an_engine_listens_on_loopback_unless_told_otherwise(engine, tmp_path):
    config = CONFIGS[engine]
    site = Site(port=4242, directory=tmp_path)
    argv = engine_named(engine).command(config, site).argv
    assert argv[argv.index("--host") + 1] == "127.0.0.1"
    told = engine_named(engine).command(config, replace(site, host="10.0.0.7")).argv
    assert told[told.index("--host") + 1] == "10.0.0.7"


@pytest.mark.parametrize("engine", list(CONFIGS))
def test_an_engine_inherits_no_secret_of_ours(engine, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hunter2-marker")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "hunter2-marker")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2-marker")
    config = CONFIGS[engine]
    command = engine_named(engine).command(config, Site(port=4242, directory=tmp_path))
    assert "hunter2-marker" not in repr((command.env, command.argv))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_is_no_folders_is_refused(name):
    with pytest.raises(ValueError, match="it becomes a folder"):
        check_name(name)


@pytest.mark.parametrize("name", HOSTILE)
def test_any_experiment_has_a_folder_inside(name, tmp_path):
    folder = tmp_path / folder_name(name)
    assert folder.resolve().parent == tmp_path.resolve()
    assert folder_name(name) == folder_name(name)
    assert folder_name("study 1.2") == "study 1.2"


def test_hostile_words_leave_nothing_outside_the_results_folder(tmp_path, monkeypatch, capsys):
    inside = tmp_path / "a" / "b" / "c"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    for words in (
        ["name=../../x"],
        ["name=/x"],
        [f"name={'x' * 300}"],
        ["results='a\0b'"],
        ["results="],
    ):
        assert cli.main(["sweep", "workload=short", *words]) == 2, words
        assert capsys.readouterr().err.startswith("specload: ")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.fixture(scope="module")
def hostile_plan():
    words = ("workload=short", "workload.limit=4", "workload.name=../../x", "+engine.env.NAME=../../x")
    return make_plan(collect([*words, "drafter=ngram", "drafter.k=3"])).plan


def test_a_name_too_long_for_the_disk_is_told(hostile_plan, tmp_path):
    with pytest.raises(ValueError, match="cannot be written"), Ledger(tmp_path / ("x" * 300), hostile_plan):
        pass


def test_a_workloads_name_is_no_path(hostile_plan, tmp_path):
    with Ledger(tmp_path / "results", hostile_plan) as ledger:
        assert ledger.directory.parent == tmp_path / "results"
    assert not list(tmp_path.parent.glob("x*"))


def test_cells_are_named_by_digests_never_by_words(hostile_plan):
    for segment in pending(hostile_plan, []):
        for run in segment.runs:
            for level in run.levels:
                cell = cell_id(hostile_plan, segment, run, level)
                assert Path(cell).name == cell
                assert len(cell) < 100


def test_a_folder_with_a_nul_is_told():
    with pytest.raises(ConfigError, match="cannot be read"):
        read_plan(Path("a\0b"))
