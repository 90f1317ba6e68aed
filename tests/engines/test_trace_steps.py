"""Where the time of a step goes, on traces whose every microsecond is known."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engines.errors import EngineError
from engines.trace import read_events
from engines.trace_steps import WARMING, StepTimes, mean_times, step_times
from tests.engines.traces import device_trace, host_step, host_trace, write


def times(folder: Path, events: list[dict[str, Any]]) -> StepTimes:
    return step_times(read_events(write(folder / "t.json", events)))


def whole(found: StepTimes) -> float:
    return (
        found.forward_ms
        + found.attention_ms
        + found.draft_ms
        + found.sample_ms
        + found.overhead_ms
        + found.rest_ms
    )


def test_a_step_on_a_cpu(tmp_path: Path) -> None:
    found = times(tmp_path, host_trace(10))
    assert found.device == "cpu"
    assert found.steps == 10 - WARMING - 1  # nothing says when the last one ended
    assert found.step_ms == pytest.approx(2.5)
    assert found.attention_ms == pytest.approx(0.3)  # an op inside another counts once, the drafter's not
    assert found.forward_ms == pytest.approx(1.0 + 0.2 - 0.3)
    assert found.draft_ms == pytest.approx(0.3)
    assert found.sample_ms == pytest.approx(0.06)
    assert found.rest_ms == pytest.approx(0.05 + 0.05 + 0.05)
    assert found.overhead_ms == pytest.approx(0.1 + 0.04 + 0.01 + 2.5 - 1.4 - 0.46)
    assert whole(found) == pytest.approx(found.step_ms)
    assert (found.requests, found.positions) == (4.0, 4.0)


def test_steps_with_prefill_are_left_out(tmp_path: Path) -> None:
    events = host_trace(6)
    events += host_step(1000.0 + 6 * 2500, name="execute_context_1(256)_generation_3(12)")
    events += [event for number in range(7, 14) for event in host_step(1000.0 + number * 2500)]
    found = times(tmp_path, events)
    assert found.steps == 6  # the longest run without one
    assert found.step_ms == pytest.approx(2.5)


def test_the_detailed_names_of_steps_are_read_too(tmp_path: Path) -> None:
    name = "execute_16_context_0(sq0sk0sqsq0sqsk0)_generation_4(sq16sk1200sqsq64sqsk4800)"
    events = [event for number in range(8) for event in host_step(number * 2500.0, name=name)]
    assert times(tmp_path, events).positions == 4.0


def test_a_trace_without_decode_steps_says_so(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"5 steps and no two decode steps.*--steps"):
        times(tmp_path, host_trace(5))


@pytest.mark.parametrize("scopes", [True, False], ids=["V1 runner", "V2 runner"])
def test_a_step_on_a_gpu(tmp_path: Path, scopes: bool) -> None:
    found = times(tmp_path, device_trace(10, scopes=scopes))
    assert found.device == "gpu"
    assert found.steps == 10 - WARMING - 2  # the last one's first kernel ends the one before it
    assert found.step_ms == pytest.approx(1.2)
    assert found.attention_ms == pytest.approx(0.1)  # the drafter's is the drafter's
    assert found.forward_ms == pytest.approx(0.5)
    assert found.sample_ms == pytest.approx(0.05)
    assert found.draft_ms == pytest.approx(0.2)  # the copy beside it took no time of its own
    assert found.overhead_ms == pytest.approx(1.2 - 0.85)
    assert whole(found) == pytest.approx(found.step_ms)


def test_ranks_are_averaged(tmp_path: Path) -> None:
    one = times(tmp_path, host_trace(10))
    two = replace(one, step_ms=3.5, overhead_ms=one.overhead_ms + 1.0, scopes={})
    both = mean_times([one, two])
    assert both.step_ms == pytest.approx(3.0)
    assert both.scopes["forward"] == pytest.approx(0.5)
    assert whole(both) == pytest.approx(both.step_ms)
