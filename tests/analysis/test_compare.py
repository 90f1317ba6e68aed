"""Two sweeps beside each other: a true change is found, none is where there is none, and refusals say why."""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from analysis.compare.comparison import Comparison, compare_sweeps
from analysis.compare.differences import RESOLVED, find_differences
from analysis.compare.estimates import BETTER, WORSE, Estimate, change, judge
from analysis.compare.figure import PALE, comparison_figure
from analysis.compare.identity import ArmIdentity, match
from analysis.compare.refusals import ComparisonError
from analysis.frame import Sweep, cells_frame
from tests.analysis.made import Arm, made_results

LEVELS = (1, 4, 16)
STEPS = {1: 1.2, 4: 1.4, 16: 2.2}
"""T/t0 of the arm: with 2 tokens a step it pays up to C = 11 or so."""


def arms(factor: float = 1.0, **changes: object) -> list[Arm]:
    """A drafter whose step costs `factor` times as much as in the other sweep."""
    return [Arm(label="tp1/eagle3-k3", tokens=2.0, step={c: s * factor for c, s in STEPS.items()}, **changes)]


def made(name: str, own: list[Arm], *, plan: dict | None = None, **changes: object) -> Sweep:
    results = made_results(own, **{"levels": LEVELS, "blocks": 5, "noise": 0.002} | changes)
    return Sweep(
        directory=Path("results") / name, plan=plan or {}, cells=cells_frame(results), results=results
    )


@pytest.fixture(scope="module")
def dearer() -> Comparison:
    """The step of B's arm costs a quarter more: user speed is 0.8 times as high over the baseline's."""
    return compare_sweeps(made("old", arms()), made("new", arms(1.25), seed=1))


def total(step: float) -> float:
    return 1.0 / (0.2 + 0.8 / (2.0 / step))


def test_a_true_change_is_found_with_its_size(dearer):
    frame = dearer.section("ratios").frame
    assert frame["verdict"].tolist() == [WORSE] * 3
    for row, step in zip(frame.to_dict("records"), STEPS.values(), strict=True):
        truth = total(1.25 * step) / total(step)
        assert row["a"] == pytest.approx(total(step), rel=0.01)
        assert row["b"] == pytest.approx(total(1.25 * step), rel=0.01)
        assert row["change_lo"] < truth < row["change_hi"]
        assert row["change"] == pytest.approx(row["b"] / row["a"])
        assert row["blocks_a"] == row["blocks_b"] == 5
    assert dearer.findings[0].endswith("B against A, by arm and level: 3 worse")
    assert "tp1/eagle3-k3 at C=1 is worse" in dearer.findings[1]


def test_what_explains_it_is_the_step_and_not_acceptance(dearer):
    frame = dearer.section("explanation").frame
    assert frame["step_change"].tolist() == pytest.approx([1.25] * 3, rel=0.01)
    assert frame["tokens_change"].tolist() == pytest.approx([1.0] * 3, abs=1e-9)
    assert frame["user_speed_change"].tolist() == pytest.approx([0.8] * 3, rel=0.01)
    assert frame["mal_a"].tolist() == pytest.approx([2.0] * 3)
    assert all(words.startswith("a dearer step (+2") and "tokens" not in words for words in frame["moved"])
    fits = dearer.section("fits").frame.iloc[0]
    assert (fits["s_a"], fits["s_b"]) == (
        pytest.approx(0.2 / 3, rel=0.05),
        pytest.approx(0.5 / 3, rel=0.05),
    )
    assert "s" in fits["apart"].split(", ")


