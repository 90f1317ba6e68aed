"""`specload workload record` as a user runs it: complete, interrupted and gone on with, then swept."""

import json
import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from jobs.workload.recorded import read_header
from tests.cluster.conftest import SPECLOAD, Sweeps, engine_tree, lives, wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

WORDS = (
    "workload=spec_bench",
    "workload.paths=[question.jsonl]",
    "workload.max_output_tokens=12",
    "engine.flags.gpu=a10",
    "load.concurrency=2",
)


def start(folder: Path, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [str(SPECLOAD), "workload", "record", *WORDS, *words, "--output", "out.jsonl"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    )


def lines(folder: Path) -> int:
    path = folder / "out.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_an_interrupted_recording_goes_on_and_is_swept(tmp_path: Path, sweeps: Sweeps) -> None:
    rows = [{"question_id": number, "category": "c", "turns": ["Ask.", "Again."]} for number in range(6)]
    (tmp_path / "question.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    slow = start(tmp_path, "+engine.flags.time_scale=4.0")
    assert wait_until(lambda: lines(tmp_path) >= 2 or slow.poll() is not None, seconds=120)
    assert slow.poll() is None, slow.communicate()[0]
    tree = engine_tree(psutil.Process(slow.pid))
    assert tree
    slow.send_signal(signal.SIGINT)
    said = slow.communicate(timeout=60)[0]
    assert slow.returncode == 130, said
    assert wait_until(lambda: not any(map(lives, tree)), seconds=15)
    before = lines(tmp_path)
    assert 2 <= before < 6
    assert not read_header(tmp_path / "out.jsonl").complete
    kept = (tmp_path / "out.jsonl").read_text().splitlines()

    other = start(tmp_path, "+engine.flags.time_scale=0.05")
    assert "holds another recording (arm " in other.communicate(timeout=120)[0]
    assert other.returncode == 2

    again = start(tmp_path, "+engine.flags.time_scale=4.0")
    said = again.communicate(timeout=240)[0]
    assert again.returncode == 0, said
    assert f"{6 - before} of 6 conversations to complete" in said
    assert "emulated engine: the replies are filler" in said
    text = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in text] == [str(number) for number in range(6)]
    assert set(kept) <= set(text), "what was recorded stays as it was"
    header = read_header(tmp_path / "out.jsonl")
    assert header.complete
    assert (header.turns, header.output_tokens) == (12, 144)

    sweeps.common = ()
    code, said = sweeps.run(
        "workload=recorded",
        "workload.paths=[out.jsonl]",
        "engine.flags.gpu=a10",
        "+engine.flags.time_scale=0.5",
        "drafter=eagle3",
        "drafter.k=3",
        "load.concurrency=[1]",
        "design.blocks=1",
        "design.warmup_requests=1",
        "tracking=disabled",
    )
    results = sweeps.results()
    assert sweeps.ended(code), said
    assert {result.identity["validity"] for result in results} == {"synthetic"}
    assert all(result.metrics["tokens/client_output"] % 144 == 0 for result in results)
