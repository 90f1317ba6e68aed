"""Effects, combinations and flips on tables whose answer is known."""

import dataclasses
import itertools
import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy import stats

from analysis.effect_sections import effects_section, factor_sets, layouts_section
from analysis.factorial import combinations, effects
from analysis.factorial_fit import complete_levels
from analysis.factors import factor_tables, swept_factors
from analysis.fit import fit_level
from analysis.frame import Sweep, cells_frame
from analysis.sign_flips import flips

FACTORS = ["layout", "treatment"]


@pytest.fixture(scope="module")
def made(make_sweep, true_arm):
    """Cells of arms given as (layout, drafter, k, ratio) at one level."""

    def make(*arms, **options):
        options = {"levels": (4,), "blocks": 3} | options
        true = [
            true_arm(
                label=f"{layout}/{drafter}-k{k}",
                layout=layout,
                drafter=drafter,
                k=k,
                ratios=dict.fromkeys(options["levels"], ratio),
            )
            for layout, drafter, k, ratio in arms
        ]
        return make_sweep(true, **options)

    return make


@pytest.fixture(scope="module")
def unbalanced(made):
    arms = (("tp1", "eagle3", 3, 1.43), ("tp4", "eagle3", 3, 0.97), ("tp1", "mtp", 1, 1.3))
    return cells_frame(made(*arms, noise=0.01))


def figure(frame, **where):
    for name, value in where.items():
        frame = frame[frame[name] == value]
    assert len(frame) == 1
    return frame.iloc[0]


def sweep_of(cells, **plan):
    return Sweep(directory="results/made", plan=plan, cells=cells, results=[])


def test_effects_without_noise_are_those_that_were_planted(made):
    cells = cells_frame(
        made(
            ("tp1", "eagle3", 3, 1.5),
            ("tp1", "ngram", 3, 1.2),
            ("tp2", "eagle3", 3, 1.0),
            ("tp2", "ngram", 3, 0.9),
        )
    )
    found = effects(cells, FACTORS)
    logs = pd.DataFrame(
        {"none": [0.0, 0.0], "eagle3-k3": np.log([1.5, 1.0]), "ngram-k3": np.log([1.2, 0.9])}, ["tp1", "tp2"]
    )
    logs -= logs.to_numpy().mean()
    rows, columns = logs.mean(axis=1), logs.mean(axis=0)
    for layout, expected in rows.items():
        row = figure(found, term="layout", at=layout)
        assert row["effect"] == pytest.approx(math.exp(expected))
        assert row["index"] == pytest.approx(100 * math.exp(expected - rows.max()))
    for treatment, expected in columns.items():
        assert figure(found, term="treatment", at=treatment)["effect"] == pytest.approx(math.exp(expected))
    for layout, treatment in itertools.product(logs.index, logs.columns):
        expected = logs.loc[layout, treatment] - rows[layout] - columns[treatment]
        row = figure(found, term="layout x treatment", at=f"{layout} x {treatment}")
        assert row["effect"] == pytest.approx(math.exp(expected))


def test_intervals_are_those_of_the_same_formula(made):
    arms = [(layout, drafter, 3, 1.2) for layout in ("tp1", "tp2") for drafter in ("eagle3", "ngram")]
    cells = cells_frame(made(*arms, noise=0.05))
    data = pd.DataFrame(
        {
            "y": np.log(cells["throughput/total_tok_s"]),
            "layout": cells["layout"].astype(object),
            "drafter": pd.Categorical(cells["drafter"], ["none", "eagle3", "ngram"]),
            "block": cells["block"],
        }
    )
    model = smf.ols("y ~ C(layout, Sum) * C(drafter, Sum) + C(block)", data).fit()
    found = effects(cells, FACTORS)
    for term, at, name in (
        ("layout", "tp1", "C(layout, Sum)[S.tp1]"),
        ("treatment", "eagle3-k3", "C(drafter, Sum)[S.eagle3]"),
        ("layout x treatment", "tp1 x eagle3-k3", "C(layout, Sum)[S.tp1]:C(drafter, Sum)[S.eagle3]"),
    ):
        row = figure(found, term=term, at=at)
        low, high = model.conf_int().loc[name]
        assert math.log(row["effect"]) == pytest.approx(model.params[name])
        assert np.log([row["effect_lo"], row["effect_hi"]]) == pytest.approx([low, high])


