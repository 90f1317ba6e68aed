from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from engines.counters import Counters
from engines.spec import Acceptance
from jobs.gates import Delivered, acceptance_tolerance, cell_gates, pair_gates
from jobs.measurement import measure
from jobs.replay.data import ReplayData
from jobs.result import Gate
from jobs.workload.ideal import IdealCache

Replay = Callable[..., ReplayData]
MakeCounters = Callable[..., Counters]
IDEAL = IdealCache(tokens=10_000, first_turn_tokens=640, prompt_tokens=20_000)


@pytest.fixture
def judge(make_replay: Replay, make_counters: MakeCounters) -> Callable[..., dict[str, Gate]]:
    def run(
        data: ReplayData | None = None,
        counters: Counters | None = None,
        metrics: Mapping[str, float | None] | None = None,
        acceptance: Acceptance | None = None,
        **changes: Any,
    ) -> dict[str, Gate]:
        data = data or make_replay()
        counters = counters or make_counters()
        requested = acceptance.mean_length(3) if acceptance else None
        found = measure(
            data, counters=counters, capacity_tokens=None, gauges=[], devices=1, requested_mal=requested
        ).metrics
        options = {"ideal": IDEAL, "cold": True, "oversubscribed": False, "emulated": False, **changes}
        gates = cell_gates(
            data, counters=counters, metrics={**found, **(metrics or {})}, acceptance=acceptance, **options
        )
        return {gate.name: gate for gate in gates}

    return run


Judge = Callable[..., dict[str, Gate]]


def failed(gates: dict[str, Gate]) -> list[str]:
    return [name for name, gate in gates.items() if not gate.passed]


def test_a_sound_cell_passes_all(judge: Judge) -> None:
    gates = judge()
    assert failed(gates) == []
    assert all(gate.message for gate in gates.values())


def test_one_failed_request_fails_the_cell_and_names_the_cause(judge: Judge, make_replay: Replay) -> None:
    data = make_replay()
    bad = replace(data.requests[3], error="http_503", error_detail="busy")
    gates = judge(replace(data, requests=(*data.requests[:3], bad, *data.requests[4:])))
    assert "request_errors" in failed(gates)
    assert "1 of 20 requests failed (1 http_503); the first: busy" in gates["request_errors"].message


def test_idle_users_fail_the_occupancy(judge: Judge, make_replay: Replay) -> None:
    gates = judge(make_replay(pause=10_000_000))  # 10 ms between 61 ms requests: 86 %
    assert failed(gates) == ["occupancy"]
    assert "85.9%" in gates["occupancy"].message


def test_a_missing_window_fails_the_occupancy(judge: Judge, make_replay: Replay) -> None:
    data = make_replay()
    gates = judge(replace(data, summary=replace(data.summary, window_end=None)))
    assert failed(gates) == ["occupancy"]
    assert "no steady window" in gates["occupancy"].message


@pytest.mark.parametrize(
    ("lag", "gap", "passed"), [(4.9, 8.0, True), (5.1, 8.0, False), (5.1, 21.0, True), (30.0, 100.0, False)]
)
def test_loop_lag_is_held_against_five_ms_or_a_quarter_step(
    judge: Judge, lag: float, gap: float, passed: bool
) -> None:
    gates = judge(metrics={"client/loop_lag_p99_ms": lag, "latency/icl_p50_ms": gap})
    assert gates["loop_lag"].passed is passed


def test_a_busy_client_fails_unless_it_had_to_share(judge: Judge) -> None:
    busy = {"client/cpu_share": 0.9, "client/loop_lag_p99_ms": 50.0}
    assert failed(judge(metrics=busy)) == ["loop_lag", "client_cpu"]
    shared = judge(metrics=busy, oversubscribed=True)
    assert failed(shared) == []
    assert "not judged" in shared["client_cpu"].message


@pytest.mark.parametrize(
    ("change", "gate"),
    [({"generation_tokens": 201}, "output_identity"), ({"prompt_tokens": 1999}, "prompt_identity")],
)
def test_one_token_of_difference_breaks_the_identity(
    judge: Judge, make_counters: MakeCounters, change: dict[str, int], gate: str
) -> None:
    gates = judge(counters=make_counters(**change))
    assert failed(gates) == [gate]
    assert str(next(iter(change.values()))) in gates[gate].message


def test_a_prompt_of_another_length_than_sent(judge: Judge, make_replay: Replay) -> None:
    gates = judge(make_replay(expected_prompt_tokens=101))
    assert failed(gates) == ["prompt_lengths"]
    assert "100 tokens instead of 101" in gates["prompt_lengths"].message


def test_a_warm_cache(judge: Judge) -> None:
    gates = judge(ideal=replace(IDEAL, first_turn_tokens=599))
    assert failed(gates) == ["cold_cache"]
    assert "600 tokens from the prefix cache" in gates["cold_cache"].message
    assert "at most 599" in gates["cold_cache"].message
    assert failed(judge(ideal=replace(IDEAL, first_turn_tokens=600))) == []