def test_the_gain_flips_earlier_and_the_advice_changes_there(dearer):
    crossings = dearer.section("crossings").frame.set_index("objective")
    first, second = crossings.loc["total", "at_a"], crossings.loc["total", "at_b"]
    assert 4 < second < first < 16
    assert crossings.loc["total", "moved"] == "earlier"
    served = dearer.section("recommendations").frame
    assert served["change"].tolist() == ["stays"] * 3  # both: the drafter up to C=4, the baseline at C=16
    assert served["serve_b"].tolist() == ["tp1/eagle3-k3", "tp1/eagle3-k3", "tp1/none"]
    much = compare_sweeps(made("old", arms(), levels=(4,)), made("new", arms(1.6), levels=(4,), seed=1))
    assert much.section("recommendations").frame["change"].tolist() == ["changes"]
    assert "at C=4 the recommendation changes from tp1/eagle3-k3 to tp1/none" in much.findings


def test_absolute_figures_carry_what_drifted(dearer):
    section = dearer.section("absolutes")
    assert "no interval covers them" in section.notes[0]
    frame = section.frame
    assert frame["baseline"].tolist() == [True] * 6 + [False] * 6
    step = frame[frame["figure"].eq("step time") & ~frame["baseline"]].iloc[0]
    own = [
        np.log([c.metrics["step/mean_ms"] for c in side.sweep.results if c.k and c.level == 1])
        for side in (dearer.a, dearer.b)
    ]
    interval = stats.ttest_ind(own[1], own[0], equal_var=False).confidence_interval()
    assert np.log([step["change_lo"], step["change_hi"]]) == pytest.approx(list(interval), rel=1e-6)


def test_equals_show_no_difference():
    days = [made(name, arms(), levels=(4, 16), seed=seed) for seed, name in enumerate(("monday", "tuesday"))]
    found = compare_sweeps(*days)
    assert found.section("ratios").frame["verdict"].tolist() == ["no difference"] * 2
    assert found.section("recommendations").frame["change"].tolist() == ["stays"] * 2
    assert set(found.section("crossings").frame["moved"]) == {"not apart"}
    assert found.findings[-1] == (
        "the recommendation is the same at C=4, C=16: at every level where both sweeps have one"
    )
    assert found.caveats[0].startswith("nothing differs")


def test_a_change_has_welchs_interval():
    generator = np.random.default_rng(4)
    mine, theirs = generator.normal(0.0, 1.0, 5), generator.normal(0.5, 3.0, 9)
    estimates = [
        Estimate(
            value=own.mean(),
            error=own.std(ddof=1) / math.sqrt(own.size),
            df=own.size - 1,
            pairs=own.size,
        )
        for own in (mine, theirs)
    ]
    found = change(*estimates)
    known = stats.ttest_ind(theirs, mine, equal_var=False)
    assert found.df == pytest.approx(known.df)
    ratio = found.ratio()
    low, high = known.confidence_interval()
    assert (math.log(ratio.lo), math.log(ratio.hi)) == (pytest.approx(low), pytest.approx(high))


@pytest.mark.parametrize(
    ("value", "higher", "spread", "word"),
    [
        (0.1, True, None, BETTER),
        (0.1, False, None, WORSE),
        (-0.1, False, None, BETTER),
        (0.1, True, 0.3, "no difference"),
        (0.03, True, None, "undecided"),
        (0.0, True, None, "no difference"),
    ],
)
def test_a_change_is_judged_by_the_rule_of_verdicts(value, higher, spread, word):
    found = Estimate(value=value, error=0.007, df=10.0, pairs=5)
    judged = judge(found, family=1, practical=0.02, spread=spread, higher_is_better=higher)
    assert judged.word == word
    wide = judge(found, family=6, practical=0.02, spread=spread, higher_is_better=higher)
    assert wide.ratio.hi > judged.ratio.hi


def test_one_block_decides_nothing_and_levels_of_one_sweep_are_named():
    mine, theirs = made("a", arms(), levels=(1, 4), blocks=1), made("b", arms(1.5), levels=(4, 16), blocks=2)
    found = compare_sweeps(mine, theirs)
    frame = found.section("ratios").frame
    assert list(zip(frame["level"], frame["verdict"], strict=True)) == [(4.0, "undecided")]
    assert frame["change_lo"].isna().all()
    assert any(caveat.startswith("A has one block") for caveat in found.caveats)
    assert {"levels only in A: C=1", "levels only in B: C=16"} <= set(found.caveats)


