"""The folder of `vllm bench sweep serve`: which server a run was of, and which starts it shared."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.others.comparison import compare
from analysis.others.reading import read_runs
from analysis.others.server import server_facts
from analysis.verdict import UNDECIDED, WINS

Make = Callable[..., dict[str, Any]]
CONFIG = {"method": "eagle3", "num_speculative_tokens": 3}


def write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


@pytest.fixture
def experiment(tmp_path: Path, make_vllm: Make, make_drafted: Make) -> Path:
    """Two servers of TP 2, with and without a drafter, two levels and three runs each; one run failed."""
    folder = tmp_path / "20261130_070000"
    for level in (4, 16):
        for number in range(3):
            scatter = 1.0 + 0.001 * number
            common = {"max_concurrency": level, "run_number": number, "tensor_parallel_size": 2}
            base = make_vllm(**common, num_prompts=64, completed=64, total_token_throughput=1000.0 * scatter)
            place = folder / f"SERVE--tensor_parallel_size=2-BENCH--max_concurrency={level}"
            write(place / f"run={number}.json", base)
            text = f"tensor_parallel_size=2-speculative_config={CONFIG}"
            place = folder / f"SERVE--{text}-BENCH--max_concurrency={level}"
            arm = make_drafted(**common, num_prompts=64, completed=64, speculative_config=CONFIG)
            write(place / f"run={number}.json", arm | {"total_token_throughput": 1300.0 / scatter})
        write(place / "summary.json", [arm] * 3)
        write(place / "warmup.json", make_drafted(run_number=-1))
    failure = {
        "run_number": 0, "error_type": "CalledProcessError", "error": "exit status 1",
        "serve_overrides": {"tensor_parallel_size": 2, "speculative_config": CONFIG},
        "bench_overrides": {"max_concurrency": 64},
    }  # fmt: skip
    write(folder / f"SERVE--{text}-BENCH--max_concurrency=64" / "run=0.failure.json", failure)
    (folder / "summary.csv").write_text("x\n", encoding="utf-8")
    return folder


def test_each_run_once_with_its_server(experiment: Path) -> None:
    found = read_runs([experiment]).runs
    assert len(found) == 13
    assert {(run.drafter, run.k, run.layout) for run in found} == {("none", 0, "tp2"), ("eagle3", 3, "tp2")}
    assert len({run.start for run in found}) == 2
    (failed,) = [run for run in found if run.failure]
    assert (failed.level, failed.failure) == (64.0, "CalledProcessError: exit status 1")


def test_runs_of_one_start_decide_nothing_unless_trusted(experiment: Path) -> None:
    summary = compare([experiment])
    assert [row.label for row in summary.rows] == ["tp2/eagle3-k3"] * 3
    assert [row.verdict for row in summary.rows[:2]] == [UNDECIDED] * 2
    told = summary.rows[0].reason
    assert told.startswith("no interval: all runs of the arm and of the baseline used one start")
    assert summary.rows[0].total is not None
    assert summary.rows[0].total.lo is None
    trusted = compare([experiment], trust_repeats=True)
    assert [row.verdict for row in trusted.rows[:2]] == [WINS] * 2
    assert summary.outcomes["failed"] == 1


def test_starts_of_several_experiments_are_replicates(experiment: Path) -> None:
    for number in (2, 3):
        for path in experiment.rglob("run=*.json"):
            document = json.loads(path.read_text())
            if "total_token_throughput" in document:
                document["total_token_throughput"] *= 1.0 + 0.002 * number
            write(experiment.parent / f"again{number}" / path.relative_to(experiment), document)
    (row, *_) = compare([experiment.parent]).rows
    assert (row.verdict, row.blocks) == (WINS, 3)


def test_a_failed_level_is_told(experiment: Path) -> None:
    *_, row = compare([experiment]).rows
    assert (row.level, row.verdict) == (64.0, "invalid")
    assert row.reason == "no run of its baseline (tp2) at this level"


@pytest.mark.parametrize(
    ("document", "server", "expected"),
    [
        ({"speculative_config": json.dumps(CONFIG)}, "", ("eagle3", 3, "", "")),
        ({"speculative_config.method": "ngram", "speculative_config.num_speculative_tokens": 4}, "",
         ("ngram", 4, "", "")),
        ({"speculative-config": {"model": "small", "num_speculative_tokens": 2}}, "",
         ("draft_model", 2, "", "")),
        ({"max_num_seqs": 32, "block-size": 16, "max_concurrency": 8}, "max_num_seqs=32-block-size=16",
         ("none", 0, "", "block_size=16, max_num_seqs=32")),
        ({"tp": "2", "data_parallel_size": 4, "drafter": "none"}, "", ("none", 0, "tp2-dp4", "")),
        ({"label": "x"}, "", (None, 0, "", "")),
        ({"speculative_config": "not json"}, "", (None, 0, "", "")),
    ],
)  # fmt: skip
def test_what_a_result_tells_of_its_server(
    document: dict[str, Any], server: str, expected: tuple[str | None, int, str, str]
) -> None:
    facts = server_facts(document, server)
    assert (facts.drafter, facts.k, facts.layout, facts.flags) == expected
