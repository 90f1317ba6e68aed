"""The ceiling ladder: rungs, what is missing, and what a drafter captures."""

import math

import pytest

from analysis.capture import capture
from analysis.ceiling import COMPUTED, MEASURED, NOT_RUN, ceiling
from analysis.contrasts import contrasts
from analysis.formulas import end_to_end_speed_up
from tests.analysis.made import Arm, made_sweep

REAL = Arm(label="tp1/eagle3-k3", tokens=2.4, step=1.5, other=1.3)
PERFECT = Arm(label="tp1/free-k3-a1", drafter="free", tokens=4.0, step=1.25, synthetic=True, requested=4.0)
AS_OFTEN = Arm(
    label="tp1/free-k3-m2.4-0a1b", drafter="free", tokens=2.4, step=1.25, synthetic=True, requested=2.4
)
LOADED = Arm(label="tp1/eagle3-k3-loaded", tokens=1.0, step=15.317 / 14.374, counterfactual="loaded_only")
PLAN = {
    "arms": [
        {"digest": AS_OFTEN.digest, "config": {"drafter": {"acceptance": {"positions": [0.8, 0.4, 0.2]}}}},
        {"digest": PERFECT.digest, "config": {"drafter": {"acceptance": {"alpha": 1.0}}}},
    ]
}


def test_the_whole_ladder() -> None:
    frame = ceiling(made_sweep([REAL, PERFECT, AS_OFTEN, LOADED], plan=PLAN)).frame
    measured = frame[frame["source"] == MEASURED]
    assert measured["rung"].tolist() == [
        "baseline", "loaded, never asked", "real", "synthetic, measured positions", "perfect acceptance",
    ]  # fmt: skip
    assert measured["user_speed"].tolist() == pytest.approx(
        [1.0, 14.374 / 15.317, 2.4 / 1.5, 2.4 / 1.25, 4.0 / 1.25]
    )
    real = measured[measured["rung"] == "real"].iloc[0]
    assert real["capture_speed"] == pytest.approx(math.log(1.6) / math.log(3.2))
    assert real["capture_free_speed"] == pytest.approx(math.log(1.6) / math.log(1.92))
    assert real["capture_total"] == pytest.approx(
        math.log(real["total"]) / math.log(measured.iloc[-1]["total"])
    )
    missing = frame[frame["source"] == NOT_RUN]
    assert missing["rung"].tolist() == ["synthetic, geometric"]
    assert missing["how"].tolist() == ["drafter=free drafter.k=3 drafter.acceptance.length=2.40"]


def test_a_drafter_that_is_only_loaded_costs_what_was_published() -> None:
    """14.374 -> 15.317 ms at two requests, 77.164 -> 93.820 ms at 189."""
    loaded = Arm(
        label="tp1/eagle3-k3-loaded",
        step={2: 15.317 / 14.374, 189: 93.820 / 77.164},
        counterfactual="loaded_only",
    )
    frame = ceiling(made_sweep([loaded], levels=(2, 189))).frame
    rows = frame[frame["rung"] == "loaded, never asked"]
    assert (rows["step_ratio"] - 1).tolist() == pytest.approx([0.066, 0.216], abs=5e-4)


def test_perfect_acceptance_is_computed_where_it_was_not_run() -> None:
    section = ceiling(made_sweep([REAL]))
    rows = section.frame
    perfect = rows[rows["rung"] == "perfect acceptance"].iloc[0]
    assert perfect["source"] == COMPUTED
    assert perfect["user_speed"] == pytest.approx(4.0 / 1.5)
    assert perfect["total"] == pytest.approx(end_to_end_speed_up(0.8, 4.0 / 1.5, 1.3))
    assert perfect["how"] == "drafter=free drafter.k=3 drafter.acceptance.alpha=1"
    real = rows[rows["rung"] == "real"].iloc[0]
    assert real["capture_speed"] == pytest.approx(math.log(1.6) / math.log(4.0 / 1.5))
    assert math.isnan(real["capture_speed_lo"])
    assert rows.loc[rows["source"] == NOT_RUN, "how"].tolist() == [
        "drafter=eagle3 drafter.k=3 drafter.loaded_only=true",
        "drafter=free drafter.k=3 drafter.acceptance.from=made",
        "drafter=free drafter.k=3 drafter.acceptance.length=2.40",
    ]


def test_nothing_is_captured_of_a_ceiling_that_does_not_pay() -> None:
    dear = Arm(label="tp1/eagle3-k3", tokens=2.4, step=5.0)
    useless = Arm(label="tp1/free-k3-a1", drafter="free", tokens=4.0, step=4.5, synthetic=True, requested=4.0)
    real = ceiling(made_sweep([dear, useless])).frame.query("rung == 'real'").iloc[0]
    assert math.isnan(real["capture_total"])
    assert math.isnan(real["capture_speed"])


def test_the_share_of_a_ceiling_has_an_interval_unless_it_is_unbounded() -> None:
    def shares(noise: float) -> tuple[float, float, float]:
        cells = made_sweep([REAL, PERFECT], blocks=4, noise=noise).cells
        y = cells["user/speed_tok_s"].map(math.log).to_numpy()
        return capture(contrasts(cells, {"speed": y})["speed"], REAL.digest, PERFECT.digest)

    value, low, high = shares(0.01)
    assert low < math.log(1.6) / math.log(3.2) < high
    assert high - low < 0.15
    assert low < value < high
    assert math.isnan(shares(2.0)[1])


def test_without_any_drafter_every_rung_says_how() -> None:
    assert "specload sweep" in ceiling(made_sweep([], levels=())).missing
    loaded_only = ceiling(made_sweep([LOADED])).frame
    assert set(loaded_only.loc[loaded_only["source"] == NOT_RUN, "rung"]) == {
        "real", "synthetic, measured positions", "synthetic, geometric", "perfect acceptance",
    }  # fmt: skip