def test_shared_cores_causes_and_models_are_said():
    other = Arm(label="tp1/eagle3-k3-loaded", counterfactual="loaded_only", step=1.1)
    sides = [
        made(name, [*arms(), other], seed=seed, levels=(4, 16), emulated=True)
        for seed, name in enumerate(("a", "b"))
    ]
    for side in range(2):
        crowded = [dataclasses.replace(cell, oversubscribed=cell.level == 16) for cell in sides[side].results]
        sides[side] = dataclasses.replace(sides[side], cells=cells_frame(crowded), results=crowded)
    found = compare_sweeps(*sides)
    frame = found.section("ratios").frame
    words = dict(
        zip(zip(frame["counterfactual"], frame["level"], strict=True), frame["verdict"], strict=True)
    )
    assert words == {
        ("", 4.0): "no difference",
        ("", 16.0): "no verdict",
        ("loaded_only", 4.0): "no verdict",
        ("loaded_only", 16.0): "no verdict",
    }
    assert any("model of hardware" in caveat for caveat in found.caveats)
    assert any("shared a core" in caveat for caveat in found.caveats)
    assert len(found.section("explanation").frame) == 2  # a cause is explained elsewhere


def planned(name: str, *, version: str = "1", swept: bool = False, **changes: object) -> Sweep:
    """A sweep with a plan, whose arms' digests have the version in them."""
    plans, results = [], []
    sizes = (16, 32) if swept else (16,)
    for size in sizes:
        rename = {}
        for drafter, k in (("none", 0), ("eagle3", 3)):
            digest = f"{drafter}-{version}-{size}".ljust(64, ".")
            rename[k] = digest
            plans.append(
                {
                    "digest": digest,
                    "config": {
                        "engine": "vllm",
                        "version": version,
                        "model": {"name": "m", "path": f"/{name}/m", "digest": "x"},
                        "drafter": {"method": drafter, "k": k, "model": f"/{name}/draft" if k else None},
                        "layout": {"tp": 1},
                        "decode": {"block_size": size},
                    },
                    "factors": {"decode.block_size": str(size)} if swept else {},
                    "levels": [{"concurrency": 4, "process": None}],
                }
            )
        results += [
            dataclasses.replace(
                cell,
                cell=f"{cell.cell}-{size}",
                arm=rename[cell.k],
                arm_label=f"{cell.arm_label} block_size={size}" if swept else cell.arm_label,
                factors={"decode.block_size": str(size)} if swept else {},
                identity={"pair_key": str(size), "workload": "w", "run": f"r{cell.k}", "host": name},
            )
            for cell in made_results(arms(), levels=(4,), blocks=3, noise=0.002, seed=size)
        ]
    plan = {
        "arms": plans,
        "workload": {
            "name": "chat",
            "digest": "w",
            "validity": "recorded",
            "options": {"output": "recorded"},
        },
    }
    return Sweep(
        directory=Path("results") / name, plan=plan | changes, cells=cells_frame(results), results=results
    )


def test_arms_are_matched_by_what_they_are_not_by_their_digest():
    found = compare_sweeps(planned("old"), planned("new", version="2"))
    assert [pair.label for pair in found.matching.both] == ["tp1/none", "tp1/eagle3-k3"]
    keys = {(item.kind, item.key): (item.a, item.b) for item in found.differences}
    assert keys["engine", "version"] == ("1", "2")
    assert not [key for _, key in keys if "path" in key or key == "drafter.model"]  # places, not contents
    assert found.caveats[0] == "engine and hardware both differ: the change cannot be laid to one of them"


