"""Whole cells on a real emulator process: identities hold, the cache is what it is said to be."""

import json
import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engines.acceptance import Acceptance
from engines.base import Capabilities
from engines.counters import Counters
from engines.emulator import EMULATOR_VERSION
from engines.emulator.adapter import EmulatorEngine
from engines.spec import Drafter, EngineConfig, Layout, Model
from engines.strategy import CacheStrategy
from jobs.bench import Bench
from jobs.block import BlockRunner
from jobs.cache_state import CachePlan
from jobs.cell import measure_cell
from jobs.fleet import Fleet
from jobs.load import LoadLevel
from jobs.pairing import Pairing
from jobs.result import FAILED, INVALID, MEASURED, OPENING, TREATMENT, CellResult, Gate
from jobs.task import BlockTask, CellReport, CellTask, EngineReport, EngineStopped, RunTask, StepStarted
from jobs.workload.tokens import TokenConversation, TokenTurn, TokenWorkload
from tests.fleets import SHARED_CORES, running
from tests.lateness import broken

CONFIG = EngineConfig(
    engine="emulator",
    version=EMULATOR_VERSION,
    model=Model(name="llama-3.1-8b", max_context=4096),
    drafter=Drafter(),
    device="emulated",
    flags={"gpu": "h100", "noise": {"start": 0.0, "drift": 0.0, "step": 0.0}, "time_scale": 0.1},
)
SHARED = 50
"""Tokens that all prompts start with: three whole blocks of 16."""


def conversations(count: int = 8, turns: int = 2) -> TokenWorkload:
    draws = random.Random(3)

    def text(length: int) -> list[int]:
        return [draws.randrange(32_000) for _ in range(length)]

    shared = text(SHARED)
    made = []
    for number in range(count):
        first = TokenTurn(keep=0, suffix=shared + text(30), output_tokens=12)
        later = [
            TokenTurn(keep=80 + 40 * turn, suffix=text(40), output_tokens=12) for turn in range(turns - 1)
        ]
        made.append(TokenConversation(id=f"c{number}", turns=(first, *later)))
    return TokenWorkload(name="made", conversations=tuple(made), validity="recorded", tokenizer="none")


WORKLOAD = conversations()


def task(*runs: RunTask, workload: TokenWorkload = WORKLOAD, **changes: object) -> BlockTask:
    fields: dict[str, object] = {
        "block": 0,
        "segment": 0,
        "devices": 1,
        "engine_cores": 1,
        "load_cores": 1,
        "resource": "engine_slot",
        "runs": runs,
        "workload": workload,
        "workload_digest": "d",
        "seed": 0,
        "warmup_requests": 1,
        "ready_seconds": 60.0,
        "stop_seconds": 5.0,
        "stall_seconds": 30.0,
        "cell_seconds": 120.0,
    }
    return BlockTask(**{**fields, **changes})  # type: ignore[arg-type]  # fields by name


def run_task(config: EngineConfig, *levels: int, role: str = OPENING) -> RunTask:
    cells = tuple(
        CellTask(cell=f"{role}-{config.drafter.method}-{index}-c{level}", level=LoadLevel(concurrency=level))
        for index, level in enumerate(levels)
    )
    return RunTask(run=f"{role}-{config.drafter.method}", config=config, role=role, cells=cells)


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    with running(EmulatorEngine(), CONFIG) as fleet:
        yield fleet


@pytest.fixture
def measure(fleet: Fleet) -> Callable[..., CellReport]:
    def run(
        level: int, *, pairing: Pairing | None = None, fresh: bool = False, **changes: object
    ) -> CellReport:
        runs = run_task(CONFIG, level)
        bench = Bench(
            task=task(runs, **changes),
            run=runs,
            fleet=fleet,
            cores=SHARED_CORES,
            pairing=pairing or Pairing(),
            start_seconds=1.0,
        )
        return measure_cell(bench, runs.cells[0], fresh=fresh)

    return run


def gates(result: CellResult) -> dict[str, Gate]:
    return {gate.name: gate for gate in result.gates}


