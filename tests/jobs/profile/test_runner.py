"""Profiling a real server: the emulator, whose steps are held, timed and given up."""

from array import array
from collections.abc import Iterator
from dataclasses import replace

import pytest

from engines.registry import engine_named
from engines.spec import Drafter, EngineConfig, Model
from engines.vllm_http import control_client
from jobs.errors import ProfileError
from jobs.fleet import Fleet
from jobs.profile.hold import Hold, Holding
from jobs.profile.runner import ProfileRunner, can_trace
from jobs.profile.task import EngineProfile, ProfileFailed, ProfileReady, ProfileTask
from jobs.profile.window import Window, quiet
from tests.fleets import running

CONFIG = EngineConfig(
    engine="emulator",
    version=engine_named("emulator").version(None),
    model=Model(name="llama-3.1-8b", max_context=4096),
    device="emulated",
    flags={"gpu": "a10", "max_num_seqs": 4},
)
PROMPTS = tuple(array("I", range(100 * number, 100 * number + 600)) for number in range(1, 9))


def task(*configs: EngineConfig) -> ProfileTask:
    return ProfileTask(
        configs=configs,
        prompts=PROMPTS[:2],
        contexts=(200, 600),
        steps=10,
        repeats=2,
        traced=False,
        devices=1,
        engine_cores=1,
        load_cores=1,
        resource="engine_slot",
        seed=0,
        ready_seconds=60.0,
        stop_seconds=20.0,
        patience=30.0,
    )


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    with running(engine_named("emulator"), CONFIG) as fleet:
        yield fleet


def hold(fleet: Fleet, requests: int, *, max_tokens: int = 3000) -> Hold:
    engine, server = fleet.engine, fleet.servers[0]
    holding = Holding(engine=engine, server=server, prompts=PROMPTS[:requests], max_tokens=max_tokens)
    return Hold(holding)


def test_requests_are_held_in_decode_and_given_up(fleet: Fleet) -> None:
    before = fleet.counters()
    window = Window(fleet, requests=3, prompt=600, patience=30.0)
    with hold(fleet, 3) as held:
        window.open(held)
        found = window.wait(held, 20)
        assert fleet.counters().running == 3
    quiet(fleet)
    assert fleet.counters().running == 0
    assert fleet.counters().since(before).first_tokens == 3
    assert found.steps >= 20
    assert found.tokens_per_step == 1.0
    assert found.context == pytest.approx(600 + found.lead_tokens + found.steps / 2, abs=1.0)
    assert found.step_ms > 0


def test_more_requests_than_the_batch_holds_are_a_sentence(fleet: Fleet) -> None:
    window = Window(fleet, requests=6, prompt=600, patience=0.5)
    expected = pytest.raises(ProfileError, match=r"4 of 6 requests run and 2 wait.*--concurrency")
    with hold(fleet, 6) as held, expected:
        window.open(held)
    quiet(fleet)


def test_answers_that_end_too_early_are_a_sentence(fleet: Fleet) -> None:
    window = Window(fleet, requests=2, prompt=600, patience=30.0)
    expected = pytest.raises(ProfileError, match=r"requests ended.*--steps")
    with hold(fleet, 2, max_tokens=40) as held, expected:
        window.open(held)
        window.wait(held, 1000)


def test_a_refused_request_says_what_the_server_said(fleet: Fleet) -> None:
    window = Window(fleet, requests=1, prompt=600, patience=30.0)
    expected = pytest.raises(ProfileError, match=r"refused a request with 400.*4096")
    with hold(fleet, 1, max_tokens=4000) as held, expected:
        window.open(held)


def test_the_engine_answers_as_before_once_a_hold_is_over(fleet: Fleet) -> None:
    with control_client() as client:
        assert client.get(f"{fleet.servers[0].url}/health").status_code == 200


def test_an_arm_and_its_baseline_are_timed_at_both_contexts() -> None:
    arm = replace(CONFIG, drafter=Drafter(method="eagle3", k=3))
    assert not can_trace(arm)
    reports = list(ProfileRunner().run(task(CONFIG, arm)))
    assert not [report for report in reports if isinstance(report, ProfileFailed)]
    assert [report.label for report in reports if isinstance(report, ProfileReady)] == [
        "tp1/none",
        arm.label,
    ]
    plain, speculative = (report for report in reports if isinstance(report, EngineProfile))
    assert [round(found.context, -2) for found in plain.timed] == [200, 600]
    assert [len(windows) for windows in plain.windows] == [2, 2]
    assert plain.timed[0].tokens_per_step == 1.0
    assert speculative.timed[0].tokens_per_step > 1.2
    assert speculative.timed[0].step_ms > plain.timed[0].step_ms


def test_a_baseline_that_does_not_start_ends_the_profile() -> None:
    (report,) = ProfileRunner().run(task(replace(CONFIG, flags={"gpu": "none of them"})))
    assert isinstance(report, ProfileFailed)
    assert not report.fixable