def test_a_ratio_is_that_of_the_verdict(made):
    arms = [("tp1", "eagle3", k, 1.0 + 0.1 * k) for k in (1, 3)]
    cells = cells_frame(made(*arms, noise=0.02, blocks=4))
    found = combinations(cells, ["treatment"])
    fit = fit_level(cells, "total")
    for arm, contrast in fit.contrasts.items():
        row = figure(found, treatment=arm.rstrip("0").removeprefix("tp1/"))
        assert math.log(row["ratio"]) == pytest.approx(contrast.estimate)


def test_a_published_interaction_flips_its_sign(make_cell):
    """TP1 21 -> 30 tok/s with EAGLE, TP4 61 -> 59: 1.43 times and 0.97 times, measured once each."""
    published = {("tp1", "none"): 21.0, ("tp1", "eagle"): 30.0, ("tp4", "none"): 61.0, ("tp4", "eagle"): 59.0}
    results = []
    for (layout, drafter), speed in published.items():
        for role in ("opening", "closing") if drafter == "none" else ("treatment",):
            label = f"{layout}/none" if drafter == "none" else f"{layout}/eagle-k3"
            cell = make_cell(
                arm=label.ljust(64, "0"), arm_label=label, layout=layout, drafter=drafter, role=role,
                k=0 if drafter == "none" else 3, concurrency=1,
            )  # fmt: skip
            results.append(dataclasses.replace(cell, metrics={**cell.metrics, "user/speed_tok_s": speed}))
    cells = cells_frame(results)
    found = combinations(cells, FACTORS, "user_speed")
    assert figure(found, layout="tp1", treatment="eagle-k3")["ratio"] == pytest.approx(1.4286, abs=5e-5)
    assert figure(found, layout="tp4", treatment="eagle-k3")["ratio"] == pytest.approx(0.9672, abs=5e-5)
    assert found["ratio_lo"].isna().all()
    assert found.iloc[0]["layout"] == "tp4"
    assert found.iloc[0]["treatment"] == "none"
    flip = figure(flips(found))
    assert (flip["gains_at"], flip["loses_at"], flip["sure"]) == ("tp1", "tp4", False)
    notes = " ".join(effects_section(sweep_of(cells, objective="user_speed")).notes)
    assert "flips a sign: C=1 per device, user speed with eagle-k3 is 1.429 times" in notes
    assert "0.967 times at tp4" in notes
    assert flips(found, threshold=0.05).empty


def test_a_flip_is_sure_where_both_intervals_are(unbalanced):
    flip = figure(flips(combinations(unbalanced, FACTORS)))
    assert flip["treatment"] == "eagle3-k3"
    assert flip["sure"]
    assert flip["gain_lo"] > 1.0 > flip["loss_hi"]


def test_missing_combinations_leave_the_others_alone(unbalanced):
    found = effects(unbalanced, FACTORS)
    gap = figure(found, term="treatment", at="mtp-k1")
    assert math.isnan(gap["effect"])
    assert gap["why"] == "not estimated: mtp-k1 was not measured with tp4"
    alone = effects(unbalanced[unbalanced["drafter"] != "mtp"], FACTORS)
    both = figure(found, term="layout", at="tp1")["effect"], figure(alone, term="layout", at="tp1")["effect"]
    assert both[0] == pytest.approx(both[1])
    assert figure(combinations(unbalanced, FACTORS), treatment="mtp-k1")["ratio"] == pytest.approx(
        1.3, rel=0.03
    )
    section = effects_section(sweep_of(unbalanced))
    assert any(
        "tp4 x mtp-k1 has no measured cell at a load per device of 4" in note for note in section.notes
    )


