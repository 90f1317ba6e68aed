from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from engines.acceptance import GEOMETRIC, MINIMUM_VARIANCE, Acceptance
from engines.acceptance_translation import Forced, sglang_acceptance, vllm_acceptance
from engines.counters import Counters
from jobs.cache_bounds import FirstTurns
from jobs.cache_state import CacheState, Proof
from jobs.gates import Delivered, cell_gates, pair_gates
from jobs.gates.acceptance import acceptance_tolerance, position_tolerance
from jobs.measurement import measure
from jobs.replay.data import ReplayData
from jobs.replay.job import Speculation
from jobs.result import Gate

Replay = Callable[..., ReplayData]
MakeCounters = Callable[..., Counters]
COLD = CacheState(state="cold", how="reset", salt="cell", reset_tries=1)
TURNS = FirstTurns(requests=20, cached=600, least=600, most=640, above=0, below=0, worst="", loose="")


@pytest.fixture
def judge(make_replay: Replay, make_counters: MakeCounters) -> Callable[..., dict[str, Gate]]:
    def run(
        data: ReplayData | None = None,
        counters: Counters | None = None,
        metrics: Mapping[str, float | None] | None = None,
        forced: Forced | None = None,
        **changes: Any,
    ) -> dict[str, Gate]:
        data = data or make_replay()
        counters = counters or make_counters()
        requested = forced.mean_length if forced else None
        found = measure(data, counters=counters, kv={}, gauges=[], devices=1, requested_mal=requested).metrics
        options = {
            "cache": COLD,
            "first_turns": TURNS,
            "oversubscribed": False,
            "emulated": False,
            **changes,
        }
        gates = cell_gates(
            data, counters=counters, metrics={**found, **(metrics or {})}, forced=forced, **options
        )
        return {gate.name: gate for gate in gates}

    return run


Judge = Callable[..., dict[str, Gate]]


def failed(gates: dict[str, Gate]) -> list[str]:
    return [name for name, gate in gates.items() if gate.failed]


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
    shared = judge(make_replay(pause=10_000_000), oversubscribed=True)
    assert failed(shared) == []
    assert "not judged" in shared["occupancy"].message


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
    busy = {"client/cpu_share": 0.9, "client/loop_lag_p99_ms": 50.0, "client/send_lag_p99_ms": 50.0}
    assert failed(judge(metrics=busy)) == ["loop_lag", "send_lag", "client_cpu"]
    shared = judge(metrics=busy, oversubscribed=True)
    assert failed(shared) == []
    assert "not judged" in shared["client_cpu"].message


@pytest.mark.parametrize(
    ("change", "gate"),
    [
        ({"generation_tokens": 201}, "output_identity"),
        ({"prompt_tokens": 1999}, "prompt_identity"),
        ({"computed_prompt_tokens": 1401}, "computed_identity"),
    ],
)
def test_one_token_of_difference_breaks_the_identity(
    judge: Judge, make_counters: MakeCounters, change: dict[str, int], gate: str
) -> None:
    gates = judge(counters=make_counters(**change))
    assert gate in failed(gates)
    assert set(failed(gates)) <= {gate, "computed_identity"}
    assert abs(gates[gate].value or 0) == 1


def test_computed_tokens_are_uncached_prompt_and_output_on_both_sides(
    judge: Judge, make_replay: Replay
) -> None:
    gates = judge()
    assert "counted 1600 computed" in gates["computed_identity"].message  # 20 x (100 - 30 + 10)
    assert "the engine 1600" in gates["computed_identity"].message
    unknown = judge(make_replay(cached_tokens=None))["computed_identity"]
    assert unknown.passed is None
    assert "not checked" in unknown.message


def test_a_prompt_of_another_length_than_sent(judge: Judge, make_replay: Replay) -> None:
    gates = judge(make_replay(expected_prompt_tokens=101))
    assert failed(gates) == ["prompt_lengths"]
    assert "100 tokens instead of 101" in gates["prompt_lengths"].message


