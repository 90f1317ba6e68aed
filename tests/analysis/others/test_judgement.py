"""Unpaired verdicts: Welch's interval, what is a replicate, and published figures with known answers."""

import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from analysis.crossover import ABOVE, CROSSES
from analysis.others.arms import OtherArm
from analysis.others.frame import others_frame
from analysis.others.judgement import unpaired_summary, unpaired_verdicts
from analysis.others.run import OtherResultsError
from analysis.pairs import pairs_frame
from analysis.rows import VerdictRow
from analysis.summary import Summary
from analysis.verdict import INVALID, LOSES, UNDECIDED, WINS

Make = Callable[..., Any]
SIX = (35.3, 35.7, 34.7, 35.2, 36.1, 37.1)


def judged(runs: Any, **options: Any) -> Summary:
    frame, notes = others_frame(runs)
    return unpaired_summary(frame, notes, threshold=0.02, **options)


def row(runs: Any, **options: Any) -> VerdictRow:
    (found,) = judged(runs, **options).rows
    return found


def test_the_interval_is_welchs_on_logs(make_runs: Make) -> None:
    base, arm = [100.0, 101.0, 99.5, 100.4], [121.0, 125.0, 119.0]
    found = row(make_runs({8: base}, {8: arm}))
    known = stats.ttest_ind(np.log(arm), np.log(base), equal_var=False).confidence_interval(0.95)
    assert found.total is not None
    assert found.total.value == pytest.approx(stats.gmean(arm) / stats.gmean(base))
    assert (found.total.lo, found.total.hi) == pytest.approx((np.exp(known.low), np.exp(known.high)))
    assert (found.verdict, found.blocks, found.unpaired, found.sign_flip_p) == (WINS, 3, True, None)
    assert found.output == found.total
    assert found.user_speed is None


def test_several_arms_share_a_baseline_and_its_family(make_runs: Make) -> None:
    """Bonferroni: with two arms each interval is that of 97.5 %."""
    base, arm = {8.0: [100.0, 101.0, 99.5]}, {8.0: [110.0, 111.0, 108.0]}
    runs = [*make_runs(base, arm), *make_runs({}, arm, name="ngram", k=3)]
    first, second = judged(runs).rows
    known = stats.ttest_ind(np.log(arm[8.0]), np.log(base[8.0]), equal_var=False).confidence_interval(0.975)
    assert first.total == second.total
    assert first.total is not None
    assert first.total.lo == pytest.approx(np.exp(known.low))


def test_the_baselines_own_spread_is_the_least_that_matters(make_runs: Make) -> None:
    base = [100.0, 104.0]
    found = row(make_runs({8: base}, {8: [107.0, 107.1]}))
    assert found.threshold == pytest.approx(1.04 - 1.0)
    assert "A/A spread" in found.reason


def test_one_file_an_arm_decides_nothing(make_runs: Make) -> None:
    found = row(make_runs({8: [100.0]}, {8: [200.0]}))
    assert (found.verdict, found.more_blocks) == (UNDECIDED, None)
    assert found.reason.startswith("no interval: it takes two runs or more of the arm and of its baseline")
    assert found.total is not None
    assert (found.total.value, found.total.lo) == (pytest.approx(2.0), None)


def test_copies_of_one_run_are_no_replicates(make_runs: Make) -> None:
    found = row(make_runs({8: [100.0] * 3}, {8: [200.0] * 3}))
    assert found.verdict == UNDECIDED
    assert "as copies of one would" in found.reason


def test_runs_of_one_start_are_averaged_first(make_run: Make) -> None:
    """Two starts of three runs each are two replicates, however close the three are."""
    arms = (OtherArm(drafter="none"), OtherArm(drafter="eagle3", k=5))
    figures = {arms[0]: ([100, 101, 102], [110, 111, 112]), arms[1]: ([105, 106, 107], [116, 117, 118])}
    runs = [
        (make_run(f"{arm.label}-{start}-{place}", value, start=f"{arm.label}-{start}"), arm)
        for arm, starts in figures.items()
        for start, values in enumerate(starts)
        for place, value in enumerate(values)
    ]
    found = row(runs)
    means = {arm: [np.log(values).mean() for values in starts] for arm, starts in figures.items()}
    known = stats.ttest_ind(means[arms[1]], means[arms[0]], equal_var=False).confidence_interval(0.95)
    assert found.total is not None
    assert found.total.lo == pytest.approx(np.exp(known.low))
    assert found.blocks == 2
    trusting = row(runs, trust_repeats=True)
    assert trusting.blocks == 6
    assert trusting.total is not None
    assert trusting.total.lo is not None
    assert trusting.total.lo > found.total.lo


def test_nothing_is_paired_by_accident(make_runs: Make) -> None:
    frame, _ = others_frame(make_runs({8: [100.0, 101.0]}, {8: [120.0, 121.0]}))
    assert frame["unpaired"].all()
    assert not pairs_frame(frame)["valid"].any()


