"""The K sweep on tables with known answers, and on sweeps made by hand."""

import math
from pathlib import Path

import numpy as np
import pytest

from analysis.bestk import best_k, best_of
from analysis.contrasts import Contrasts
from analysis.crossover import find_crossings
from analysis.curves import FITS, MISSES
from analysis.frame import Sweep, cells_frame
from analysis.ksweep import k_sweep
from analysis.positions import COUNTED, DIFFERENCED, positions
from analysis.stepcost import BY_FREE, BY_PROFILE, step_cost
from tests.analysis.made import Arm, made_results, made_sweep

SPEC_BENCH = {
    1: {1: 1.29, 8: 1.28, 16: 1.26, 32: 1.23, 64: 1.19, 128: 1.14, 256: 1.08, 512: 1.04},
    3: {1: 1.81, 8: 1.73, 16: 1.65, 32: 1.52, 64: 1.36, 128: 1.18, 256: 1.03, 512: 0.93},
    5: {1: 2.01, 8: 1.86, 16: 1.73, 32: 1.53, 64: 1.29, 128: 1.07, 256: 0.90, 512: 0.78},
}
"""Published throughput speed-ups of EAGLE on an H100 (gsm8k): K -> batch -> ratio."""


def published(speeds: dict[int, dict[int, float]]) -> Sweep:
    """A sweep whose total throughput ratios are those of a table."""
    arms = [
        Arm(
            label=f"tp1/eagle-k{k}",
            drafter="eagle",
            k=k,
            ratios={level: {"throughput/total_tok_s": ratio} for level, ratio in ratios.items()},
        )
        for k, ratios in speeds.items()
    ]
    return made_sweep(arms, levels=list(next(iter(speeds.values()))))


@pytest.fixture(scope="module")
def gsm8k() -> Sweep:
    return published(SPEC_BENCH)


def test_the_best_k_falls_with_the_load_as_published(gsm8k: Sweep) -> None:
    """5 -> 3 between batch 32 and 64, 3 -> 1 between 128 and 256."""
    section = best_k(gsm8k)
    rows = section.frame[section.frame["objective"] == "total"]
    assert dict(zip(rows["level"], rows["best_k"], strict=True)) == {
        1: 5, 8: 5, 16: 5, 32: 5, 64: 3, 128: 3, 256: 1, 512: 1,
    }  # fmt: skip
    assert rows["chance"].isna().all(), "one block says nothing of how sure it is"
    assert rows["ratio"].tolist() == pytest.approx([2.01, 1.86, 1.73, 1.53, 1.36, 1.18, 1.08, 1.04])
    (said,) = [note for note in section.notes if "total throughput" in note]
    assert "K=5 at C=1 to C=32, K=3 at C=64 to C=128, K=1 at C=256 to C=512" in said


def test_the_longer_the_draft_the_earlier_it_crosses(gsm8k: Sweep) -> None:
    """K=5 between 128 and 256, K=3 between 256 and 512, K=1 not by 512."""
    frame = k_sweep(gsm8k).frame
    found = {}
    for k, own in frame.groupby("k"):
        crossings = find_crossings(own["level"].tolist(), np.log(own["total"]).tolist())
        found[k] = [(crossing.lower, crossing.upper) for crossing in crossings]
    assert found == {1: [], 3: [(256, 512)], 5: [(128, 256)]}


def test_acceptance_rises_and_speed_falls() -> None:
    """EAGLE at K = 2, 4, 7 on one request: 201.69, 198, 169.92 tok/s over 133."""
    sweep = published({2: {1: 201.69 / 133}, 4: {1: 198 / 133}, 7: {1: 169.92 / 133}})
    row = best_k(sweep).frame.iloc[0]
    assert (row["objective"], row["best_k"], row["ties"]) == ("total", 2, "")
    assert row["ratio"] == pytest.approx(1.5165, abs=5e-5)
    assert row["margin"] == pytest.approx(201.69 / 198)


def arms_of(*ks: int, drafter: str = "eagle3", v: float = 0.05, d: float = 0.03, c: float = 0.1) -> list[Arm]:
    """A drafter whose acceptance is alpha .7 and whose step is 1 + c + (v + d) K."""
    return [
        Arm(
            label=f"tp1/{drafter}-k{k}",
            drafter=drafter,
            k=k,
            tokens=sum(0.7**i for i in range(k + 1)),
            step=1 + c + (v + d) * k,
        )
        for k in ks
    ]