def test_a_warm_cache_names_the_amounts(judge: Judge) -> None:
    worst = "c3 (epoch 0) had 96 tokens, expected 0 to 32"
    gates = judge(first_turns=replace(TURNS, most=599, above=1, worst=worst))
    assert failed(gates) == ["cold_cache"]
    assert "20 first turns met 600 tokens in it" in gates["cold_cache"].message
    assert "1 met more than they could" in gates["cold_cache"].message
    assert worst in gates["cold_cache"].message
    assert (gates["cold_cache"].value, gates["cold_cache"].limit) == (600.0, 599.0)


def test_a_cache_that_keeps_nothing_fails_as_well(judge: Judge) -> None:
    gates = judge(first_turns=replace(TURNS, least=640, below=2, worst="c1 had 0 tokens, expected 32"))
    assert failed(gates) == ["cold_cache"]
    assert "2 less than they had to" in gates["cold_cache"].message


def test_a_lower_bound_that_does_not_hold_says_why(judge: Judge) -> None:
    gates = judge(first_turns=replace(TURNS, least=0, loose="requests were preempted"))
    assert failed(gates) == []
    assert "0 to 640 were expected (no least: requests were preempted)" in gates["cold_cache"].message


@pytest.mark.parametrize(
    ("how", "words"), [("reset", "emptied"), ("salt", "salt nobody used"), ("fresh_engine", "was fresh")]
)
def test_the_gate_says_how_it_became_cold(judge: Judge, how: str, words: str) -> None:
    assert words in judge(cache=replace(COLD, how=how))["cold_cache"].message


def test_cold_without_reports_is_not_checked_and_says_why(judge: Judge) -> None:
    gate = judge(first_turns=replace(TURNS, cached=None))["cold_cache"]
    assert gate.passed is None
    assert "cached tokens in usage" in gate.message
    assert "the KV block size" in judge(first_turns=None)["cold_cache"].message


PROOF = Proof(requests=16, expected=512, cached=512, short=0)
PRIMED = replace(COLD, state="primed", primed_prompts=20, primed_tokens=700, proof=PROOF)


def test_a_primed_cache_has_to_be_proven_warm(judge: Judge) -> None:
    gates = judge(cache=PRIMED)
    assert failed(gates) == []
    assert "primed with 700 tokens in 20 prompts" in gates["primed_cache"].message
    assert "16 of them met 512 tokens of 512 expected" in gates["primed_cache"].message
    short = judge(cache=replace(PRIMED, proof=replace(PROOF, cached=480, short=1)))
    assert failed(short) == ["primed_cache"]
    assert "met 480 tokens of 512 expected, 1 of them too few" in short["primed_cache"].message
    for proof in (None, replace(PROOF, cached=None)):
        unproven = judge(cache=replace(PRIMED, proof=proof))
        assert failed(unproven) == ["primed_cache"]
        assert "cannot be proven warm" in unproven["primed_cache"].message


def test_a_primed_cache_is_judged_by_first_turns_as_well(judge: Judge) -> None:
    turns = replace(TURNS, least=640, below=1, worst="c1 had 0 tokens, expected 32")
    assert failed(judge(cache=PRIMED, first_turns=turns)) == ["primed_cache"]


ALPHA = vllm_acceptance(Acceptance(alpha=0.74), 3)


def counters_with(
    make_counters: MakeCounters, drafts: int, mal: float, positions: Sequence[float] = ()
) -> Counters:
    """Return counters of K=3 drafts with this mean length, spread over positions as alpha .74 spreads it."""
    shares = positions or [rate * (mal - 1) / sum(ALPHA.rates) for rate in ALPHA.rates]
    counted = tuple(round(drafts * share) for share in shares)
    return make_counters(
        drafts=drafts,
        draft_tokens=3 * drafts,
        accepted_tokens=sum(counted),
        accepted_per_position=counted,
    )


@pytest.mark.parametrize(
    ("drafts", "mal", "passed"),
    [(400, 2.6928, True), (400, 2.85, True), (400, 3.05, False), (40_000, 2.73, True), (40_000, 2.80, False)],
)
def test_synthetic_acceptance_has_to_come_out(
    judge: Judge, make_counters: MakeCounters, drafts: int, mal: float, passed: bool
) -> None:
    gates = judge(counters=counters_with(make_counters, drafts, mal), forced=ALPHA)
    assert gates["synthetic_acceptance"].passed is passed
    assert gates["synthetic_positions"].passed is passed
    assert "2.693" in gates["synthetic_acceptance"].message