def test_failed_requests_and_failed_runs_count_nowhere(make_runs: Make, make_run: Make) -> None:
    eagle = OtherArm(drafter="eagle3", k=5)
    runs = make_runs({8: [100.0, 101.0]}, {8: [120.0, 121.0]})
    bad = [
        (make_run("many-failed", 900.0, failed=20), eagle),
        (make_run("all-failed", 900.0, failed=100, failure="every request failed"), eagle),
    ]
    summary = judged([*runs, *bad])
    assert summary.rows[0].total == row(runs).total
    assert summary.rows[0].outcomes == {"failed": 1, "invalid": 1, "measured": 2}
    (alone,) = judged([*make_runs({8: [100.0]}, {}), *bad]).rows
    assert alone.verdict == INVALID
    assert "20 of 100 requests failed, more than 1%" in alone.reason
    assert "every request failed" in alone.reason


def test_what_is_counted_in_two_ways_is_not_compared(make_runs: Make, make_run: Make) -> None:
    def with_speed(source: str, words: str) -> Any:
        metrics = {"throughput/total_tok_s": 100.0, "user/speed_tok_s": 10.0}
        return make_run(source, 0.0, metrics=metrics, definitions={"user/speed_tok_s": words})

    none, eagle = OtherArm(drafter="none"), OtherArm(drafter="eagle3")
    frame, notes = others_frame([(with_speed("a", "pooled"), none), (with_speed("b", "a mean"), eagle)])
    assert frame["user/speed_tok_s"].isna().all()
    assert "user/speed_tok_s left out, as the runs do not count it alike: a mean; pooled" in notes
    frame, notes = others_frame([(with_speed("a", "pooled"), none), (with_speed("b", "pooled"), eagle)])
    assert frame["user/speed_tok_s"].notna().all()
    assert notes == ("published counts user/speed_tok_s: pooled",)


def test_runs_of_two_tools_are_refused(make_run: Make) -> None:
    none = OtherArm(drafter="none")
    with pytest.raises(OtherResultsError, match="of AIPerf and published, which count differently"):
        others_frame([(make_run("a", 1.0), none), (make_run("b", 1.0, tool="AIPerf"), none)])


def test_levels_of_the_rarer_kind_are_left_out(make_runs: Make, make_run: Make) -> None:
    runs = make_runs({8: [100.0]}, {8: [120.0]})
    lone = (make_run("r", 5.0, axis="rate", level=2.5), OtherArm(drafter="none"))
    summary = judged([*runs, lone])
    assert len(summary.rows) == 1
    assert any("1 run at levels of rate left out" in caveat for caveat in summary.caveats)


def test_an_arm_without_a_baseline_of_its_layout(make_run: Make) -> None:
    runs = [
        (make_run("a", 1.0), OtherArm(drafter="none")),
        (make_run("b", 1.0), OtherArm(drafter="eagle3", k=5, layout="tp2")),
    ]
    found = row(runs)
    assert (found.verdict, found.reason) == (INVALID, "no run of its baseline (tp2) at this level")


def test_unequal_work_and_other_models_are_said(make_run: Make) -> None:
    def run(source: str, tokens: float, model: str) -> Any:
        metrics = {"throughput/total_tok_s": 100.0, "tokens/client_output": tokens}
        return make_run(source, 0.0, metrics=metrics, model=model)

    none, eagle = OtherArm(drafter="none"), OtherArm(drafter="eagle3", k=5)
    summary = judged([(run("a", 20000, "x"), none), (run("b", 19000, "y"), eagle)])
    assert (
        "unequal work: answers of the arm have 190.0 tokens on average, the baseline's 200.0"
        in (summary.rows[0].caveats[0])
    )
    assert any("several models (x, y)" in caveat for caveat in summary.caveats)


def test_the_summary_is_plain_json(make_runs: Make) -> None:
    summary = judged(make_runs({8: [100.0, 102.0]}, {8: [120.0, 121.0]}))
    told = json.loads(json.dumps(summary.to_dict()))
    assert told["unpaired"] is True
    assert told["rows"][0]["unpaired"] is True


def splits(values: Sequence[float], least: int) -> list[tuple[list[float], list[float]]]:
    places = range(len(values))
    return [
        ([values[place] for place in chosen], [values[place] for place in places if place not in chosen])
        for size in range(least, len(values) - least + 1)
        for chosen in itertools.combinations(places, size)
    ]


def test_equal_servers_never_win_or_lose(make_runs: Make) -> None:
    """Six published repeats of one configuration, in every split into arm and baseline of two and more."""
    cases = splits(SIX, 2)
    assert len(cases) == 15 + 20 + 15
    base = {float(level): base for level, (base, _) in enumerate(cases, start=1)}
    arm = {float(level): arm for level, (_, arm) in enumerate(cases, start=1)}
    frame, _ = others_frame(make_runs(base, arm))
    rows = unpaired_verdicts(frame, threshold=0.02)
    assert len(rows) == len(cases)
    assert not {found.verdict for found in rows} & {WINS, LOSES}