def test_figures_come_back_with_their_intervals() -> None:
    sweep = made_sweep(arms_of(1, 3, 7), levels=(4, 8), blocks=4, noise=0.01)
    frame = k_sweep(sweep).frame
    assert frame[["drafter", "level", "k"]].to_numpy().tolist() == [
        ["tp1/eagle3", level, k] for level in (4.0, 8.0) for k in (1, 3, 7)
    ]
    truth = frame["k"].map({1: 1.18, 3: 1.34, 7: 1.66})
    assert (frame["step_ratio"] / truth).tolist() == pytest.approx([1.0] * 6, abs=0.03)
    assert (frame["step_ratio_lo"] < frame["step_ratio"]).all()
    assert (frame["step_ratio"] < frame["step_ratio_hi"]).all()
    assert frame["quotient"].to_numpy() == pytest.approx(
        (frame["tokens_per_step"] / frame["step_ratio"]).to_numpy()
    )
    assert frame["step_ratio_clock"].to_numpy() == pytest.approx(
        (frame["tokens_per_step"] / frame["user_speed"]).to_numpy()
    )
    assert (frame["pairs"] == 4).all()


def test_the_step_cost_of_a_drafter() -> None:
    row = step_cost(made_sweep(arms_of(1, 3, 7))).frame.iloc[0]
    assert (row["alpha"], row["c"], row["s"]) == pytest.approx((0.7, 0.1, 0.08), abs=1e-6)
    assert (row["alpha_fit"], row["step_fit"], row["lengths"]) == (FITS, FITS, "1, 3, 7")
    assert row["t0_ms"] == pytest.approx(12.0, rel=0.2)
    assert row["best_k"] == 7
    assert math.isnan(row["v"])
    assert math.isnan(row["s_lo"]), "one block has no interval"


def test_a_free_drafter_tells_verifying_from_drafting() -> None:
    section = step_cost(
        made_sweep([*arms_of(1, 3, 7), *arms_of(1, 3, 7, drafter="free", d=0.0)], blocks=4, noise=0.002)
    )
    rows = section.frame.set_index("drafter")
    own = rows.loc["tp1/eagle3"]
    assert own["split"] == BY_FREE
    assert own["v_lo"] < own["v"] < own["v_hi"]
    assert (own["v"], own["d"]) == (pytest.approx(0.05, abs=0.004), pytest.approx(0.03, abs=0.004))
    assert own["v"] + own["d"] == pytest.approx(own["s"])
    free = rows.loc["tp1/free"]
    assert (free["split"], free["d"]) == (BY_FREE, 0.0), "it drafts for nothing: all of its s is verifying"
    assert (free["v"], free["v_lo"], free["v_hi"]) == (free["s"], free["s_lo"], free["s_hi"])


def test_a_real_and_a_forced_arm_of_one_length_are_two_drafters() -> None:
    forced = Arm(label="tp1/synthetic-k3", tokens=3.0, step=1.2, synthetic=True, requested=3.0)
    frame = k_sweep(made_sweep([*arms_of(3, 7), forced])).frame
    assert list(zip(frame["drafter"], frame["k"], frame["synthetic"], strict=True)) == [
        ("tp1/eagle3", 3, False),
        ("tp1/eagle3", 7, False),
        ("tp1/synthetic", 3, True),
    ]


def test_a_profile_tells_them_apart_too(tmp_path: Path) -> None:
    sweep = made_sweep(arms_of(3), levels=(4, 8))
    arm = arms_of(3)[0].digest
    folder = tmp_path / "profiles" / "arm" / "c4-n100"
    folder.mkdir(parents=True)
    (folder / "profile.json").write_text(
        f"""{{"source": "trace", "concurrency": 4, "contexts": [100], "arms": [], "notes": [], "engines": [
        {{"arm": "b", "label": "tp1/none", "k": 0, "step_ms": 10.0, "parts": []}},
        {{"arm": "{arm}", "label": "tp1/eagle3-k3", "k": 3, "step_ms": 14.0, "parts": [
            {{"name": "verification overhead", "ms": 1.5}}, {{"name": "drafting", "ms": 0.9}}]}}]}}"""
    )
    rows = step_cost(Sweep(directory=tmp_path, plan={}, cells=sweep.cells, results=sweep.results)).frame
    assert rows["split"].tolist() == [BY_PROFILE, ""]
    assert rows.loc[0, ["v", "d"]].tolist() == pytest.approx([0.05, 0.03])
    (folder / "profile.json").write_text("{}")
    with pytest.raises(ValueError, match=r"profile\.json is damaged"):
        step_cost(Sweep(directory=tmp_path, plan={}, cells=sweep.cells, results=sweep.results))


def test_the_two_clocks_are_held_against_each_other() -> None:
    apart = Arm(label="tp1/ngram-k3", drafter="ngram", tokens=2.0, figures={4: {"user/speed_tok_s": 100.0}})
    section = k_sweep(made_sweep([apart]))
    assert any("tp1/ngram K=3 at C=4" in note and "clock" in note for note in section.notes)
    assert not any("clock" in note for note in k_sweep(made_sweep(arms_of(3))).notes)


