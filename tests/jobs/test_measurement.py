from collections.abc import Callable
from dataclasses import replace

import pytest

from engines.base import KVCapacity
from engines.counters import Counters
from jobs.measurement import Measurement, measure
from jobs.measures.kv import kv_metrics
from jobs.metric_names import METRICS
from jobs.replay.data import ReplayData

MS = 1_000_000
Replay = Callable[..., ReplayData]
MakeCounters = Callable[..., Counters]

OF_THE_CELL = {
    "window/turn_overlap",
    "cache/first_turn_expected_least",
    "cache/first_turn_expected_most",
    "warmup/rounds",
    "warmup/settled",
    "warmup/step_ms",
}
"""Names that `jobs/cell.py` adds: they are not of the replay alone."""
GAUGES = [
    {"time": 10 * MS, "sampled": 10 * MS, "running": 1, "replica": 0, "waiting": 3, "kv_usage": 0.4},
    {"time": 20 * MS, "sampled": 20 * MS, "running": 1, "replica": 0, "waiting": 1, "kv_usage": 0.6},
    {"time": 30 * MS, "sampled": 30 * MS, "running": 1, "replica": 0, "waiting": None, "kv_usage": None},
    {"time": 10**15, "sampled": 10**15, "running": 1, "replica": 0, "waiting": 99, "kv_usage": 0.99},
]


@pytest.fixture
def measured(make_replay: Replay, make_counters: MakeCounters) -> Callable[..., Measurement]:
    def make(data: ReplayData | None = None, counters: Counters | None = None) -> Measurement:
        return measure(
            data or make_replay(),
            counters=counters or make_counters(),
            kv=kv_metrics([KVCapacity(tokens=65_536, block_size=16)], [110], drafts=3),
            gauges=GAUGES,
            devices=2,
            requested_mal=2.6928,
        )

    return make


def test_every_name_of_the_table_and_no_other(measured: Callable[..., Measurement]) -> None:
    names = {name for name in measured().metrics if "_pos_" not in name}
    assert names == set(METRICS) - OF_THE_CELL


def test_known_figures(measured: Callable[..., Measurement], make_replay: Replay) -> None:
    metrics = measured().metrics
    # 4 users, each 100 prompt + 10 output tokens in 62 ms; the window holds exactly three rounds.
    assert metrics["throughput/total_tok_s"] == pytest.approx(4 * 110 / 0.062)
    assert metrics["throughput/computed_tok_s"] == pytest.approx(4 * 80 / 0.062)
    assert metrics["throughput/output_tok_s"] == pytest.approx(4 * 10 / 0.062)
    assert metrics["throughput/output_tok_s_per_device"] == pytest.approx(2 * 10 / 0.062)
    assert metrics["window/seconds"] == pytest.approx(3 * 0.062)
    assert metrics["window/occupancy"] == pytest.approx(61 / 62)
    assert metrics["fixed_work/seconds"] == pytest.approx(0.309)
    assert metrics["fixed_work/total_tok_s"] == pytest.approx(20 * 110 / 0.309)
    assert metrics["user/speed_tok_s"] == pytest.approx(200.0)
    assert metrics["latency/ttft_p50_ms"] == pytest.approx(20.0)
    assert metrics["latency/tpot_p95_ms"] == pytest.approx(5.0)
    assert metrics["latency/itl_p50_ms"] == pytest.approx(5.0)
    assert metrics["latency/icl_p99_ms"] == pytest.approx(10.0)
    assert metrics["latency/e2el_p95_ms"] == pytest.approx(60.0)
    assert metrics["latency/decode_share"] == pytest.approx(40 / 60)
    assert metrics["spec/mal"] == pytest.approx(2.5625)
    assert metrics["cache/client_cached_tokens"] == 600
    assert metrics["kv/usage_peak"] == 0.6  # samples after the replay do not count
    assert metrics["kv/conversations_mean"] == 65_536 // 128  # 110 tokens and 3 drafts are 8 blocks of 16
    assert metrics["engine/waiting_peak"] == 3
    assert metrics["tokens/client_output"] == metrics["tokens/engine_output"] == 200
    assert metrics["requests/total"] == 20


def test_an_empty_window_leaves_its_figures_out_and_says_so(
    measured: Callable[..., Measurement], make_replay: Replay
) -> None:
    data = make_replay()
    data = replace(data, summary=replace(data.summary, window_start=None))
    result = measured(data)
    for name in (
        "throughput/total_tok_s",
        "throughput/output_tok_s_per_device",
        "window/occupancy",
        "window/seconds",
    ):
        assert result.metrics[name] is None
    assert result.metrics["fixed_work/total_tok_s"] is not None
    assert any("no steady window" in caveat for caveat in result.caveats)


def test_failures_stay_out_of_latencies_and_in_the_count(
    measured: Callable[..., Measurement], make_replay: Replay
) -> None:
    data = make_replay()
    slow = replace(data.requests[0], error="cut", first=500 * MS, completion_tokens=3)
    result = measured(replace(data, requests=(slow, *data.requests[1:])))
    assert result.metrics["requests/failed"] == 1
    assert result.metrics["latency/ttft_p99_ms"] == pytest.approx(20.0)
    assert result.metrics["tokens/client_output"] == 193


def test_all_failed_leaves_every_figure_absent(
    measured: Callable[..., Measurement], make_replay: Replay
) -> None:
    data = make_replay()
    result = measured(replace(data, requests=tuple(replace(r, error="refused") for r in data.requests)))
    assert result.metrics["requests/failed"] == 20
    assert result.metrics["latency/ttft_p50_ms"] is None
    assert result.metrics["user/speed_tok_s"] is None
    for name, value in result.metrics.items():
        if name.startswith(("throughput/", "latency/", "user/", "session/time", "turn/")) or "tok_s" in name:
            assert value is None, name


def test_caveats(
    measured: Callable[..., Measurement], make_replay: Replay, make_counters: MakeCounters
) -> None:
    assert not [c for c in measured(counters=make_counters()).caveats if "queued" not in c]
    assert any("queued" in c for c in measured().caveats)  # 3 of 4
    assert any(
        "7 requests were preempted" in c for c in measured(counters=make_counters(preemptions=7)).caveats
    )
    assert any(
        "computed throughput is unknown" in c for c in measured(make_replay(cached_tokens=None)).caveats
    )
    data = make_replay()
    late = replace(data.summary, window_end=data.summary.window_start or 0 + 1)
    drained = measured(replace(data, summary=replace(late, window_end=(late.window_start or 0) + 10 * MS)))
    assert any("fewer users" in c for c in drained.caveats)