def test_the_right_mean_at_the_wrong_positions_fails(judge: Judge, make_counters: MakeCounters) -> None:
    flat = vllm_acceptance(Acceptance(length=2.6928, shape=MINIMUM_VARIANCE), 3)
    counters = counters_with(make_counters, 4000, 2.6928, flat.rates)
    gates = judge(counters=counters, forced=ALPHA)
    assert gates["synthetic_acceptance"].passed is True
    assert failed(gates) == ["synthetic_positions"]
    assert (
        "position 3 of 3, the farthest off, was accepted in 0.0000 of 4000 drafts; 0.4052 was asked for"
        in (gates["synthetic_positions"].message)
    )
    assert failed(judge(counters=counters, forced=flat)) == []


def test_shorter_drafts_may_fall_short_and_never_exceed(judge: Judge, make_counters: MakeCounters) -> None:
    less = replace(counters_with(make_counters, 4000, 1.8), draft_tokens=4800)
    gates = judge(counters=less, forced=ALPHA)
    assert failed(gates) == []
    assert "drafts had 1.20 of 3 tokens: less is no fault" in gates["synthetic_acceptance"].message
    more = replace(counters_with(make_counters, 4000, 3.2), draft_tokens=4800)
    assert failed(judge(counters=more, forced=ALPHA)) == ["synthetic_acceptance", "synthetic_positions"]


def test_one_draw_a_step_is_fewer_draws(judge: Judge, make_counters: MakeCounters) -> None:
    # 4000 drafts of 64 requests at once are 63 draws of 2 or 3 tokens: .15 off is chance there, and .05 is
    # not where every draft draws for itself.
    forced = sglang_acceptance(Acceptance(length=2.5, shape=GEOMETRIC), 3)
    counters = counters_with(make_counters, 4000, 2.65, (1.0, 0.65, 0.0))
    assert failed(judge(counters=counters, forced=forced, metrics={"window/in_flight": 64.0})) == []
    alone = judge(counters=counters, forced=forced, metrics={"window/in_flight": 1.0})
    assert failed(alone) == ["synthetic_acceptance", "synthetic_positions"]


def test_what_is_not_counted_is_not_judged(judge: Judge, make_counters: MakeCounters) -> None:
    assert judge(counters=Counters.unknown(1.0), forced=ALPHA)["synthetic_acceptance"].passed is None
    counters = replace(
        counters_with(make_counters, 400, 2.69),
        accepted_per_position=(),
        absent=frozenset({"accepted_per_position"}),
    )
    gates = judge(counters=counters, forced=ALPHA)
    assert gates["synthetic_acceptance"].passed is True
    assert "synthetic_positions" not in gates


def test_real_acceptance_has_no_such_gate(judge: Judge) -> None:
    assert "synthetic_acceptance" not in judge()


def test_synthetic_acceptance_without_a_draft(judge: Judge, make_counters: MakeCounters) -> None:
    counters = counters_with(make_counters, 0, 1.0)
    assert "nothing was drafted" in judge(counters=counters, forced=ALPHA)["synthetic_acceptance"].message


@pytest.mark.parametrize(
    ("steps", "drafted", "accepted", "passed"),
    [(20, 60, 34, True), (20, 60, 33, False), (19, 60, 34, False), (20, 59, 34, False)],
)
def test_the_answers_accounts_of_drafts_have_to_be_the_engines(
    judge: Judge,
    make_replay: Replay,
    make_counters: MakeCounters,
    steps: int,
    drafted: int,
    accepted: int,
    passed: bool,
) -> None:
    data = make_replay()
    count = len(data.requests)
    each = Speculation(steps=steps, drafted=drafted, accepted=accepted)
    data = replace(data, requests=tuple(replace(request, speculation=each) for request in data.requests))
    counters = counters_with(make_counters, 20 * count, 1 + 34 / 20)
    gate = judge(data, counters=counters)["drafts_identity"]
    assert gate.passed is passed
    assert f"{accepted * count} of them accepted" in gate.message


