"""Load levels from the group `load`, and what it refuses."""

import pytest

from engines.digest import canonical_json
from jobs.load import LoadLevel
from jobs.workload.conversation import RECORDED
from jobs.workload.tokens import TokenConversation, TokenTurn, TokenWorkload
from orchestrator.errors import ConfigError
from orchestrator.levels import check_one_axis, levels_of, open_loop_notes

CLOSED = {"concurrency": [1, 4], "rate": None, "rate_scale": None, "ramp": 0.0, "process": None}
OPEN = {**CLOSED, "concurrency": None, "rate": [2, 1], "duration": None, "max_inflight": 64}


def workload(starts: list[float | None]) -> TokenWorkload:
    turn = TokenTurn(keep=0, suffix=(1, 2), output_tokens=3)
    made = [TokenConversation(id=f"c{i}", turns=(turn,), start=start) for i, start in enumerate(starts)]
    return TokenWorkload(name="made", conversations=tuple(made), validity=RECORDED, tokenizer="none")


@pytest.mark.parametrize("value", [[], "many", 1.5, [1, "x"], True])
def test_bad_levels(value):
    with pytest.raises(ConfigError, match=r"load\.concurrency"):
        levels_of({"concurrency": value})


def test_level_zero():
    with pytest.raises(ConfigError, match="choose 1 or more"):
        levels_of({"concurrency": [0, 1]})


def test_levels_are_ordered():
    assert levels_of({"concurrency": [16, 1, 4, 1]}) == tuple(LoadLevel(concurrency=c) for c in (1, 4, 16))
    assert [level.label for level in levels_of({**OPEN, "rate": [10, 9.5, 2]})] == ["r2", "r9.5", "r10"]


def test_whole_rates_and_others_are_one_number():
    (whole,), (point,) = (levels_of({**OPEN, "rate": rate}) for rate in (2, 2.0))
    assert canonical_json(whole) == canonical_json(point)


def test_what_is_shared_by_the_levels():
    first, second = levels_of(OPEN)
    assert (first.rate, second.rate, first.max_inflight, first.arrivals) == (1.0, 2.0, 64, "poisson")
    assert levels_of({"rate_scale": 2})[0].arrivals == "trace"
    assert levels_of({**CLOSED, "ramp": 3.0})[1] == LoadLevel(concurrency=4, ramp=3.0)


@pytest.mark.parametrize(
    ("load", "words"),
    [
        ({**OPEN, "concurrency": [1]}, ["load.concurrency and load.rate", "load=open"]),
        ({**OPEN, "rate": None}, ["no level", "load.rate_scale"]),
        ({**OPEN, "rate": [0]}, ["load.rate has 0", "above 0"]),
        ({**OPEN, "rate": ["fast"]}, ["load.rate", "a number"]),
        ({**OPEN, "ramp": 1.0}, ["load.ramp", "one by one"]),
        ({**OPEN, "process": "bursts"}, ["load.process", "poisson, constant, trace"]),
        ({**OPEN, "process": "trace"}, ["load.process=trace", "load.rate_scale=1"]),
        ({**OPEN, "duration": 0.0}, ["load.duration"]),
        ({**OPEN, "max_inflight": 0}, ["load.max_inflight"]),
        ({**CLOSED, "process": "poisson"}, ["load.process", "open loop"]),
        ({**CLOSED, "duration": 5.0}, ["load.duration", "open loop"]),
        ({**CLOSED, "ramp": -1.0}, ["load.ramp"]),
    ],
)
def test_settings_that_do_not_go_together(load, words):
    with pytest.raises(ConfigError) as raised:
        levels_of(load)
    assert all(word in str(raised.value) for word in words), str(raised.value)


def test_one_sweep_has_one_kind_of_level():
    with pytest.raises(ConfigError, match=r"load\.concurrency and load\.rate;"):
        check_one_axis([*levels_of(OPEN), *levels_of(CLOSED)])
    with pytest.raises(ConfigError, match=r"load\.ramp belongs to the sweep"):
        check_one_axis([*levels_of(CLOSED), *levels_of({**CLOSED, "ramp": 1.0})])
    check_one_axis([*levels_of(CLOSED), *levels_of({**CLOSED, "concurrency": 64})])


def test_a_note_says_what_open_levels_send():
    assert open_loop_notes(levels_of(CLOSED), workload([None])) == []
    (note,) = open_loop_notes(levels_of({**OPEN, "process": "constant"}), workload([None] * 11))
    assert "constant arrivals, at most 64" in note
    assert "r1: 11 over about 10 s; r2: 11 over about 5 s" in note
    (note,) = open_loop_notes(
        levels_of({**OPEN, "process": "constant", "rate": 2, "duration": 10.0}), workload([None] * 5)
    )
    assert "r2: 20 over about 10 s, the workload 4 times" in note