def test_what_an_engine_counts_late_is_of_the_replay_it_belongs_to(
    measure: Callable[..., CellReport], fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = fleet.counters
    snapshots = [read()]

    def late() -> Counters:
        """Return what was true when somebody last asked."""
        snapshots.append(read())
        return snapshots[-2]

    monkeypatch.setattr(fleet, "counters", late)
    found = gates(measure(1).result)
    for name in ("output_identity", "prompt_identity", "computed_identity"):
        assert found[name].passed, found[name].message


def test_one_user_after_another_meets_exactly_the_shared_prefix(measure: Callable[..., CellReport]) -> None:
    report = measure(1)
    result = report.result
    assert broken(result) == {}
    # Seven of eight conversations find the three blocks that the first one computed.
    assert result.metrics["cache/first_turn_cached_tokens"] == 7 * 48
    assert result.metrics["cache/first_turn_expected_least"] == 7 * 48
    assert result.metrics["cache/first_turn_expected_most"] == 7 * 48
    assert "336 were expected" in gates(result)["cold_cache"].message
    assert result.metrics["tokens/client_computed"] == result.metrics["tokens/engine_computed"]
    # Second turns of 120 tokens find the 80 of the first (five blocks).
    assert result.metrics["turn/cached_share_1"] == pytest.approx(80 / 120)
    assert result.metrics["session/count"] == 8
    assert result.metrics["cache/ideal_hit_rate"] == pytest.approx(result.metrics["cache/hit_rate"])
    cache = result.identity["cache"]
    assert (cache["state"], cache["how"], cache["reset_tries"]) == ("cold", "reset", 1)
    assert result.metrics["warmup/rounds"] in (1.0, 2.0, 3.0)
    slices = json.loads(report.files["slices.json"])
    assert slices["by_turn"]["0"]["requests"] == 8
    assert slices["by_context"]["0_1k"]["tokens"] == 16 * 11


def test_several_users_stay_within_the_bounds_of_their_order(measure: Callable[..., CellReport]) -> None:
    result = measure(4).result
    assert broken(result) == {}
    cached, least, most = (
        result.metrics[f"cache/first_turn_{name}"]
        for name in ("cached_tokens", "expected_least", "expected_most")
    )
    assert least is not None
    assert cached is not None
    assert most is not None
    assert least <= cached <= most
    assert most <= 2 * 8 * 48  # two epochs


def test_a_cache_that_was_left_warm_is_refused_by_what_the_engine_reports(
    measure: Callable[..., CellReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    # An engine that claims a reset it does not do, and knows no salts: only its own figures tell.
    able = Capabilities(
        emulated=True, cache_salt=False, cache_reset=True, request_options={"ignore_eos": True}
    )
    monkeypatch.setattr(EmulatorEngine, "capabilities", able)
    measure(1)
    monkeypatch.setattr(EmulatorEngine, "reset_cache", lambda self, server: True)
    result = measure(1).result
    assert result.outcome == INVALID
    assert set(broken(result)) == {"cold_cache"}
    message = gates(result)["cold_cache"].message
    assert "8 first turns met 512 tokens in it" in message  # four of five blocks: all that may be served
    assert "336 were expected" in message
    assert "8 met more than they could" in message


@pytest.mark.parametrize(
    ("prime", "prompts", "first_turn", "salted"),
    [("prefix", 1, 48, True), ("first_turns", 8, 64, False), (70, 8, 64, True), ("all", 16, 64, False)],
)
def test_a_primed_cache_is_proven_and_met(
    measure: Callable[..., CellReport],
    monkeypatch: pytest.MonkeyPatch,
    prime: str | int,
    prompts: int,
    first_turn: int,
    salted: bool,
) -> None:
    if not salted:
        able = replace(EmulatorEngine.capabilities, cache_salt=False)
        monkeypatch.setattr(EmulatorEngine, "capabilities", able)
    result = measure(1, cache=CachePlan(state="primed", prime=prime)).result
    assert broken(result) == {}
    assert result.metrics["cache/first_turn_cached_tokens"] == 8 * first_turn
    assert result.metrics["cache/first_turn_expected_least"] == 8 * first_turn
    cache = result.identity["cache"]
    assert (cache["state"], cache["primed_prompts"]) == ("primed", prompts)
    assert cache["proof"]["cached"] == cache["proof"]["expected"] > 0


def test_what_cannot_be_primed_is_said(measure: Callable[..., CellReport]) -> None:
    plan = CachePlan(state="primed", prime=12)
    result = measure(1, cache=plan).result
    assert result.outcome == FAILED
    assert result.cause == "workload"
    assert "finds 12 tokens at most to prime" in (result.reason or "")


def test_the_windows_of_a_pair_are_compared(measure: Callable[..., CellReport]) -> None:
    pairing = Pairing()
    first = measure(2, pairing=pairing).result
    second = measure(2, pairing=pairing).result
    assert first.metrics["window/turn_overlap"] is None
    assert second.metrics["window/turn_overlap"] is not None
    assert 0.5 < second.metrics["window/turn_overlap"] <= 1.0
    assert gates(second)["equal_work"].passed


def test_requests_that_all_fail_are_a_failed_cell_without_a_zero(
    measure: Callable[..., CellReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    able = replace(EmulatorEngine.capabilities, request_options={"model": "nobody"})
    monkeypatch.setattr(EmulatorEngine, "capabilities", able)
    report = measure(1)
    result = report.result
    assert (result.outcome, result.cause) == (FAILED, "all_requests_failed")
    assert "16 of 16 requests failed (16 http_404)" in (result.reason or "")
    assert result.metrics["throughput/total_tok_s"] is None
    assert result.metrics["latency/ttft_p50_ms"] is None
    assert report.files["requests.parquet"]


def test_an_engine_without_reset_and_salts_is_started_anew_for_each_cell(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # core leases of its own
    able = replace(EmulatorEngine.capabilities, cache_salt=False, cache_reset=False)
    monkeypatch.setattr(EmulatorEngine, "capabilities", able)
    drafter = Drafter(method="eagle3", k=2, acceptance=Acceptance(alpha=0.7))
    runs = (run_task(CONFIG, 1, 2), run_task(replace(CONFIG, drafter=drafter), 1, role=TREATMENT))
    reports = list(BlockRunner().run(task(*runs)))
    results = [report.result for report in reports if isinstance(report, CellReport)]
    assert [result.concurrency for result in results] == [1, 2, 1]
    assert [report.run for report in reports if isinstance(report, EngineReport | EngineStopped)] == [
        "opening-none",
        "opening-none",
        "opening-none-engine2",
        "opening-none-engine2",
        "treatment-eagle3",
        "treatment-eagle3",
    ]
    steps = [(report.run, report.load) for report in reports if isinstance(report, StepStarted)]
    assert steps == [
        ("opening-none", ""),
        ("opening-none", "c1"),
        ("opening-none", "c2"),  # begun, and found to need a fresh engine
        ("opening-none-engine2", ""),
        ("opening-none-engine2", "c2"),
        ("treatment-eagle3", ""),
        ("treatment-eagle3", "c1"),
    ]
    assert [result.identity["cache"]["how"] for result in results] == ["fresh_engine"] * 3
    assert [broken(result) for result in results] == [{}, {}, {}]
    assert all(result.outcome in (MEASURED, INVALID) for result in results)
    assert results[2].metrics["window/turn_overlap"] is not None


def measured_on(config: EngineConfig) -> CellResult:
    """One user after another, on an engine of its own."""
    runs = run_task(config, 1)
    with running(EmulatorEngine(), config) as fleet:
        bench = Bench(
            task=task(runs, devices=config.layout.devices),
            run=runs,
            fleet=fleet,
            cores=SHARED_CORES,
            pairing=Pairing(),
            start_seconds=1.0,
        )
        return measure_cell(bench, runs.cells[0], fresh=True).result


def test_an_engine_without_a_prefix_cache_has_to_report_no_cached_token() -> None:
    result = measured_on(replace(CONFIG, cache=CacheStrategy(prefix_caching=False)))
    assert broken(result) == {}
    assert result.identity["cache"]["how"] == "off"
    gate = gates(result)["cold_cache"]
    assert (gate.value, gate.limit) == (0.0, 0.0)
    assert "16 requests met 0 tokens" in gate.message


def test_pinned_conversations_meet_exactly_what_their_own_rank_holds() -> None:
    """Eight first turns in two caches: each rank's first meets nothing, the others the shared prefix."""
    result = measured_on(replace(CONFIG, layout=Layout(dp=2, routing="pinned")))
    assert broken(result) == {}
    gate = gates(result)["cold_cache"]
    assert gate.value == gate.limit == 6 * 48, "three whole blocks of 16"
    assert "no least" not in gate.message