@pytest.mark.parametrize(("first", "second"), [(23255.9, 24054.0), (242.5, 199.9), (199.9, 242.5)])
def test_two_sessions_of_one_configuration(make_runs: Make, first: float, second: float) -> None:
    assert row(make_runs({8: [first]}, {8: [second]})).verdict == UNDECIDED


def test_a_session_repeated_within_itself_says_no_more(make_run: Make) -> None:
    """Medians of 242.5 and 199.9 in two sessions: repeats in each would agree, and yet be of one server."""
    arms = (OtherArm(drafter="none"), OtherArm(drafter="eagle3", k=5))
    runs = [
        (make_run(f"{arm.label}-{place}", middle + place - 1, start=arm.label), arm)
        for arm, middle in zip(arms, (242.5, 199.9), strict=True)
        for place in range(3)
    ]
    assert row(runs).verdict == UNDECIDED


def test_a_published_flip_while_acceptance_is_steady(make_runs: Make) -> None:
    """vLLM PR 26504: +67 % at batch 1, -18 % at 32, at acceptance rates of .86 to .91 in both."""
    summary = judged(make_runs({1: [33.8], 32: [867.8]}, {1: [56.4], 32: [715.1]}, name="self", k=4))
    ratios = [found.total.value for found in summary.rows if found.total]
    assert ratios == pytest.approx([1.67, 0.82], abs=0.005)
    (total, _) = summary.crossovers
    assert total.crossover.kind == CROSSES
    (crossing,) = total.crossover.crossings
    assert (crossing.lower, crossing.upper, crossing.downward) == (1.0, 32.0, True)
    assert {found.verdict for found in summary.rows} == {UNDECIDED}, "a run each: no interval"


def test_a_published_curve_that_is_not_monotone(make_runs: Make) -> None:
    """Qwen3-8B on an H100, EAGLE-3 at its best K: 2.85, 2.39 and 2.68 times at 1, 8 and 32."""
    base, arm = {1: [125.0], 8: [898.0], 32: [2726.0]}, {1: [355.0], 8: [2148.0], 32: [7317.0]}
    summary = judged(make_runs(base, arm))
    ratios = [found.total.value for found in summary.rows if found.total]
    assert ratios == pytest.approx([2.85, 2.39, 2.68], abs=0.011)
    assert summary.crossovers[0].crossover.kind == ABOVE
    assert summary.crossovers[0].text == "not within the levels tried: above 1 from C=1 to C=32"


def test_a_crossover_with_an_interval_and_one_without(make_runs: Make) -> None:
    base, arm = {4: [100.0, 101.0, 99.0], 16: [300.0, 303.0, 297.0]}, {4: [130.0, 131.0], 16: [270.0, 273.0]}
    crossover = judged(make_runs(base, arm)).crossovers[0].crossover
    assert crossover.main is not None
    assert crossover.main.log_log is not None
    assert crossover.low is not None
    assert crossover.high is not None
    assert 4 < crossover.low < crossover.main.log_log < crossover.high < 16
    without = judged(make_runs({**base, 16: [300.0]}, arm)).crossovers[0].crossover
    assert (without.low, without.high) == (None, None)
    assert without.main is not None


def test_the_command(tmp_path: Path, make_vllm: Make, make_drafted: Make, capsys: Any) -> None:
    from orchestrator import cli  # noqa: PLC0415 - it loads pandas late, and so does this file's collection

    for place in range(2):
        for name, make, total in (("base", make_vllm, 500.0), ("eagle", make_drafted, 650.0)):
            document = make(total_token_throughput=total + place)
            (tmp_path / f"{name}{place}.json").write_text(json.dumps(document), encoding="utf-8")
    words = ["judge", "--baseline", f"{tmp_path}/base*.json", "--arm", f"tp1/eagle3={tmp_path}/eagle*.json"]
    assert cli.main([*words, "--arm", f"tp1/none={tmp_path}/base*.json"]) == 2
    assert "is given twice" in capsys.readouterr().err
    words[2] = f"--arm=tp1/none={tmp_path}/base*.json"
    del words[1]
    assert cli.main(words) == 0
    out = capsys.readouterr().out
    assert "UNPAIRED" in out
    assert "tp1/eagle3-k3" in out
    assert "wins" in out
    assert cli.main([*words, "--objective", "speed"]) == 2
    told = "objective 'speed' is unknown (did you mean user_speed?); choose one of total"
    assert told in capsys.readouterr().err
    page = tmp_path / "judged.html"
    assert cli.main([*words, "--report", str(page), "--json"]) == 0
    assert "tp1/eagle3-k3 wins with +" in page.read_text(encoding="utf-8")
    assert json.loads(capsys.readouterr().out)["rows"][0]["verdict"] == WINS
