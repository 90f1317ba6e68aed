"""A recording by real vLLM on the CPU: both turns, natural ends, the reply as history."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from engines.vllm import VllmEngine
from jobs.workload.conversation import RECORDED, Turn
from jobs.workload.formats import load_workload
from jobs.workload.recorded import read_header
from jobs.workload.tokenizer import FolderTokenizer
from tests.cluster.conftest import SPECLOAD
from tests.real_engine.conftest import ROOT

pytestmark = [pytest.mark.real_engine, pytest.mark.timeout(900)]

CAP = 48
"""Longest reply, in tokens."""

QUESTIONS = (
    {"question_id": 1, "category": "writing", "turns": ["Write a haiku about queues.", "Now one on caches."]},
    {"question_id": 2, "category": "math", "turns": ["What is 12 times 12?", "And minus 3?"]},
)


@pytest.fixture
def chat_model() -> Path:
    folder = ROOT / ".cache" / "models" / "smollm2-135m-instruct"
    if not (folder / "config.json").exists():
        pytest.skip("no chat model: run `make models`")
    return folder


def test_two_questions_of_two_turns(tmp_path: Path, vllm_python: str, chat_model: Path) -> None:
    (tmp_path / "question.jsonl").write_text("\n".join(map(json.dumps, QUESTIONS)))
    words = (
        "engine=vllm_cpu",
        f"engine.python={vllm_python}",
        "model=smollm2",
        f"model.path={chat_model}",
        "workload=spec_bench",
        "workload.paths=[question.jsonl]",
        f"workload.max_output_tokens={CAP}",
        "load.concurrency=2",
    )
    done = subprocess.run(
        [str(SPECLOAD), "workload", "record", *words, "--output", "out.jsonl"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "emulated" not in done.stdout
    header = read_header(tmp_path / "out.jsonl")
    assert header.complete
    assert (header.turns, header.validity) == (4, RECORDED)
    assert (header.identity.engine, header.identity.engine_version) == (
        "vllm",
        VllmEngine().version(vllm_python),
    )
    tokenizer = FolderTokenizer(chat_model)
    assert header.identity.tokenizer == tokenizer.digest
    assert header.finish_reasons.get("stop"), "the model ends at least one reply by itself"
    workload = load_workload(name="w", format="recorded", paths=[tmp_path / "out.jsonl"])
    stated = [json.loads(line)["turns"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    for conversation, ends in zip(workload.conversations, stated, strict=True):
        assert len(conversation.turns) == 2
        for turn, end in zip(conversation.turns, ends, strict=True):
            assert isinstance(turn, Turn)
            assert turn.reply
            assert turn.output_tokens is not None
            assert 1 < turn.output_tokens <= CAP
            assert turn.output_tokens == CAP or end["finish_reason"] == "stop"
    lengths = [end["output_tokens"] for ends in stated for end in ends]
    assert sum(lengths) == header.output_tokens
    # the text alone does not tell: the model need not spell it as the tokenizer does
    replies = [
        turn.reply for entry in workload.conversations for turn in entry.turns if isinstance(turn, Turn)
    ]
    assert lengths != [len(tokenizer.encode(reply or "")) for reply in replies]