def test_who_is_no_drafter_has_no_row() -> None:
    matched = Arm(label="tp1/none-kv-matched", drafter="none", k=0, counterfactual="kv_matched", kv_of="x")
    loaded = Arm(label="tp1/eagle3-k3-loaded", counterfactual="loaded_only")
    sweep = made_sweep([*arms_of(3), matched, loaded])
    assert k_sweep(sweep).frame["k"].tolist() == [3]
    assert step_cost(sweep).frame["lengths"].tolist() == ["3"]
    assert len(k_sweep(made_sweep(arms_of(3), kind="search")).frame) == 1
    later = made_sweep(arms_of(3), kind="confirmation")
    assert k_sweep(later).frame.empty
    assert "specload sweep" in k_sweep(later).missing


def test_the_noise_of_counterfactual_arms_widens_no_interval() -> None:
    wild = Arm(
        label="tp1/eagle3-k3-loaded",
        step={4: 1.0},
        counterfactual="loaded_only",
        figures={4: {"step/mean_ms": 1.0}},
    )
    alone, beside = (
        k_sweep(made_sweep(arms, blocks=3, noise=0.01)).frame.iloc[0]
        for arms in (arms_of(3), [*arms_of(3), wild])
    )
    for row in (alone, beside):
        assert 1.0 < row["step_ratio_hi"] / row["step_ratio_lo"] < 1.1


def test_crowded_cells_are_never_pooled_with_the_others() -> None:
    quiet = made_results(arms_of(3), blocks=2)
    crowded = [
        type(cell).from_dict({**cell.to_dict(), "cell": f"x{cell.cell}", "block": cell.block + 2})
        for cell in made_results(arms_of(3, c=0.6), blocks=2, oversubscribed=True)
    ]
    results = [*quiet, *crowded]
    frame = k_sweep(Sweep(directory=Path("x"), plan={}, cells=cells_frame(results), results=results)).frame
    assert frame["oversubscribed"].tolist() == [False, True]
    assert frame["step_ratio"].tolist() == pytest.approx([1.34, 1.84])


def test_chances_and_ties_come_from_the_joint_draws() -> None:
    """Two arms one standard error of their difference apart: the first is ahead in 84 % of the draws."""
    error = 0.01
    part = Contrasts(
        arms=("a", "b"),
        means=np.array([0.30 + error, 0.30]),
        shares=np.array([[1.5, 1.0], [1.0, 1.5]]),
        pairs=(4, 4),
        variance=error**2,
        df=10_000,
    )
    found = best_of(part, {"a": 3, "b": 5})
    assert (found["k"], found["ties"]) == (3, (5,))
    assert found["chance"] == pytest.approx(0.8413, abs=0.02)
    assert sum(found["chances"].values()) == pytest.approx(1.0)
    assert found["chances"][0] == 0.0
    clear = best_of(part.of(["b"]), {"b": 5})
    assert (clear["k"], clear["ties"], clear["chance"]) == (5, (), 1.0)


def test_positions_are_counted_or_follow_from_the_lengths() -> None:
    counted = [
        Arm(label="tp1/mtp-k2", drafter="mtp", k=2, tokens=2.2, figures={
            4: {"spec/acceptance_pos_1": 0.8, "spec/acceptance_pos_2": 0.4, "spec/drafts": 10.0}})
    ]  # fmt: skip
    frame = positions(made_sweep(counted)).frame
    assert frame["source"].tolist() == [COUNTED, COUNTED]
    assert frame["conditional"].tolist() == pytest.approx([0.8, 0.5])
    told = [
        Arm(label=f"tp1/mtp-k{k}", drafter="mtp", k=k, tokens=t) for k, t in ((1, 1.79), (2, 2.27), (3, 2.26))
    ]
    section = positions(made_sweep(told))
    own = section.frame[section.frame["k"] == 3]
    assert own["source"].tolist() == [DIFFERENCED] * 3
    assert own["unconditional"].tolist() == pytest.approx([0.79, 0.48, 0.0])
    assert any("one alpha does not fit" in note for note in section.notes)
    assert step_cost(made_sweep(told)).frame["alpha_fit"].tolist() == [MISSES]


def test_families_of_a_plan_are_told_apart_and_measured_positions_go_together() -> None:
    def config(k: int, source: str) -> dict[str, object]:
        acceptance = {"positions": [0.8, 0.6, 0.5][:k], "source": {"name": source}}
        return {"drafter": {"method": "free", "k": k, "acceptance": acceptance}}

    arms = [
        Arm(
            label=f"tp1/free-k{k}-m{1 + k / 2:g}-{end}", drafter="free", k=k, synthetic=True, tokens=1 + k / 2
        )
        for k, end in ((1, "0a1b"), (2, "0c1d"), (3, "0e1f"))
    ]
    plan = {
        "arms": [
            {"digest": arm.digest, "config": config(arm.k, "other" if arm.k == 3 else "cell")} for arm in arms
        ]
    }
    rows = step_cost(made_sweep(arms, plan=plan)).frame
    assert dict(zip(rows["drafter"], rows["lengths"], strict=True)) == {
        "tp1/free-measured": "1, 2",
        "tp1/free-measured #2": "3",
    }
