"""Load levels: what they are called and in which order they stand."""

from dataclasses import asdict

import pytest

from jobs.load import AXES, CONSTANT, POISSON, TRACE, LoadLevel, axis_and_value, level_label
from jobs.result import CellResult


@pytest.mark.parametrize(
    ("level", "axis", "value", "label"),
    [
        (LoadLevel(concurrency=16), "concurrency", 16.0, "c16"),
        (LoadLevel(rate=2.5), "rate", 2.5, "r2.5"),
        (LoadLevel(rate=1000000.0), "rate", 1e6, "r1000000"),
        (LoadLevel(rate_scale=1.5), "rate_scale", 1.5, "x1.5"),
    ],
)
def test_axis_number_and_label(level: LoadLevel, axis: str, value: float, label: str) -> None:
    assert (level.axis, level.value, level.label) == (axis, value, label)
    assert level_label(axis, value) == label
    assert level.is_open == (axis != "concurrency")
    assert LoadLevel(**asdict(level)) == level


def test_arrival_processes_have_defaults() -> None:
    assert LoadLevel(rate=1.0).arrivals == POISSON
    assert LoadLevel(rate_scale=1.0).arrivals == TRACE
    assert LoadLevel(rate_scale=1.0, process=CONSTANT).arrivals == CONSTANT
    assert LoadLevel(concurrency=1).arrivals == ""


def test_levels_have_an_order() -> None:
    levels = [LoadLevel(rate=10.0), LoadLevel(rate=9.0), LoadLevel(concurrency=100), LoadLevel(rate_scale=1)]
    ordered = sorted(levels, key=lambda level: level.sort_key)
    assert [level.label for level in ordered] == ["c100", "r9", "r10", "x1"]


@pytest.mark.parametrize("numbers", [{}, {"concurrency": 1, "rate": 1.0}, dict.fromkeys(AXES, 1)])
def test_exactly_one_number(numbers: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"exactly one of load\.concurrency, load\.rate, load\.rate_scale"):
        axis_and_value(**{**dict.fromkeys(AXES), **numbers})  # type: ignore[arg-type]  # names of the axes
    with pytest.raises(ValueError, match="exactly one of"):
        LoadLevel(**numbers)  # type: ignore[arg-type]  # names of the axes


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_a_rate_is_a_number_above_zero(rate: float) -> None:
    with pytest.raises(ValueError, match=r"load\.rate has"):
        LoadLevel(rate=rate)


def test_a_result_knows_its_level() -> None:
    result = CellResult(
        cell="c", arm="a", arm_label="tp1/none", layout="tp1", drafter="none", k=0, rate=2.5, block=0,
        segment=0, role="opening", outcome="measured", emulated=True,
    )  # fmt: skip
    assert (result.axis, result.level, result.load, result.concurrency) == ("rate", 2.5, "r2.5", None)
    assert CellResult.from_dict(result.to_dict()) == result
