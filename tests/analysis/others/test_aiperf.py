"""Exports of AIPerf, of two generations of its configuration."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.others.aiperf import COUNTED, FIRST_TOLD, matches, read
from analysis.others.run import OtherResultsError

Make = Callable[..., dict[str, Any]]
NOWHERE = Path("nowhere/profile_export_aiperf.json")


def test_an_export(make_aiperf: Make) -> None:
    document = make_aiperf()
    assert matches(document)
    (run,) = read(document, "a", NOWHERE).runs
    assert (run.axis, run.level, run.requests, run.failed) == ("concurrency", 8.0, 40, 0)
    assert (run.model, run.version, run.start) == ("served", "0.13.0", "a")
    assert run.metrics["throughput/total_tok_s"] == 764.0
    assert run.metrics["user/speed_tok_s"] == pytest.approx(50.0)
    assert run.metrics["latency/tpot_p95_ms"] == 40.0, "what it calls inter token latency"
    assert run.metrics["latency/icl_p50_ms"] == 50.0
    assert run.metrics["fixed_work/seconds"] == 10.0
    assert "throughput/computed_tok_s" not in run.metrics


def test_computed_throughput_where_usage_tells_the_cached(make_aiperf: Make) -> None:
    cached = {"unit": "tokens", "avg": 1000.0}
    (run,) = read(make_aiperf(total_usage_prompt_cache_read_tokens=cached), "a", NOWHERE).runs
    assert run.metrics["throughput/computed_tok_s"] == pytest.approx(764.0 - 100.0)


def test_speculation_is_read_by_steps(make_aiperf: Make) -> None:
    told = {
        "spec_decode_acceptance_length": {"unit": "ratio", "avg": 9.9},
        "spec_decode_token_weighted_acceptance_length": {"unit": "ratio", "avg": 2.5},
        "total_spec_decode_steps": {"unit": "count", "avg": 1200.0},
    }
    (run,) = read(make_aiperf(**told), "a", NOWHERE).runs
    assert (run.metrics["spec/mal"], run.drafts) == (2.5, 1200.0)


def test_an_older_export(make_aiperf: Make) -> None:
    older = make_aiperf(
        input_config={"endpoint": {"model_names": ["served"]}, "loadgen": {"concurrency": 16}}
    )
    for key in ("total_token_throughput", "run_info", "is_complete", "schema_version"):
        del older[key]
    (run,) = read(older, "a", NOWHERE).runs
    assert (run.axis, run.level, run.model) == ("concurrency", 16.0, "served")
    assert run.metrics["throughput/total_tok_s"] == pytest.approx((4000 + 3640) / 10.0)


def test_levels(make_aiperf: Make) -> None:
    def level(**phase: Any) -> tuple[str, float] | None:
        config = {"phases": [{"name": "profiling", "kind": "profiling", **phase}]}
        found = read(make_aiperf(input_config=config), "a", NOWHERE).runs
        return (found[0].axis, found[0].level) if found else None

    assert level(type="poisson", rate=3.5, concurrency=64) == ("rate", 3.5)
    assert level(type="concurrency") == ("concurrency", 1.0), "its default"
    assert level(type="user_centric", concurrency=4) is None
    assert level(type="constant", rate=3.5, rate_ramp=30) is None
    older = read(make_aiperf(input_config={"loadgen": {"request_rate": 2.0, "concurrency": 8}}), "a", NOWHERE)
    assert (older.runs[0].axis, older.runs[0].level) == ("rate", 2.0)


def test_the_requests_beside_it_are_pooled(tmp_path: Path, make_aiperf: Make) -> None:
    """A first chunk of 3 tokens, a failed request and the warm-up: 2 answers, (98 + 10) tokens in 2 s."""

    def record(phase: str, tokens: int, gap: float | None, error: Any = None) -> dict[str, Any]:
        metrics = {
            "time_to_first_token": {"value": 100.0, "unit": "ms"},
            "request_latency": {"value": 1.1, "unit": "sec"},
            "output_sequence_length": {"value": tokens, "unit": "tokens"},
        }
        if gap is not None:
            metrics["inter_token_latency"] = {"value": gap, "unit": "ms"}
        return {"metadata": {"benchmark_phase": phase}, "metrics": metrics, "error": error}

    records = [
        record("warmup", 500, 1.0),
        record("profiling", 101, 1000 / 98),
        record("profiling", 11, 100.0),
        record("profiling", 500, 1.0, error={"code": 500}),
    ]
    path = tmp_path / "profile_export_aiperf.json"
    lines = "".join(json.dumps(entry) + "\n" for entry in records)
    (tmp_path / "profile_export.jsonl").write_text(lines, encoding="utf-8")
    (run,) = read(make_aiperf(), "a", path).runs
    assert run.metrics["user/speed_tok_s"] == pytest.approx(108 / 2.0)
    assert run.metrics["latency/decode_share"] == pytest.approx(2.0 / 2.2)
    assert run.definitions["user/speed_tok_s"] == f"{FIRST_TOLD}; {COUNTED}"
    (tmp_path / "profile_export.jsonl").write_text("{\n", encoding="utf-8")
    with pytest.raises(OtherResultsError, match=r"profile_export\.jsonl line 1 is no JSON"):
        read(make_aiperf(), "a", path)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"was_cancelled": True}, "the run was cancelled"),
        (
            {"is_complete": False, "incomplete_reason": "records stalled"},
            "the run is incomplete: records stalled",
        ),
        ({"request_count": {"unit": "requests", "avg": 0.0}}, "every request failed"),
    ],
)
def test_what_is_no_measurement(make_aiperf: Make, changes: dict[str, Any], told: str) -> None:
    (run,) = read(make_aiperf(**changes), "a", NOWHERE).runs
    assert run.failure == told


def test_trials_of_one_plan_share_whatever_served_them(make_aiperf: Make) -> None:
    runs = [
        read(make_aiperf(run_info={"sweep_id": "s", "trial": trial}), f"{trial}", NOWHERE).runs[0]
        for trial in range(2)
    ]
    assert {run.start for run in runs} == {"s"}


def test_an_unknown_unit_is_an_error(make_aiperf: Make) -> None:
    with pytest.raises(OtherResultsError, match="inter_token_latency in 'fortnights'"):
        read(make_aiperf(inter_token_latency={"unit": "fortnights", "avg": 1.0}), "a", NOWHERE)
