"""Files that the tools themselves wrote, of short runs against the emulated engine.

Trimmed of what no reader looks at, of paths and of generated texts; `docs/others.md` has the commands. The
engine answers every request with 48 tokens; the tokenizer of the clients is not the engine's, so their counts
differ from the server's.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from analysis.others.aiperf_tokens import tokens_of
from analysis.others.comparison import compare
from analysis.others.reading import read_runs
from analysis.others.run import OtherRun

EXPORTS = Path(__file__).parent / "exports"
REQUESTS, OUTPUT = 12, 12 * 48


def runs_of(name: str) -> tuple[OtherRun, ...]:
    return read_runs([EXPORTS / name]).runs


def test_vllm_bench_serve() -> None:
    """0.32, `--metadata drafter=... k=...`: the runs tell what served them, K as text."""
    (base,) = runs_of("vllm-0.32-none-c2.json")
    (arm,) = runs_of("vllm-0.32-eagle3-c2.json")
    assert [(run.drafter, run.k, run.level, run.requests) for run in (base, arm)] == [
        ("none", 0, 2.0, REQUESTS),
        ("eagle3", 3, 2.0, REQUESTS),
    ]
    detail = json.loads((EXPORTS / "vllm-0.32-eagle3-c2.json").read_text())
    decode = sum(detail["latencies"]) - sum(detail["ttfts"])
    assert arm.metrics["user/speed_tok_s"] == pytest.approx((OUTPUT - REQUESTS) / decode, rel=1e-3)
    assert arm.metrics["latency/tpot_p50_ms"] == pytest.approx(detail["median_tpot_ms"], rel=1e-3)
    assert arm.metrics["latency/e2el_p95_ms"] == pytest.approx(detail["p95_e2el_ms"], rel=1e-3)
    assert arm.metrics["spec/mal"] == pytest.approx(1 + 318 / 257)
    assert arm.metrics["throughput/output_tok_s"] > arm.metrics["fixed_work/output_tok_s"], (
        "the window leaves ramp and drain out"
    )


def test_vllm_bench_sweep_serve(tmp_path: Path) -> None:
    """0.32: a folder a server and level with a summary beside the runs, which tell the server's overrides."""
    servers = {"none": "", "eagle3": "-speculative_config={'method': 'eagle3', 'num_speculative_tokens': 3}"}
    for name, words in servers.items():
        folder = f"SERVE--max_num_seqs=32{words}-BENCH--max_concurrency=4-num_prompts=24"
        place = tmp_path / "20261130_120041" / folder
        place.mkdir(parents=True)
        text = (EXPORTS / f"vllm-sweep-0.32-{name}.json").read_text()
        (place / "run=0.json").write_text(text)
        (place / "summary.json").write_text(f"[{text}]")
    found = compare([tmp_path / "20261130_120041"])
    (row,) = found.rows
    assert (row.label, row.level, row.verdict) == ("eagle3-k3 [max_num_seqs=32]", 4.0, "undecided")
    assert row.mal == pytest.approx(2.26, abs=0.01)
    assert found.outcomes["measured"] == 2


def test_aiperf_counts_by_the_server_where_it_told() -> None:
    """0.13: 718 tokens by its tokenizer, 576 by the server, over first dispatch to last response."""
    (run,) = runs_of("aiperf-0.13-eagle3-c2")
    export = EXPORTS / "aiperf-0.13-eagle3-c2" / "profile_export_aiperf.json"
    document = json.loads(export.read_text())
    seconds = document["benchmark_duration"]["avg"]
    assert (run.version, run.model, run.level, run.k) == ("0.13.0", "llama-3.1-8b", 2.0, 3)
    assert (run.requests, run.failed, run.failure) == (REQUESTS, 0, "")
    assert run.metrics["tokens/client_output"] == OUTPUT
    assert run.metrics["throughput/output_tok_s"] == pytest.approx(OUTPUT / seconds)
    assert run.metrics["fixed_work/output_tok_s"] == pytest.approx(718 / seconds)
    assert document["output_token_throughput"]["avg"] < 718 / seconds, "AIPerf divides by the whole phase"
    usage = document["total_usage_total_tokens"]["avg"]
    cached = document["total_usage_prompt_cache_read_tokens"]["avg"]
    assert run.metrics["throughput/computed_tok_s"] == pytest.approx((usage - cached) / seconds)
    assert any("count output tokens more than 2% apart" in caveat for caveat in run.caveats)
    records = [json.loads(line) for line in export.with_name("profile_export.jsonl").read_text().splitlines()]
    own = [record for record in records if record["metadata"]["phase_kind"] == "profiling"]
    decode = sum(record["metrics"]["decode_duration"]["value"] for record in own) / 1e3
    assert len(own) == REQUESTS
    assert run.metrics["user/speed_tok_s"] == pytest.approx((OUTPUT - REQUESTS) / decode, rel=1e-6)


