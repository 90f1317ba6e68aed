"""Parts that multiply to the ratio, and the identities beside them, with published values."""

import math

import numpy as np
import pandas as pd
import pytest

from analysis.decomposition import decomposition, identities
from analysis.frame import Sweep
from analysis.latency_parts import PARTS
from tests.analysis.made import Arm, made_sweep

EAGLE = Arm(label="tp1/eagle3-k3", tokens=2.4, step=1.5, other=1.3, uncached=1.1)
MATCHED = Arm(
    label="tp1/none-kv-matched-eagle3-k3",
    drafter="none",
    k=0,
    step=1.02,
    other=1.2,
    counterfactual="kv_matched",
    kv_of=EAGLE.digest,
)
STUDY = {
    10: {"throughput/total_tok_s": 1.29, "throughput/computed_tok_s": 1.73, "user/speed_tok_s": 2.13},
    16: {"throughput/total_tok_s": 0.91, "throughput/computed_tok_s": 0.80, "user/speed_tok_s": 1.41},
}


def split(sweep: Sweep, name: str = "total") -> pd.Series:
    frame = decomposition(sweep).frame
    return frame[frame["ratio"] == name].iloc[0]


def product(row: pd.Series) -> float:
    return float(np.prod([row[part] for part in PARTS if math.isfinite(row[part])]))


@pytest.mark.parametrize("noise", [0.0, 0.03])
@pytest.mark.parametrize("arms", [[EAGLE], [EAGLE, MATCHED]])
@pytest.mark.parametrize("name", ["total", "user_speed"])
def test_parts_multiply_to_the_ratio(arms: list[Arm], noise: float, name: str) -> None:
    row = split(made_sweep(arms, blocks=3, noise=noise), name)
    assert product(row) == pytest.approx(row["whole"], rel=1e-9)


def test_the_parts_of_user_speed_by_hand() -> None:
    row = split(made_sweep([EAGLE]), "user_speed")
    assert row["whole"] == pytest.approx(2.4 / 1.5)
    assert (row["acceptance"], row["step_cost"]) == (pytest.approx(2.4), pytest.approx(1 / 1.5))
    assert row["residual"] == pytest.approx(1.0)
    assert row[["non_decode", "cached_share", "kv_capacity"]].isna().all()


def test_the_parts_of_total_throughput_by_hand() -> None:
    """f = .8: latency .8 x 1.5/2.4 + .2 x 1.3 = .76; logarithmic means weigh its two parts."""
    row = split(made_sweep([EAGLE]))
    assert row["whole"] == pytest.approx(1 / 0.76)

    def mean(a: float, b: float) -> float:
        return (a - b) / math.log(a / b)

    decode, rest = mean(0.5, 0.8) / mean(0.76, 1.0), mean(0.26, 0.2) / mean(0.76, 1.0)
    assert row["acceptance"] == pytest.approx(2.4**decode)
    assert row["step_cost"] == pytest.approx(1.5**-decode)
    assert row["cached_share"] == pytest.approx(1.1**-rest)
    assert row["non_decode"] == pytest.approx((1.3 / 1.1) ** -rest)
    assert row["residual"] == pytest.approx(1.0)
    assert math.isnan(row["kv_capacity"])


def test_the_matched_baseline_takes_its_part_out_of_the_others() -> None:
    """Its own ratio: latency .8 x 1.02 + .2 x 1.2 = 1.056. What it explains leaves the other parts."""
    section = decomposition(made_sweep([EAGLE, MATCHED], blocks=2))
    row = section.frame[section.frame["ratio"] == "total"].iloc[0]
    assert row["kv_capacity"] == pytest.approx(1 / 1.056)
    assert row["whole"] == pytest.approx(1 / 0.76)
    alone = split(made_sweep([EAGLE], blocks=2))
    assert row["step_cost"] > alone["step_cost"]
    assert row["non_decode"] > alone["non_decode"]
    assert not any("drafter.kv=matched" in note for note in section.notes)
    assert any("drafter.kv=matched" in note for note in decomposition(made_sweep([EAGLE])).notes)


def test_a_matched_baseline_that_is_missing_in_a_block_is_not_used() -> None:
    whole = made_sweep([EAGLE, MATCHED], blocks=2)
    lost = (whole.cells["arm"] == MATCHED.digest) & (whole.cells["block"] == 1)
    cells = whole.cells[~lost].reset_index(drop=True)
    row = split(Sweep(directory=whole.directory, plan={}, cells=cells, results=[]))
    assert math.isnan(row["kv_capacity"])
    assert product(row) == pytest.approx(row["whole"])


def test_what_was_not_counted_is_missing_and_stays_in_other_time() -> None:
    unknown = {4: {"cache/client_cached_tokens": None}}
    row = split(made_sweep([Arm(label="tp1/a-k3", tokens=2.4, step=1.5, other=1.3, figures=unknown)]))
    assert math.isnan(row["cached_share"])
    assert product(row) == pytest.approx(row["whole"]) == pytest.approx(1 / 0.76)


def test_an_open_loop_has_no_parts_of_its_throughput() -> None:
    section = decomposition(made_sweep([EAGLE], concurrency=None, rate=2.5))
    assert section.frame["ratio"].tolist() == ["user_speed"]
    assert any("open loop" in note for note in section.notes)
    assert identities(made_sweep([EAGLE], concurrency=None, rate=2.5)).frame["h"].notna().all()


def test_intervals_come_from_the_spread_of_the_blocks() -> None:
    row = split(made_sweep([EAGLE], blocks=4, noise=0.02))
    for part in ("whole", "acceptance", "step_cost", "non_decode", "residual"):
        assert row[f"{part}_lo"] < row[part] < row[f"{part}_hi"]
    assert split(made_sweep([EAGLE]))[["whole_lo", "whole_hi"]].isna().all()


def test_identities_of_the_published_study() -> None:
    """MAL 3.07 at both levels; f = .83 as published for another workload of the study."""
    study = Arm(label="tp1/dflash-k7", k=7, tokens=3.07, ratios=STUDY)
    section = identities(made_sweep([study], levels=(10, 16), share=0.83))
    ten, sixteen = (section.frame.iloc[place] for place in (0, 1))
    assert (ten["step_ratio"], sixteen["step_ratio"]) == pytest.approx((1.441, 2.177), abs=5e-4)
    assert (ten["uncached_share"], sixteen["uncached_share"]) == pytest.approx((1.341, 0.879), abs=5e-4)
    assert (ten["h_implied"], sixteen["h_implied"]) == pytest.approx((2.27, 3.00), abs=5e-3)
    assert (ten["decode_share"], ten["uncached_counted"]) == pytest.approx((0.83, 1.0))
    assert sum("equal hit rates" in note for note in section.notes) == 2


def test_identities_hold_on_what_hangs_together() -> None:
    row = identities(made_sweep([EAGLE])).frame.iloc[0]
    assert row["little"] == pytest.approx(1.0)
    assert (row["h"], row["h_implied"]) == (pytest.approx(1.3), pytest.approx(1.3))
    assert row["latency"] == pytest.approx(0.76)
    assert row["uncached_share"] == pytest.approx((550 + 100) / (500 + 100))
    assert row["uncached_counted"] == pytest.approx(row["uncached_share"])


def test_a_sweep_without_drafters_says_what_to_run() -> None:
    assert "specload sweep" in decomposition(made_sweep([])).missing
    assert "specload sweep" in identities(made_sweep([])).missing