def test_drafts_without_accounts_are_not_checked_and_it_is_said(
    judge: Judge, make_counters: MakeCounters
) -> None:
    gates = judge(counters=counters_with(make_counters, 400, 2.0))
    assert gates["drafts_identity"].passed is None
    assert "not checked" in gates["drafts_identity"].message
    assert "drafts_identity" not in judge(counters=counters_with(make_counters, 0, 1.0))


def test_what_the_engine_does_not_count_is_not_checked(judge: Judge, make_counters: MakeCounters) -> None:
    gates = judge(counters=Counters.unknown(1.0))
    names = ("output_identity", "prompt_identity", "computed_identity", "drafts_identity")
    assert {name: gates[name].passed for name in names} == dict.fromkeys(names)
    assert "the client counted 200" in gates["output_identity"].message
    assert failed(gates) == []
    partial = make_counters(absent=frozenset({"accepted_tokens"}))
    assert judge(counters=partial)["drafts_identity"].passed is None


def test_acceptance_tolerance_is_four_standard_errors() -> None:
    # K=1 is one coin: variance a (1 - a).
    assert acceptance_tolerance([0.5], 100) == pytest.approx(4 * 0.05)
    assert acceptance_tolerance([1.0] * 7, 100) == 0.0
    # The published variance of geometric acceptance with mean 3.07 at K=7 is 4.69.
    published = Acceptance(alpha=0.6912).rates(7)
    assert acceptance_tolerance(published, 1) == pytest.approx(4 * 4.69**0.5, rel=0.01)


def test_a_handful_at_a_rare_position_is_chance() -> None:
    # Three accepted of 400 where .4 are expected come up once in a hundred cells and more.
    assert 3 / 400 - 0.001 < position_tolerance(0.001, 400) < 0.03
    assert position_tolerance(0.5, 10_000) == pytest.approx(4 * 0.005, abs=0.001)
    assert position_tolerance(1.0, 10) == position_tolerance(0.0, 10) == 0.0


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


def test_configurations_that_are_not_told_are_not_checked() -> None:
    gates = pair({})
    assert gates["configuration"].passed is None
    assert gates["equal_work"].passed


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


def test_thinking_users_count_as_occupied(judge: Judge, make_replay: Replay) -> None:
    # One conversation a user, its turns 40 ms apart: 39 ms of thinking and 1 ms of lateness in 101 ms.
    data = make_replay(pause=40_000_000)
    turns = []
    for request in data.requests:
        number = sum(other.user == request.user for other in turns)
        due = request.dispatched - (1_000_000 if number else 0)
        where = {"conversation": f"c{request.user}", "turn": number, "scheduled": due}
        turns.append(replace(request, **where))
    gates = judge(replace(data, requests=tuple(turns)))
    assert gates["occupancy"].passed
    assert gates["occupancy"].value == pytest.approx(100 / 101)


def open_loop(data: ReplayData, *, late_ms: int = 0, cap_waits: int = 0) -> ReplayData:
    requests = tuple(replace(r, scheduled=r.dispatched - late_ms * 1_000_000) for r in data.requests)
    summary = replace(data.summary, cap_waits=cap_waits)
    return replace(data, requests=requests, summary=summary, concurrency=0)


def test_an_open_loop_is_judged_by_its_schedule_and_its_cap(judge: Judge, make_replay: Replay) -> None:
    data = make_replay()
    gates = judge(open_loop(data))
    assert failed(gates) == []
    assert "occupancy" not in gates
    assert failed(judge(open_loop(data, late_ms=6))) == ["schedule_lag"]
    held_back = judge(open_loop(data, cap_waits=3))
    assert failed(held_back) == ["in_flight_cap"]
    assert "3 requests had to wait" in held_back["in_flight_cap"].message
    assert "schedule_lag" not in judge(data)


def test_an_open_loop_without_a_window_fails(judge: Judge, make_replay: Replay) -> None:
    data = open_loop(make_replay())
    gates = judge(replace(data, summary=replace(data.summary, window_start=None)))
    assert failed(gates) == ["open_window"]
    assert "load.duration" in gates["open_window"].message