def test_a_key_that_only_one_sweep_swept_leaves_the_nearest_arm():
    found = compare_sweeps(planned("old"), planned("new", version="2", swept=True))
    both = [(pair.a.label, pair.b.label) for pair in found.matching.both]
    assert both == [
        ("tp1/none", "tp1/none block_size=16"),
        ("tp1/eagle3-k3", "tp1/eagle3-k3 block_size=16"),
    ]
    only = [arm.label for arm, _ in found.matching.only["B"]]
    assert only == ["tp1/none block_size=32", "tp1/eagle3-k3 block_size=32"]
    assert any("only in B: tp1/none block_size=32" in caveat for caveat in found.caveats)


def test_arms_that_are_as_near_as_another_are_not_guessed():
    def arm(name: str, **factors: str) -> ArmIdentity:
        return ArmIdentity(
            arm=name,
            label=name,
            baseline=False,
            counterfactual="",
            devices=1,
            key="",
            factors=factors,
            config={},
        )

    found = match([arm("a")], [arm("b1", x="1"), arm("b2", x="2")])
    assert found.both == ()
    assert [why for _, why in found.only["A"]] == ["several arms of the other are as near"]


def test_records_tell_what_else_differs(tmp_path):
    sides = []
    for name, gpu, size in (("old", "A100", 1), ("new", "H100", 2)):
        sweep = dataclasses.replace(planned(name), directory=tmp_path / name)
        for run in ("r0", "r3"):
            folder = tmp_path / name / "engines" / run
            folder.mkdir(parents=True)
            (folder / "resolved.json").write_text(json.dumps({"same": 1, "graphs.size": size}))
        host = {"name": name, "processor": "EPYC", "usable_cores": 2}
        record = {"specload": "0.1", "host": host, "gpus": [{"name": gpu, "driver": "5"}], "packages": {}}
        (tmp_path / name / "provenance.json").write_text(json.dumps({"runs": [record]}))
        sides.append(sweep)
    found = compare_sweeps(*sides)
    told = {(item.kind, item.key, item.a, item.b, item.arms) for item in found.differences}
    assert told == {
        ("hardware", "GPUs", "A100", "H100", ""),
        ("hardware", "host", "old", "new", ""),
        (RESOLVED, "graphs.size", "1", "2", ""),
    }
    assert not any("cannot be laid" in caveat for caveat in found.caveats)
    (tmp_path / "new" / "provenance.json").write_text("{")
    (tmp_path / "new" / "engines" / "r0" / "resolved.json").write_text("[]")
    again = find_differences(found.matching.both, found.a, found.b)
    assert {item.key for item in again} > {"host", "graphs.size"}


def with_plan(**parts: object) -> Sweep:
    return planned("new", **parts)


def other_cells(**changes: object) -> Sweep:
    sweep = planned("new")
    results = [dataclasses.replace(cell, **changes) for cell in sweep.results]
    return dataclasses.replace(sweep, cells=cells_frame(results), results=results)


WORKLOAD = {"name": "chat", "digest": "w", "validity": "recorded", "options": {"output": "recorded"}}


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda: other_cells(identity={"workload": "v" * 64}), "workload is chat with digest w in A"),
        (
            lambda: with_plan(workload=WORKLOAD | {"options": {"output": "fixed"}}),
            "workload.output is recorded in A and fixed in B",
        ),
        (
            lambda: with_plan(workload=WORKLOAD | {"validity": "hashed"}),
            "content validity is recorded in A and hashed in B",
        ),
        (lambda: with_plan(cache={"state": "primed", "prime": "all"}), "cache.state is cold in A and primed"),
        (lambda: with_plan(objective="output"), "judged on total and B on output .* --objective total"),
        (
            lambda: other_cells(concurrency=None, rate=4.0),
            "levels are of load.concurrency in A and of load.rate in B",
        ),
        (lambda: other_cells(emulated=True), "A are measured and those of B emulated"),
        (lambda: other_cells(oversubscribed=True), "are of their own in A and shared in B"),
        (lambda: other_cells(concurrency=8), "load levels are 4 in A and 8 in B: none is in both"),
        (lambda: other_cells(devices=2), "A has tp1/none on 1.*; B has tp1/none on 2"),
        (lambda: other_cells(outcome="failed"), "B .*has no measured cell"),
        (lambda: planned("old"), "hold the same measurements"),
    ],
)
def test_what_cannot_be_compared_is_refused(other, words):
    with pytest.raises(ComparisonError, match=words):
        compare_sweeps(planned("old"), other())