def test_a_cache_that_nobody_emptied(judge: Judge) -> None:
    assert failed(judge(cold=False)) == ["cold_cache"]


def test_cold_without_reports_passes_and_says_what_was_not_checked(judge: Judge, make_replay: Replay) -> None:
    assert "cached tokens in usage" in judge(make_replay(cached_tokens=None))["cold_cache"].message
    assert "the KV block size" in judge(ideal=None)["cold_cache"].message


def counters_with(make_counters: MakeCounters, drafts: int, mal: float) -> Counters:
    accepted = round(drafts * (mal - 1))
    return make_counters(
        drafts=drafts,
        draft_tokens=3 * drafts,
        accepted_tokens=accepted,
        accepted_per_position=(accepted, 0, 0),
    )


@pytest.mark.parametrize(
    ("drafts", "mal", "passed"),
    [(400, 2.6928, True), (400, 2.95, True), (400, 3.05, False), (40_000, 2.74, True), (40_000, 2.80, False)],
)
def test_synthetic_acceptance_has_to_come_out(
    judge: Judge, make_counters: MakeCounters, drafts: int, mal: float, passed: bool
) -> None:
    gates = judge(counters=counters_with(make_counters, drafts, mal), acceptance=Acceptance(alpha=0.74))
    assert gates["synthetic_acceptance"].passed is passed
    assert "2.693" in gates["synthetic_acceptance"].message


def test_real_acceptance_has_no_such_gate(judge: Judge) -> None:
    assert "synthetic_acceptance" not in judge()


def test_synthetic_acceptance_without_a_draft(judge: Judge, make_counters: MakeCounters) -> None:
    counters = counters_with(make_counters, 0, 1.0)
    assert (
        "nothing was drafted"
        in judge(counters=counters, acceptance=Acceptance(alpha=0.5))["synthetic_acceptance"].message
    )


def test_acceptance_tolerance_is_four_standard_errors() -> None:
    # K=1 is one coin: variance a (1 - a).
    assert acceptance_tolerance(Acceptance(alpha=0.5), 1, 100) == pytest.approx(4 * 0.05)
    assert acceptance_tolerance(Acceptance(alpha=1.0), 7, 100) == 0.0
    # The published variance of geometric acceptance with mean 3.07 at K=7 is 4.69.
    assert acceptance_tolerance(Acceptance(alpha=0.6912), 7, 1) == pytest.approx(4 * 4.69**0.5, rel=0.01)


WORK = Delivered(
    requests=20,
    requested_prompt_tokens=2000,
    requested_output_tokens=200,
    prompt_tokens=2000,
    output_tokens=200,
)
CONFIG = {"scheduler_config.max_num_seqs": 32, "cache_config.block_size": 16, "speculative_config": None}


def pair(resolved: dict[str, Any], delivered: Delivered = WORK) -> dict[str, Gate]:
    gates = pair_gates(
        resolved=resolved,
        baseline_resolved=CONFIG,
        drafter_keys=["speculative_config"],
        delivered=delivered,
        baseline_delivered=WORK,
    )
    return {gate.name: gate for gate in gates}


def test_only_the_drafter_may_differ() -> None:
    drafter = {**CONFIG, "speculative_config.method": "ngram", "speculative_config": {"k": 3}}
    assert failed(pair(drafter)) == []
    gates = pair({**drafter, "cache_config.block_size": 32, "model_config.new": True})
    assert failed(gates) == ["configuration"]
    assert "cache_config.block_size: 32 against 16" in gates["configuration"].message
    assert "model_config.new: True against '(absent)'" in gates["configuration"].message
    assert gates["configuration"].value == 2


def test_many_differences_are_cut_in_the_message() -> None:
    gates = pair({**CONFIG, **{f"a.{i}": i for i in range(20)}})
    assert "and 12 more" in gates["configuration"].message


def test_equal_work(make_replay: Replay) -> None:
    assert Delivered.of(make_replay()) == WORK
    gates = pair(dict(CONFIG), replace(WORK, output_tokens=199))
    assert failed(gates) == ["equal_work"]
    assert gates["equal_work"].value == -1
    assert "199" in gates["equal_work"].message


def test_an_emulator_that_falls_behind_what_it_emulates_fails_the_cell(
    judge: Judge, make_replay: Replay, make_counters: MakeCounters
) -> None:
    data = make_replay()
    seconds = (data.summary.ended - data.summary.started) / 1e9
    kept_up = replace(make_counters(), slipped_seconds=0.04 * seconds)
    late = replace(make_counters(), slipped_seconds=0.06 * seconds)
    assert failed(judge(data, kept_up, emulated=True)) == []
    assert failed(judge(data, late, emulated=True)) == ["emulator_pace"]
    assert "emulator_pace" not in judge(data, late)
