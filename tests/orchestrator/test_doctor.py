"""Doctor's probes: each says what it found, and stands on its own."""

import sqlite3

from orchestrator.doctor import MISSING, NOTE, OK, examine


def by_name(results):
    return {finding.what: finding for finding in examine(results)}


def test_findings(tmp_path):
    found = by_name(tmp_path)
    assert found["ray"].state == OK
    assert found["engine=emulator"].detail.startswith("emulated")
    assert found["MLflow store"].state == NOTE
    assert "CPU" in found["host"].detail


def test_whatever_is_missing_has_a_remedy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    missing = [finding for finding in examine(tmp_path) if finding.state == MISSING]
    assert missing
    assert all(finding.remedy for finding in missing)
    remedies = {finding.what: finding.remedy for finding in missing}
    assert "make engine-env" in remedies["engine=vllm_cpu"]
    assert "make models" in remedies["model=smollm2"]


def test_a_store_is_counted_and_a_damaged_one_named(tmp_path):
    store = tmp_path / "mlflow.db"
    connection = sqlite3.connect(store)
    connection.execute("CREATE TABLE runs (id TEXT)")
    connection.execute("INSERT INTO runs VALUES ('a')")
    connection.commit()
    connection.close()
    assert by_name(tmp_path)["MLflow store"].detail.endswith("1 run")
    store.write_text("not a database at all, whatever its name says " * 100)
    found = by_name(tmp_path)["MLflow store"]
    assert found.state == MISSING
    assert str(store) in found.detail