def test_aiperf_tells_its_speculation() -> None:
    """88, 51, 36 and 70 steps that accepted 0, 1, 2 and 3 drafts."""
    (run,) = runs_of("aiperf-0.13-eagle3-c2")
    assert run.drafts == 245
    assert run.metrics["spec/mal"] == pytest.approx(1 + 333 / 245)
    assert run.metrics["spec/acceptance_rate"] == pytest.approx(333 / 735)
    positions = [run.metrics[f"spec/acceptance_pos_{place}"] for place in (1, 2, 3)]
    assert positions == pytest.approx([157 / 245, 106 / 245, 70 / 245])
    assert sum(positions) == pytest.approx(run.metrics["spec/mal"] - 1)


def test_phases_of_an_aiperf_run_are_no_runs() -> None:
    """Each phase has an export of the same name below that of the run: a folder holds the run once."""
    folder = EXPORTS / "aiperf-0.13-eagle3-c2"
    assert len(list(folder.rglob("profile_export_aiperf.json"))) == 3
    assert len(runs_of("aiperf-0.13-eagle3-c2")) == 1
    named = read_runs([folder / "phases" / "warmup" / "profile_export_aiperf.json"])
    assert not named.runs
    assert "left out: it is a phase of the run" in named.notes[0]


def test_without_usage_of_every_request_the_client_counts() -> None:
    document = json.loads((EXPORTS / "aiperf-0.13-none-c2" / "profile_export_aiperf.json").read_text())
    assert (tokens_of(document).served, tokens_of(document).output) == (True, OUTPUT)
    document["usage_completion_tokens"]["count"] -= 1
    assert (tokens_of(document).served, tokens_of(document).output) == (False, 718)


@pytest.mark.parametrize(
    ("baseline", "arm"),
    [
        ("vllm-0.32-none-c2.json", "vllm-0.32-eagle3-c2.json"),
        ("aiperf-0.13-none-c2", "aiperf-0.13-eagle3-c2"),
        ("guidellm-0.8-none-c2.json", "guidellm-0.8-eagle3-c2.json"),
    ],
)
def test_one_run_an_arm_is_a_ratio_without_an_interval(baseline: str, arm: str) -> None:
    (row,) = compare([], baseline=[str(EXPORTS / baseline)], arms=[f"eagle3-k3={EXPORTS / arm}"]).rows
    assert (row.label, row.level, row.verdict) == ("eagle3-k3", 2.0, "undecided")
    assert row.total is not None
    assert row.total.value > 1.2
    assert row.total.lo is None


def test_guidellm() -> None:
    """0.8: its inter token latency is the pooled one; of every prompt it is told that none was cached."""
    (run,) = runs_of("guidellm-0.8-eagle3-c2.json")
    (entry,) = json.loads((EXPORTS / "guidellm-0.8-eagle3-c2.json").read_text())["benchmarks"]
    requests = entry["requests"]["successful"]
    assert (run.version, run.model, run.level) == ("0.8.1", "llama-3.1-8b", 2.0)
    assert (run.requests, run.failed, run.k) == (48, 0, 0)
    decode = sum(
        timings["last_token_iteration"] - timings["first_token_iteration"]
        for timings in (request["info"]["timings"] for request in requests)
    )
    assert run.metrics["user/speed_tok_s"] == pytest.approx(48 * 47 / decode, rel=1e-6)
    tokens = sum(request["input_metrics"]["text_tokens"] for request in requests) + 48 * 48
    assert run.metrics["throughput/total_tok_s"] == pytest.approx(tokens / entry["duration"], rel=1e-6)
    assert run.metrics["throughput/computed_tok_s"] == run.metrics["throughput/total_tok_s"]
    assert run.caveats[0].startswith("GuideLLM warns: mean generation delay was")


@pytest.mark.parametrize(
    "changes",
    [
        {"warmup_duration": 2.0},
        {"requests": {"successful": [{"input_metrics": {"cached_tokens": 0}}]}},
        {"requests": {"successful": [{"input_metrics": {"cached_tokens": None}}] * 48}},
        {"requests": None},
    ],
)
def test_guidellm_without_every_cached_prompt(tmp_path: Path, changes: dict[str, Any]) -> None:
    document = json.loads((EXPORTS / "guidellm-0.8-none-c2.json").read_text())
    document["benchmarks"][0] |= changes
    path = tmp_path / "benchmarks.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    (run,) = read_runs([path]).runs
    assert "throughput/total_tok_s" in run.metrics
    assert "throughput/computed_tok_s" not in run.metrics