def test_levels_with_most_gaps_are_left_out_first():
    points = {(a, b) for a in "xyz" for b in "pqr"} - {("z", "p"), ("z", "q"), ("x", "r")}
    kept, gaps = complete_levels(points, {"first": list("xyz"), "second": list("pqr")})
    assert kept == {"first": ["x", "y"], "second": ["p", "q"]}
    assert gaps["first", "z"] == "not estimated: z was not measured with p, q"
    assert gaps["second", "r"] == "not estimated: r was not measured with x"


def test_one_block_has_no_interval(made):
    cells = cells_frame(made(("tp1", "ngram", 3, 1.2), ("tp2", "ngram", 3, 1.1), blocks=1, noise=0.01))
    found = effects(cells, FACTORS)
    assert found["effect"].notna().all()
    assert found["effect_lo"].isna().all()
    assert set(found["why"]) == {"no interval: no combination was measured in two blocks"}


def test_cells_that_must_not_count_do_not(made):
    results = made(("tp1", "ngram", 3, 1.2), ("tp2", "ngram", 3, 1.1))
    expected = effects(cells_frame(results), FACTORS)

    def spoilt(cell, **changes):
        wrong = dict.fromkeys(cell.metrics, 7.0)
        return dataclasses.replace(cell, cell=cell.cell + "-x", metrics=wrong, **changes)

    treated = [cell for cell in results if cell.role == "treatment"]
    strangers = [
        spoilt(treated[0], block=9, oversubscribed=True),
        spoilt(treated[0], block=10, counterfactual="loaded_only"),
        spoilt(treated[0], block=11, outcome="invalid", cause="occupancy"),
    ]
    pd.testing.assert_frame_equal(effects(cells_frame([*results, *strangers]), FACTORS), expected)


def test_what_is_not_compared_is_held(made):
    fast, slow = [
        [
            dataclasses.replace(
                cell, arm=f"{cache}{cell.arm}"[:64], cell=f"{cell.cell}-{cache}", factors={"cache": cache},
                identity={"pair_key": f"{cell.layout}-{cache}"},
                metrics={
                    name: value * scale if name.startswith("throughput/") else value
                    for name, value in cell.metrics.items()
                },
            )
            for cell in made(("tp1", "ngram", 3, 1.2), ("tp2", "ngram", 3, 1.2))
        ]
        for cache, scale in (("prefix", 2.0), ("plain", 1.0))
    ]  # fmt: skip
    cells = cells_frame([*fast, *slow])
    assert swept_factors(cells) == ["layout", "treatment", "factor:cache"]
    assert factor_sets(cells) == [FACTORS, ["factor:cache", "treatment"]]
    assert set(effects(cells, FACTORS)["held"]) == {"cache=plain", "cache=prefix"}
    found = effects(cells, ["cache", "treatment"])
    assert set(found["held"]) == {"layout=tp1", "layout=tp2"}
    assert figure(found, held="layout=tp1", at="plain")["index"] == pytest.approx(50.0)
    three = effects(cells, ["layout", "cache", "treatment"])
    assert list(dict.fromkeys(three["term"])) == [
        "layout", "cache", "treatment", "layout x cache", "layout x treatment", "cache x treatment"
    ]  # fmt: skip
    assert set(three["held"]) == {""}
    for make in (effects_section, layouts_section):
        section = make(sweep_of(cells))
        assert set(section.frame["compared"]) == {"layout x treatment", "cache x treatment"}
        assert "held" in section.visible


def test_layouts_are_compared_at_equal_load_per_device(made):
    small = made(("tp1", "ngram", 3, 1.2), levels=(4, 8))
    large = [
        dataclasses.replace(cell, devices=2, block=cell.block + 3, cell=f"{cell.cell}-x")
        for cell in made(("tp2", "ngram", 3, 1.1), levels=(4, 8))
    ]
    cells = cells_frame([*small, *large])
    tables = {table.per_device: table for table in factor_tables(cells, FACTORS, "total")}
    assert sorted(tables) == [2.0, 4.0, 8.0]
    assert set(tables[4.0].frame["layout"]) == {"tp1", "tp2"}
    row = tables[2.0].frame.iloc[0]
    assert row["y"] == pytest.approx(math.log(row["throughput/total_tok_s"] / 2))
    inside = figure(effects(cells, FACTORS), per_device=4.0, at="tp2 x ngram-k3")
    assert inside["basis"] == "within"


