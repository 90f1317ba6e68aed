"""Provenance: complete enough, and free of secrets."""

import json
import subprocess
from importlib.metadata import version

from orchestrator.provenance import checkout, fingerprint, packages, write_provenance

SECRET = "hunter2-do-not-record"


def test_fingerprint_has_versions_and_host():
    found = fingerprint()
    assert found["specload"] == version("specload")
    assert found["packages"]["ray"] == version("ray")
    assert found["host"]["cores"] >= 1
    assert found["host"]["memory_gib"] > 0
    assert isinstance(found["gpus"], list)


def test_no_secret_is_recorded(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", SECRET)
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", SECRET)
    assert SECRET not in write_provenance(tmp_path).read_text()


def test_a_run_that_goes_on_adds_to_the_record(tmp_path):
    write_provenance(tmp_path)
    path = write_provenance(tmp_path)
    assert len(json.loads(path.read_text())["runs"]) == 2
    path.write_text("{damaged")
    assert len(json.loads(write_provenance(tmp_path).read_text())["runs"]) == 1


def test_packages_are_sorted_names():
    names = [name.lower() for name in packages()]
    assert names == sorted(names)
    assert "hydra-core" in names


def git(folder, *words):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", *identity, "-C", str(folder), *words], check=True, capture_output=True)


def test_checkout(tmp_path):
    assert checkout(tmp_path) is None
    git(tmp_path, "init", "-q")
    git(tmp_path, "remote", "add", "origin", f"https://user:{SECRET}@example.org/x.git")
    (tmp_path / "a").write_text("1")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-qm", "first")
    clean = checkout(tmp_path)
    assert clean is not None
    assert len(clean["commit"]) == 40
    assert clean["modified"] is False
    (tmp_path / "a").write_text("2")
    changed = checkout(tmp_path)
    assert changed is not None
    assert changed["modified"] is True
    assert len(changed["changes_digest"]) == 64
    assert SECRET not in json.dumps(changed)