def test_a_copy_is_no_second_measurement():
    sweep = other_cells(started="2026-01-01T00:00:00")
    with pytest.raises(ComparisonError, match="hold the same measurements"):
        compare_sweeps(dataclasses.replace(sweep, directory=Path("results/copy")), sweep)
    with pytest.raises(ComparisonError, match="objective 'speed' is unknown"):
        compare_sweeps(planned("old"), sweep, objective="speed")


def test_no_drafter_in_common_is_said_by_name():
    mine, theirs = made("a", arms()), made("b", [Arm(label="tp1/mtp-k3", drafter="mtp", tokens=2.0)])
    with pytest.raises(ComparisonError, match="A has tp1/eagle3-k3; B has tp1/mtp-k3"):
        compare_sweeps(mine, theirs)


def test_the_figure_has_both_curves_and_takes_no_markup():
    own = [
        Arm(label=f"tp1/<b>{k}</b>-k{k}", k=k, tokens=2.0, step=1.0 + k / 10, synthetic=True)
        for k in (1, 3, 5, 7, 9)
    ]
    found = compare_sweeps(
        made("a", own, levels=(4,), blocks=2), made("b", own, levels=(4,), blocks=2, seed=1)
    )
    figure = comparison_figure(found)
    assert len(figure.plot.data) == 3 * 4  # A, B and the change of four arms
    assert found.findings[-1].startswith("no drafter here could be served with")
    assert "1 arm is left out" in figure.reading
    assert figure.finding.startswith("Ratio of total throughput to the baseline, B against A")
    assert all("<b>" not in trace.name and "forced" in trace.name for trace in figure.plot.data)
    assert all(trace.error_y.visible for trace in figure.plot.data)
    json.loads(json.dumps(found.to_dict(), allow_nan=False))


def test_what_one_sweep_alone_has_is_pale_or_named():
    """A has C=1 and another drafter, which B has not; both have C=4."""
    other = Arm(label="tp1/mtp-k1", drafter="mtp", k=1, tokens=1.5)
    found = compare_sweeps(
        made("a", [*arms(), other], levels=(1, 4), blocks=2), made("b", arms(), levels=(4,), blocks=2, seed=1)
    )
    figure = comparison_figure(found)
    (pale,) = (trace for trace in figure.plot.data if trace.opacity == PALE)
    assert (list(pale.x), pale.mode) == ([1], "markers")
    assert pale.y[0] == pytest.approx(total(STEPS[1]), rel=0.01)
    assert "Pale marks without a line: a ratio in one sweep only" in figure.reading
    assert figure.reading.endswith("Only in A, and not drawn: tp1/mtp-k1.")
    assert not any("in B, and not drawn" in line for line in (figure.reading, *found.findings))


def test_without_any_ratio_the_figure_says_so():
    mine, other = made("a", arms(), levels=(4,), blocks=2), made("b", arms(), levels=(4,), blocks=2, seed=1)
    lost = [
        dataclasses.replace(cell, outcome="invalid") if cell.role == "treatment" else cell
        for cell in other.results
    ]
    found = compare_sweeps(mine, dataclasses.replace(other, cells=cells_frame(lost), results=lost))
    assert set(found.section("ratios").frame["verdict"]) == {"invalid"}
    assert set(found.section("explanation").frame["moved"]) == {"not known"}
    assert comparison_figure(found).missing
