"""What a sweep is to find: refused where it cannot be found."""

import pytest

from jobs.slo import Slo
from orchestrator.errors import ConfigError
from orchestrator.goals import check_objective, check_price, slo_of
from orchestrator.plan import Plan


def test_limits_come_from_the_design():
    assert slo_of({"ttft_ms": 500, "tpot_ms": None, "e2el_ms": None}).limits == {"ttft_ms": 500.0}
    with pytest.raises(ConfigError, match=r"design\.slo\.ttft_ms is -1"):
        slo_of({"ttft_ms": -1, "tpot_ms": None, "e2el_ms": None})


def test_an_objective_has_to_be_known_and_measured():
    check_objective("user_speed", Slo())
    with pytest.raises(
        ConfigError, match=r"objective is 'speed' .did you mean user_speed\?.; choose one of total, comp"
    ):
        check_objective("speed", Slo())


def test_a_price_is_positive():
    check_price(None)
    with pytest.raises(ConfigError, match=r"design\.gpu_hour_price is 0"):
        check_price(0.0)


def test_limits_are_part_of_what_is_measured_and_goals_are_not(small_plan):
    data = small_plan.to_dict()
    assert data["slo"] == {"ttft_ms": None, "tpot_ms": None, "e2el_ms": None}
    with_goals = {**data, "objective": "output", "gpu_hour_price": 2.5, "currency": "EUR"}
    assert Plan.from_dict(with_goals).digest == small_plan.digest
    with pytest.raises(ValueError, match="was changed by hand"):
        Plan.from_dict({**data, "slo": {"ttft_ms": 500.0, "tpot_ms": None, "e2el_ms": None}})