def test_what_no_block_has_both_of_is_compared_between_blocks(made):
    """One mean a block, and then an ordinary t test: the answer where every block has the same cells."""
    arms = [("tp1", "ngram", 3, 1.2), ("tp1", "eagle3", 3, 1.4)]
    own = made(*arms, noise=0.02, blocks=4)
    other = [
        dataclasses.replace(cell, layout="tp2", block=cell.block + 4, cell=f"{cell.cell}-x")
        for cell in made(*arms, noise=0.02, blocks=4, seed=2)
    ]
    other = [
        dataclasses.replace(
            cell,
            arm=cell.arm.replace("tp1", "tp2"),
            arm_label=cell.arm_label.replace("tp1", "tp2"),
        )
        for cell in other
    ]
    cells = cells_frame([cell for cell in (*own, *other) if cell.role == "treatment"])
    means = np.log(cells["throughput/total_tok_s"]).groupby(cells["block"]).mean().to_numpy()
    test = stats.ttest_ind(means[:4], means[4:])
    expected = test.confidence_interval()
    found = effects(cells, FACTORS)
    row = figure(found, term="layout", at="tp1")
    assert row["basis"] == "between"
    assert math.log(row["effect"]) == pytest.approx((means[:4].mean() - means[4:].mean()) / 2)
    ends = np.log([row["effect_lo"], row["effect_hi"]])
    assert ends == pytest.approx(np.array([expected.low, expected.high]) / 2, rel=1e-4)
    assert set(found.loc[found["term"] != "layout", "basis"]) == {"within"}
    indexed = combinations(cells, FACTORS)
    assert indexed["index_lo"].notna().sum() == len(indexed) - 1
    assert set(indexed["basis"]) == {"within", "between"}
    one = effects(cells[cells["block"].isin([0, 4])], FACTORS)
    assert one["effect_lo"].isna().all()


def test_of_latencies_the_smallest_is_best(made):
    cells = cells_frame(made(("tp1", "ngram", 3, 1.2), ("tp2", "ngram", 3, 0.8)))
    found = combinations(cells, FACTORS, "e2el_p95")
    assert (found.iloc[0]["layout"], found.iloc[0]["treatment"]) == ("tp1", "ngram-k3")
    assert found.iloc[-1]["index"] == pytest.approx(150.0)
    flip = figure(flips(found))
    assert (flip["gains_at"], flip["loses_at"]) == ("tp1", "tp2")


def test_treatments_are_in_natural_order(made):
    cells = cells_frame(made(*(("tp1", "ngram", k, 1.1) for k in (12, 3, 2)), ("tp2", "ngram", 2, 1.1)))
    (table,) = factor_tables(cells, FACTORS, "total")
    assert table.levels("treatment") == ["none", "ngram-k2", "ngram-k3", "ngram-k12"]


@pytest.mark.parametrize(
    ("factors", "objective", "message"),
    [
        (["cache"], "total", "no factor cache; the sweep has layout, treatment"),
        (["layout", "layout"], "total", "each factor once"),
        ([], "total", "at least one"),
        (["layout"], "speed", "objective 'speed' is unknown"),
    ],
)
def test_what_was_not_swept_is_refused(unbalanced, factors, objective, message):
    with pytest.raises(ValueError, match=message):
        effects(unbalanced, factors, objective)


def test_sections_show_combinations_or_say_why_there_are_none(unbalanced, made):
    section = layouts_section(sweep_of(unbalanced))
    first = section.rows()[0]
    assert (first["combination"], first["index"]) == ("tp1 x eagle3-k3", 100.0)
    assert "held" not in section.visible
    one = cells_frame(made(("tp1", "ngram", 3, 1.2), blocks=1))
    assert "nothing but the drafter was swept" in effects_section(sweep_of(one)).missing
    assert "no cell" in layouts_section(sweep_of(cells_frame([]))).missing
