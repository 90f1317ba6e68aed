"""Command lines for another machine: what belongs to the measurement's own is a placeholder."""

import json
import sys
from dataclasses import replace

import pytest

from engines.spec import Drafter, EngineConfig, Model
from engines.strategy import Decode
from orchestrator.deployment import recorded, written
from orchestrator.pending import Segment
from tests.orchestrator.conftest import outcomes


@pytest.fixture
def config(tmp_path):
    for name in ("model", "head"):
        (tmp_path / name).mkdir()
    return EngineConfig(
        engine="vllm",
        version="0.32.0",
        model=Model(name="m", path=str(tmp_path / "model"), digest="d"),
        drafter=Drafter(method="eagle3", k=3, model=str(tmp_path / "head"), model_digest="h"),
        python=sys.executable,
        decode=Decode(max_num_seqs=64),
        env={"HF_TOKEN": "hf_" + "a" * 34},
    )


def test_a_command_that_nobody_ran_is_written_by_the_adapter(config, tmp_path):
    found = written(config)
    words = found.line
    assert str(tmp_path) not in words
    assert sys.executable not in words
    assert '"$PYTHON" -m vllm.entrypoints.cli.main serve "$MODEL"' in words
    assert '--host "$HOST" --port "$PORT"' in words
    assert '\\"model\\": \\"$DRAFT_MODEL\\"' in words
    assert set(found.placeholders) == {"PYTHON", "MODEL", "DRAFT_MODEL", "HOST", "PORT"}
    assert found.measured == ""


def test_secrets_and_what_only_a_measurement_needs_stay_behind(config):
    found = written(config)
    assert "VLLM_SERVER_DEV_MODE" not in found.env
    assert "CUDA_VISIBLE_DEVICES" not in found.env
    assert "hf_aaaa" not in json.dumps(found.to_dict())


def test_files_go_into_the_working_folder(config):
    sglang = replace(
        config,
        engine="sglang",
        env={},
        drafter=replace(config.drafter, options={"adaptive_config": {"1": {"candidate_steps": [3]}}}),
    )
    found = written(sglang)
    assert '--speculative-adaptive-config "$FOLDER/adaptive.json"' in found.line
    assert json.loads(found.files["adaptive.json"]) == {"1": {"candidate_steps": [3]}}


def test_a_measured_command_is_the_one_that_ran(small_plan, tmp_path):
    results = outcomes(
        small_plan, Segment(block=small_plan.blocks[0], index=0, runs=small_plan.blocks[0].runs)
    )
    arm = small_plan.arms[1]
    results = [replace(result, identity={"run": f"run-{result.k}"}) for result in results]
    folder = tmp_path / "engines" / "run-3"
    folder.mkdir(parents=True)
    record = {
        "argv": ["/env/bin/python", "-m", "server", "--port", "8123", "--dir", "/tmp/x/r0"],
        "env": {"PATH": "/bin", "MODE": "fast"},
        "files": {"a.yaml": "cache: /tmp/x/r0/cache"},
        "site": {"port": 8123, "directory": "/tmp/x/r0", "host": "127.0.0.1"},
    }
    (folder / "r0-command.json").write_text(json.dumps(record))
    found = recorded(tmp_path, results, arm.config)
    assert found is not None
    assert found.line == 'MODE=fast "$PYTHON" -m server --port "$PORT" --dir "$FOLDER"'
    assert (found.files, found.measured) == ({"a.yaml": "cache: $FOLDER/cache"}, "run-3")
    assert recorded(tmp_path, results, small_plan.arms[2].config) is None  # its record is gone
