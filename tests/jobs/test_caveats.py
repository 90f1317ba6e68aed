from collections.abc import Callable
from dataclasses import replace

import pytest

from engines.base import Capabilities
from jobs.caveats import cell_caveats, engine_caveats, overlap_caveats
from jobs.replay.data import ReplayData
from jobs.result import Gate

METRICS = {
    "window/seconds": 1.0,
    "window/drain_share": 0.1,
    "window/in_flight": 20.0,
    "engine/preemptions": 0.0,
    "engine/waiting_peak": 0.0,
    "requests/single_chunk": 0.0,
    "cache/client_cached_tokens": 600.0,
}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"window/seconds": None}, "no steady window"),
        ({"window/drain_share": 0.4}, "the last 40% of the replay"),
        ({"engine/preemptions": 7.0}, "7 requests were preempted"),
        ({"engine/waiting_peak": 1.0}, "up to 1 request queued"),
        ({"requests/single_chunk": 3.0}, "3 of 20 answers came in one chunk"),
        ({"cache/client_cached_tokens": None}, "computed throughput is unknown"),
    ],
)
def test_each_caveat_has_its_cause(
    make_replay: Callable[..., ReplayData], changes: dict[str, float | None], words: str
) -> None:
    data = make_replay()
    assert cell_caveats(data, METRICS) == ()
    found = cell_caveats(data, {**METRICS, **changes})
    assert len(found) == 1
    assert words in found[0]


def test_a_queue_of_an_open_loop_is_held_against_what_is_in_flight(
    make_replay: Callable[..., ReplayData],
) -> None:
    data = replace(make_replay(), concurrency=0)
    assert cell_caveats(data, {**METRICS, "engine/waiting_peak": 2.0}) == ()
    assert len(cell_caveats(data, {**METRICS, "engine/waiting_peak": 3.0})) == 1


def test_windows_with_few_turns_in_common_say_so() -> None:
    assert overlap_caveats(None) == overlap_caveats(2 / 3) == overlap_caveats(1.0) == ()
    assert "60% of their turns in common" in overlap_caveats(0.6)[0]


def test_what_an_engine_says_of_itself_and_does_not_tell() -> None:
    able = Capabilities(emulated=False, cache_salt=True, cache_reset=False, caveats=("it is new",))
    gates = [
        Gate(name=name, passed=passed, message="m")
        for name, passed in (("a", True), ("b", None), ("c", False), ("d", None))
    ]
    assert engine_caveats(able, gates) == (
        "it is new",
        "not checked, as the engine does not tell what it takes: b, d",
    )
    assert engine_caveats(able, gates[:1]) == ("it is new",)
