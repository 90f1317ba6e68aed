"""Reports of GuideLLM: what its names mean, and which of its strategies are load levels."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.others.guidellm import BY_TOKEN, matches, read

Make = Callable[..., dict[str, Any]]
PATH = Path("benchmarks.json")


def test_a_report(make_guidellm: Make) -> None:
    document = make_guidellm()
    assert matches(document)
    (run,) = read(document, "b", PATH).runs
    assert (run.axis, run.level, run.requests, run.failed) == ("concurrency", 8.0, 40, 0)
    assert (run.version, run.model, run.source) == ("0.8.1", "served", "b benchmark 0")
    assert run.metrics["throughput/total_tok_s"] == pytest.approx(764 * 1.01)
    assert run.metrics["user/speed_tok_s"] == pytest.approx(50.0)
    assert run.metrics["latency/e2el_p95_ms"] == pytest.approx(3800.0)
    assert run.metrics["tokens/client_output"] == 3640.0
    assert run.caveats == ("GuideLLM warns: the schedule was missed",)


def test_its_time_per_output_token_is_not_ours(make_guidellm: Make) -> None:
    (run,) = read(make_guidellm(), "b", PATH).runs
    assert run.metrics["latency/tpot_p50_ms"] == 20.0, "21 ms would hold the time to the first token too"
    assert run.definitions["latency/tpot_p50_ms"] == BY_TOKEN


def test_a_report_of_an_older_version(make_guidellm: Make, make_guidellm_entry: Make) -> None:
    entry = make_guidellm_entry()
    totals = entry["metrics"].pop("request_totals")
    entry |= {
        "args": {"strategy": {"type_": "concurrent", "streams": 4}},
        "worker": {"backend_model": "served"},
        "request_totals": totals | {"errored": 2},
    }
    del entry["config"], entry["warnings"]
    (run,) = read({"benchmarks": [entry]}, "b", PATH).runs
    assert (run.level, run.model, run.requests, run.failed) == (4.0, "served", 42, 2)


@pytest.mark.parametrize(
    ("strategy", "level"),
    [
        ({"type_": "synchronous"}, ("concurrency", 1.0)),
        ({"type_": "throughput", "max_concurrency": 32}, ("concurrency", 32.0)),
        ({"type_": "constant", "rate": 1.5, "max_concurrency": 512}, ("rate", 1.5)),
        ({"type_": "poisson", "rate": 2.0}, ("rate", 2.0)),
        ({"type_": "throughput"}, None),
        ({"type_": "trace"}, None),
    ],
)
def test_levels(
    make_guidellm: Make, make_guidellm_entry: Make, strategy: dict[str, Any], level: tuple[str, float] | None
) -> None:
    entry = make_guidellm_entry(config={"strategy": strategy})
    reading = read(make_guidellm(entry), "b", PATH)
    assert [(run.axis, run.level) for run in reading.runs] == ([] if level is None else [level])
    if level is None:
        assert f"its strategy is {strategy['type_']!r}" in reading.notes[0]


def test_all_levels_of_a_report_share_a_start(make_guidellm: Make, make_guidellm_entry: Make) -> None:
    report = make_guidellm(make_guidellm_entry(1), make_guidellm_entry(16))
    found = read(report, "b", PATH).runs
    assert [run.level for run in found] == [1.0, 16.0]
    assert {run.start for run in found} == {"benchmarks.json"}
