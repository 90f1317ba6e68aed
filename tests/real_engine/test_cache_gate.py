"""Real vLLM: client and engine count alike, the cold gate holds, and a cache left warm is refused."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from engines.base import Server
from engines.spec import Drafter, EngineConfig
from engines.vllm import VllmEngine
from jobs.bench import Bench
from jobs.cache_state import CachePlan
from jobs.cell import measure_cell
from jobs.fleet import Fleet
from jobs.load import LoadLevel
from jobs.pairing import Pairing
from jobs.result import INVALID, OPENING, CellResult
from jobs.task import BlockTask, CellTask, RunTask
from jobs.workload.tokens import TokenConversation, TokenTurn, TokenWorkload
from tests.fleets import SHARED_CORES, running
from tests.lateness import broken

pytestmark = [pytest.mark.real_engine, pytest.mark.timeout(900)]

BLOCK = 32


class Careless(VllmEngine):
    """vLLM behind an adapter that claims resets it does not do, and knows no salts."""

    capabilities = replace(VllmEngine.capabilities, cache_salt=False)

    def reset_cache(self, server: Server) -> bool:
        return True


def conversations(count: int = 4) -> TokenWorkload:
    """Return conversations of two turns; first turns share 70 tokens: two whole blocks."""
    draws = random.Random(5)

    def text(length: int) -> list[int]:
        return [draws.randrange(10, 250) for _ in range(length)]

    shared = text(70)
    made = []
    for number in range(count):
        first = TokenTurn(keep=0, suffix=shared + text(40), output_tokens=10)
        second = TokenTurn(keep=110, suffix=text(50), output_tokens=10)
        made.append(TokenConversation(id=f"c{number}", turns=(first, second)))
    return TokenWorkload(name="made", conversations=tuple(made), validity="recorded", tokenizer="none")


@pytest.fixture(scope="module", params=["none", "ngram"])
def fleet(request: pytest.FixtureRequest, tiny: EngineConfig) -> Iterator[Fleet]:
    ngram = Drafter(method="ngram", k=3, options={"prompt_lookup_max": 4, "prompt_lookup_min": 2})
    config = tiny if request.param == "none" else replace(tiny, drafter=ngram)
    with running(VllmEngine(), config, ready_seconds=300.0) as fleet:
        yield fleet


@pytest.fixture
def measure(fleet: Fleet) -> Callable[..., CellResult]:
    def run(level: int, cache: CachePlan | None = None) -> CellResult:
        cell = CellTask(cell=f"c{level}-{random.randrange(2**40)}", level=LoadLevel(concurrency=level))
        run = RunTask(run="cache", config=fleet.config, role=OPENING, cells=(cell,))
        task = BlockTask(
            block=0,
            segment=0,
            devices=1,
            engine_cores=1,
            load_cores=1,
            resource="engine_slot",
            runs=(run,),
            workload=conversations(),
            workload_digest="d",
            seed=0,
            warmup_requests=1,
            warmup_rounds_max=1,
            cache=cache or CachePlan(),
            ready_seconds=300.0,
            stop_seconds=20.0,
            stall_seconds=120.0,
            cell_seconds=600.0,
        )
        bench = Bench(
            task=task,
            run=run,
            fleet=fleet,
            cores=SHARED_CORES,
            pairing=Pairing(),
            start_seconds=1.0,
        )
        return measure_cell(bench, cell, fresh=False).result

    return run


def test_a_cold_cell_has_equal_counts_and_exactly_the_shared_prefix(
    measure: Callable[..., CellResult],
) -> None:
    result = measure(1)
    assert broken(result) == {}
    for kind in ("output", "prompt", "computed"):
        client, engine = result.metrics[f"tokens/client_{kind}"], result.metrics[f"tokens/engine_{kind}"]
        assert client == engine
        assert client
    assert result.metrics["tokens/client_prompt"] == 4 * (110 + 160)
    assert result.metrics["tokens/client_output"] == 4 * 20
    assert result.metrics["cache/first_turn_cached_tokens"] == 3 * 2 * BLOCK
    assert result.metrics["cache/first_turn_expected_least"] == 3 * 2 * BLOCK
    assert result.metrics["cache/first_turn_expected_most"] == 3 * 2 * BLOCK
    assert result.identity["cache"]["how"] == "reset"


def test_several_users_stay_within_the_bounds_of_their_order(measure: Callable[..., CellResult]) -> None:
    assert broken(measure(4)) == {}


def test_a_cache_that_was_left_warm_is_refused(
    measure: Callable[..., CellResult], fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "engine", Careless())
    measure(1)
    result = measure(1)
    assert (result.outcome, set(broken(result))) == (INVALID, {"cold_cache"})
    message = broken(result)["cold_cache"]
    assert f"4 first turns met {4 * 3 * BLOCK} tokens in it" in message
    assert f"{3 * 2 * BLOCK} were expected" in message
    assert "4 met more than they could" in message


def test_a_primed_prefix_is_proven_and_met(measure: Callable[..., CellResult]) -> None:
    result = measure(1, CachePlan(state="primed"))
    assert broken(result) == {}
    assert result.metrics["cache/first_turn_cached_tokens"] == 4 * 2 * BLOCK
    assert result.identity["cache"]["proof"]["cached"] == 2 * BLOCK
