"""Results as each tool writes them: the keys of its own source, with figures that can be checked by hand."""

from collections.abc import Callable
from typing import Any

import pytest

from analysis.others.arms import OtherArm
from analysis.others.run import OtherRun

Document = dict[str, Any]


def vllm_bench(**changes: Any) -> Document:
    """A result of `vllm bench serve --save-result` (0.32), without details and with the default percentiles.

    16 requests of 100 prompt and 51 output tokens, each 1.1 s long with a TTFT of 0.1 s: 50 tokens a second.
    """
    document: Document = {
        "date": "20261130-070000",
        "endpoint_type": "openai",
        "backend": "openai",
        "label": None,
        "model_id": "served",
        "tokenizer_id": "served",
        "num_prompts": 16,
        "request_rate": "inf",
        "burstiness": 1.0,
        "max_concurrency": 4,
        "duration": 4.4,
        "completed": 16,
        "failed": 0,
        "total_input_tokens": 1600,
        "total_output_tokens": 816,
        "request_throughput": 16 / 4.4,
        "request_goodput": None,
        "output_throughput": 816 / 4.4,
        "total_token_throughput": 2416 / 4.4,
        "latencies": [1.1] * 16,
        "queue_times": [0.0] * 16,
        "max_output_tokens_per_s": 200.0,
        "max_concurrent_requests": 4,
        "rtfx": 0.0,
    }
    for name, value in (("ttft", 100.0), ("tpot", 20.0), ("itl", 50.0)):
        document |= {f"mean_{name}_ms": value, f"median_{name}_ms": value, f"std_{name}_ms": 0.0}
        document[f"p99_{name}_ms"] = value
    return document | changes


def drafted(**changes: Any) -> Document:
    """The same of a server that speculated: 100 steps of K=3, 170 accepted."""
    document = vllm_bench(
        spec_decode_acceptance_rate=100 * 170 / 300,
        spec_decode_acceptance_length=2.7,
        spec_decode_num_drafts=100,
        spec_decode_draft_tokens=300,
        spec_decode_accepted_tokens=170,
        spec_decode_per_position_acceptance_rates=[0.8, 0.55, 0.35],
    )
    return document | changes


def aiperf(**changes: Any) -> Document:
    """An export of AIPerf 0.13 at C=8, of 40 requests."""

    def latency(value: float, unit: str = "ms") -> Document:
        return {"unit": unit, "avg": value, "p50": value, "p95": 2 * value, "p99": 3 * value}

    document: Document = {
        "schema_version": "1.4",
        "aiperf_version": "0.13.0",
        "request_throughput": {"unit": "requests/sec", "avg": 4.0},
        "request_latency": latency(1900.0),
        "request_count": {"unit": "requests", "avg": 40.0},
        "time_to_first_token": latency(100.0),
        "inter_token_latency": latency(20.0),
        "inter_chunk_latency": latency(50.0),
        "output_token_throughput": {"unit": "tokens/sec", "avg": 364.0},
        "total_token_throughput": {"unit": "tokens/sec", "avg": 764.0},
        "benchmark_duration": {"unit": "sec", "avg": 10.0},
        "total_isl": {"unit": "tokens", "avg": 4000.0},
        "total_osl": {"unit": "tokens", "avg": 3640.0},
        "input_config": {
            "models": {"items": [{"name": "served"}]},
            "phases": [
                {"name": "warmup", "kind": "warmup", "type": "concurrency", "concurrency": 2, "requests": 2},
                {"name": "profiling", "kind": "profiling", "type": "concurrency", "concurrency": 8},
            ],
        },
        "run_info": {"benchmark_id": "one", "trial": 0, "variation_label": "base"},
        "was_cancelled": False,
        "is_complete": True,
    }
    return document | changes


def guidellm(*entries: Document, **changes: Any) -> Document:
    """A report of GuideLLM 0.8."""
    document: Document = {
        "metadata": {"version": 2, "guidellm_version": "0.8.1", "python_version": "3.11", "platform": "x"},
        "config": {},
        "benchmarks": list(entries) or [guidellm_entry()],
        "conclusions": [],
    }
    return document | changes


def guidellm_entry(streams: int = 8, **changes: Any) -> Document:
    """One benchmark of such a report: concurrent streams."""

    def distribution(mean: float, total_sum: float = 0.0) -> Document:
        found = {"mean": mean, "median": mean, "total_sum": total_sum}
        return found | {"percentiles": {"p50": mean, "p95": 2 * mean, "p99": 3 * mean}}

    def by_status(mean: float, total_sum: float = 0.0) -> Document:
        return {"successful": distribution(mean, total_sum), "total": distribution(1.01 * mean, total_sum)}

    entry: Document = {
        "type_": "generative_benchmark",
        "config": {
            "run_id": "r", "run_index": 0,
            "strategy": {"type_": "concurrent", "streams": streams},
            "backend": {"model": "served"},
        },
        "metrics": {
            "request_totals": {"successful": 40, "incomplete": 3, "errored": 0, "total": 43},
            "request_latency": by_status(1.9),
            "prompt_token_count": by_status(100.0, 4000.0),
            "output_token_count": by_status(91.0, 3640.0),
            "time_to_first_token_ms": by_status(100.0),
            "time_per_output_token_ms": by_status(21.0),
            "inter_token_latency_ms": by_status(20.0),
            "output_tokens_per_second": by_status(364.0),
            "tokens_per_second": by_status(764.0),
        },
        "duration": 10.0,
        "warnings": [{"code": "w", "message": "the schedule was missed"}],
    }  # fmt: skip
    return entry | changes


def other_run(source: str, total: float, *, level: float = 8, **changes: Any) -> OtherRun:
    """A run of which only the throughput is known, on a server start of its own."""
    values: dict[str, Any] = {
        "tool": "published",
        "source": source,
        "axis": "concurrency",
        "level": level,
        "metrics": {"throughput/total_tok_s": total, "throughput/output_tok_s": total},
        "start": source,
        "requests": 100,
        "failed": 0,
    }
    return OtherRun(**{**values, **changes})


def runs(
    base: dict[float, list[float]], arm: dict[float, list[float]], *, name: str = "eagle3", k: int = 5
) -> list[tuple[OtherRun, OtherArm]]:
    """Throughputs of a baseline and of an arm by level, a run each."""
    found = []
    for label, values, of in (
        ("none", base, OtherArm(drafter="none")),
        (name, arm, OtherArm(drafter=name, k=k)),
    ):
        for level, figures in values.items():
            for place, figure in enumerate(figures):
                found.append((other_run(f"{label}-{level}-{place}", figure, level=level), of))
    return found


@pytest.fixture(scope="session")
def make_vllm() -> Callable[..., Document]:
    return vllm_bench


@pytest.fixture(scope="session")
def make_drafted() -> Callable[..., Document]:
    return drafted


@pytest.fixture(scope="session")
def make_aiperf() -> Callable[..., Document]:
    return aiperf


@pytest.fixture(scope="session")
def make_guidellm() -> Callable[..., Document]:
    return guidellm


@pytest.fixture(scope="session")
def make_guidellm_entry() -> Callable[..., Document]:
    return guidellm_entry


@pytest.fixture(scope="session")
def make_run() -> Callable[..., OtherRun]:
    return other_run


@pytest.fixture(scope="session")
def make_runs() -> Callable[..., list[tuple[OtherRun, OtherArm]]]:
    return runs
