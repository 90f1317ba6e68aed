import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest

from analysis.crossover import ABOVE, BELOW
from analysis.objectives import OBJECTIVES
from analysis.rows import VerdictRow
from analysis.summary import Summary, cell_ratios, summarise
from analysis.verdict import INVALID, LOSES, NO_VERDICT, UNDECIDED, WINS
from jobs.result import FAILED, INFEASIBLE, MEASURED, OUTCOMES, TREATMENT, CellResult

Sweep = Callable[..., list[CellResult]]


def change(
    results: list[CellResult], where: Callable[[CellResult], bool], **changes: Any
) -> list[CellResult]:
    return [dataclasses.replace(result, **changes) if where(result) else result for result in results]


def at(summary: Summary, level: float) -> VerdictRow:
    (row,) = (row for row in summary.rows if row.level == level)
    return row


@pytest.fixture(scope="module")
def plain(make_sweep: Sweep) -> list[CellResult]:
    return make_sweep(blocks=3, noise=0.004, start=0.002)


def test_a_sweep_over_arrival_rates(make_sweep: Sweep, true_arm: Any) -> None:
    """Half a conversation a second to two: levels are numbers, and need not be whole."""
    arm = true_arm(ratios={0.5: 1.2, 1: 1.1, 2: 0.9})
    results = make_sweep((arm,), levels=(0.5, 1, 2), axis="rate", noise=0.001)
    summary = summarise(results, threshold=0.02)
    assert summary.axis == "rate"
    assert [(row.axis, row.level, row.at) for row in summary.rows] == [
        ("rate", 0.5, "0.5/s"), ("rate", 1.0, "1/s"), ("rate", 2.0, "2/s"),
    ]  # fmt: skip
    (total,) = (row for row in summary.crossovers if row.objective == "total")
    assert total.text.startswith("falls through 1 between 1/s and 2/s, near 1.")
    assert [spread.level for spread in summary.aa_spread] == [0.5, 1.0, 2.0]
    assert all(row.blocks == 3 for row in summary.rows)
    assert any(caveat.startswith("open loop:") for caveat in summary.caveats)


def test_words_ratios_and_crossover_of_a_known_sweep(plain: list[CellResult]) -> None:
    summary = summarise(plain, threshold=0.02)
    assert [(row.level, row.verdict) for row in summary.rows] == [(1, WINS), (4, WINS), (16, LOSES)]
    row = at(summary, 4)
    assert row.total is not None
    assert row.total.lo is not None
    assert row.total.hi is not None
    assert row.total.lo < 1.2 < row.total.hi
    assert row.total.value == pytest.approx(1.2, rel=0.01)
    assert row.ttft_p95 is not None
    assert row.ttft_p95.value == pytest.approx(1 / row.total.value)
    assert row.mal == pytest.approx(2.4)
    assert row.step_ratio == pytest.approx(2.4 / row.total.value)
    assert row.sign_flip_p == pytest.approx(0.25)
    assert (row.blocks, row.outcomes) == (3, {MEASURED: 3})
    (total,) = (crossing for crossing in summary.crossovers if crossing.objective == "total")
    assert total.crossover.main is not None
    assert (total.crossover.main.lower, total.crossover.main.upper) == (4, 16)
    assert total.crossover.low is not None
    assert total.crossover.high is not None
    true = 4 * 4 ** (0.18232 / (0.18232 + 0.22314))  # ratios 1.2 and 0.8 in log over log
    assert total.crossover.low < true < total.crossover.high
    assert summary.outcomes == dict.fromkeys(OUTCOMES, 0) | {MEASURED: len(plain)}
    assert [spread.segments for spread in summary.aa_spread] == [3, 3, 3]
    assert [row.cells for row in summary.baselines] == [6, 6, 6]


def test_is_plain_json_in_either_form_of_the_results(plain: list[CellResult]) -> None:
    summary = summarise([result.to_dict() for result in plain], threshold=0.02)
    assert summary == summarise(plain, threshold=0.02)
    data = json.loads(json.dumps(summary.to_dict(), allow_nan=False))
    assert data["rows"][0]["total"]["value"] == summary.rows[0].total.value  # type: ignore[union-attr] # set above
    assert data["crossovers"][0]["crossover"]["kind"] == "crosses"


def test_order_of_results_does_not_matter(plain: list[CellResult]) -> None:
    assert summarise(plain[::-1], threshold=0.02) == summarise(plain, threshold=0.02)


def test_a_level_without_a_ratio_is_named_where_the_crossover_is_told(plain: list[CellResult]) -> None:
    """The curve is known to C=4: that it does not cross there says nothing about C=16."""
    lost = change(
        plain,
        lambda cell: cell.role == TREATMENT and cell.level == 16,
        outcome="invalid",
        cause="cold_cache",
        reason="the cache was warm",
    )
    (total,) = (row for row in summarise(lost, threshold=0.02).crossovers if row.objective == "total")
    assert total.crossover.kind == ABOVE
    assert total.text.startswith("not within the levels with a ratio: above 1 from C=1 to C=4")
    assert total.text.endswith("; C=16 gave no ratio (3 x invalid: cold_cache: the cache was warm)")
    assert [(entry.level, entry.why) for entry in total.unread] == [
        (16, "3 x invalid: cold_cache: the cache was warm")
    ]


def test_one_block_decides_nothing(make_sweep: Sweep) -> None:
    summary = summarise(make_sweep(blocks=1, noise=0.01), threshold=0.02)
    assert {row.verdict for row in summary.rows} == {UNDECIDED}
    assert all(row.total is not None and row.total.lo is None for row in summary.rows)
    assert any("one block" in caveat for caveat in summary.caveats)
    (total,) = (crossing for crossing in summary.crossovers if crossing.objective == "total")
    assert total.crossover.main is not None
    assert total.crossover.low is None
    assert "95 %" not in total.text


def test_oversubscribed_gets_ratios_but_no_verdict(make_sweep: Sweep) -> None:
    summary = summarise(make_sweep(blocks=3, noise=0.004, oversubscribed=True), threshold=0.02)
    assert {row.verdict for row in summary.rows} == {NO_VERDICT}
    assert all(
        row.oversubscribed and row.total is not None and row.more_blocks is None for row in summary.rows
    )
    assert summary.oversubscribed
    assert all("an indication only" in row.text for row in summary.crossovers)


def test_oversubscribed_cells_are_not_pooled_with_others(make_sweep: Sweep, true_arm: Any) -> None:
    quiet = make_sweep(blocks=3, noise=0.004)
    wild = make_sweep(
        [true_arm(layout="tp2", label="tp2/ngram-k3")], blocks=3, noise=0.5, seed=9, oversubscribed=True
    )
    alone, mixed = summarise(quiet, threshold=0.02), summarise([*quiet, *wild], threshold=0.02)
    kept = {row.level: row for row in mixed.rows if row.layout == "tp1"}
    assert {row.level: row.total for row in alone.rows} == {c: row.total for c, row in kept.items()}
    assert {row.level: row.verdict for row in alone.rows} == {c: row.verdict for c, row in kept.items()}


def test_out_of_memory_is_named_and_counts_as_a_loss_in_the_crossover(
    make_sweep: Sweep, true_arm: Any
) -> None:
    arm = true_arm(ratios={1: 1.5, 4: 1.2, 16: 1.1})
    results = change(
        make_sweep([arm], blocks=3, noise=0.004),
        lambda r: r.role == TREATMENT and r.concurrency == 16,
        outcome=FAILED,
        cause="out_of_memory",
        reason="no room for the KV cache",
        metrics={},
    )
    summary = summarise(results, threshold=0.02)
    row = at(summary, 16)
    assert row.verdict == INVALID
    assert row.reason == "3 x failed: out_of_memory: no room for the KV cache"
    assert row.capacity_failure
    assert (row.total, row.mal, row.sign_flip_p, row.outcomes) == (None, None, None, {FAILED: 3})
    (total,) = (crossing for crossing in summary.crossovers if crossing.objective == "total")
    assert total.text.startswith("falls through 1 between C=4 and C=16, where memory ran out")
    json.dumps(summary.to_dict(), allow_nan=False)


def test_infeasible_arm_and_lost_block(make_sweep: Sweep) -> None:
    results = make_sweep(blocks=3, noise=0.004)
    none = summarise(
        change(results, lambda r: r.role == TREATMENT, outcome=INFEASIBLE, cause="devices", metrics={}),
        threshold=0.02,
    )
    assert {row.verdict for row in none.rows} == {INVALID}
    assert {row.reason for row in none.rows} == {"3 x infeasible: devices"}
    assert {row.text for row in none.crossovers} == {"C=1, C=4, C=16 gave no ratio (3 x infeasible: devices)"}
    partly = summarise(
        change(
            results,
            lambda r: r.role == TREATMENT and r.block == 1,
            outcome=FAILED,
            cause="died",
            metrics={},
        ),
        threshold=0.02,
    )
    assert {row.blocks for row in partly.rows} == {2}
    assert all("1 of 3 pairs left out: 1 x failed: died" in row.caveats for row in partly.rows)
    assert "3 of 27 cells have no measurement that counts: 3 failed" in partly.caveats


def test_a_level_without_a_replicate_borrows_its_noise_for_the_crossover_only(
    plain: list[CellResult],
) -> None:
    once = change(
        plain, lambda r: r.concurrency == 16 and r.block > 0, outcome=FAILED, cause="died", metrics={}
    )
    summary = summarise(once, threshold=0.02)
    assert at(summary, 16).verdict == UNDECIDED
    (total,) = (crossing for crossing in summary.crossovers if crossing.objective == "total")
    whole = next(row for row in summarise(plain, threshold=0.02).crossovers if row.objective == "total")
    assert total.crossover.low is not None
    assert total.crossover.high is not None
    assert whole.crossover.low is not None
    assert whole.crossover.high is not None
    assert total.crossover.high - total.crossover.low > whole.crossover.high - whole.crossover.low


def test_published_study_shows_its_unequal_hit_rates(make_sweep: Sweep, true_arm: Any) -> None:
    arm = true_arm(
        k=7, label="tp1/block-k7", ratios={10: 1.29, 16: 0.91}, computed={10: 1.73, 16: 0.80},
        speed={10: 2.13, 16: 1.41}, mal=3.07,
    )  # fmt: skip
    summary = summarise(make_sweep([arm], levels=(10, 16), blocks=2), threshold=0.02)
    low, high = at(summary, 10), at(summary, 16)
    assert (low.verdict, high.verdict) == (WINS, LOSES)
    assert low.uncached_share_ratio == pytest.approx(1.341, abs=5e-4)
    assert high.uncached_share_ratio == pytest.approx(0.879, abs=5e-4)
    assert low.step_ratio == pytest.approx(1.441, abs=5e-4)
    assert high.step_ratio == pytest.approx(2.177, abs=5e-4)
    assert any("1.34 times the baseline's" in caveat for caveat in low.caveats)
    assert any("0.88 times the baseline's" in caveat for caveat in high.caveats)
    found = {row.objective: row for row in summary.crossovers}
    assert found["total"].crossover.main is not None
    assert found["total"].crossover.main.log_log == pytest.approx(14.09, abs=5e-3)
    assert found["user_speed"].crossover.kind == ABOVE
    assert "near 14.1" in found["total"].text


def test_window_against_fixed_work_is_a_caveat(plain: list[CellResult]) -> None:
    results = [
        dataclasses.replace(
            r,
            metrics={**r.metrics, "fixed_work/total_tok_s": (r.metrics["fixed_work/total_tok_s"] or 0) * 0.9},
        )
        if r.role == TREATMENT
        else r
        for r in plain
    ]
    row = at(summarise(results, threshold=0.02), 4)
    assert any("the whole fixed work 1.0" in caveat for caveat in row.caveats)
    assert not at(summarise(plain, threshold=0.02), 4).caveats


def test_flags_and_the_cells_own_caveats_reach_the_rows(make_sweep: Sweep) -> None:
    results = make_sweep(blocks=2, emulated=True, synthetic=True, caveats=("the window is short",))
    summary = summarise(results, threshold=0.02)
    assert summary.emulated
    assert summary.synthetic
    assert all(
        row.emulated and row.synthetic and row.caveats == ("the window is short",) for row in summary.rows
    )


def test_no_results_no_treatments_one_level(make_sweep: Sweep, true_arm: Any) -> None:
    assert summarise([], threshold=0.02).caveats == ("there are no results",)
    nothing = summarise(make_sweep([], blocks=2), threshold=0.02)
    assert nothing.rows == ()
    assert len(nothing.baselines) == 3
    assert nothing.caveats == ("no arm was compared with a baseline: there is nothing to judge",)
    one = summarise(make_sweep([true_arm(ratios={8: 0.5})], levels=(8,), blocks=2), threshold=0.02)
    assert {row.crossover.kind for row in one.crossovers} == {BELOW}


def test_the_objective_decides(make_sweep: Sweep, true_arm: Any) -> None:
    arm = true_arm(ratios={4: 0.8}, speed={4: 1.5})
    results = make_sweep([arm], levels=(4,), blocks=3, noise=0.004)
    assert at(summarise(results, threshold=0.02), 4).verdict == LOSES
    assert at(summarise(results, threshold=0.02, objective="user_speed"), 4).verdict == WINS
    with pytest.raises(ValueError, match=r"'speed' is unknown \(did you mean user_speed\?\); choose one of"):
        summarise(results, threshold=0.02, objective="speed")


def test_lower_is_better_for_latencies(make_sweep: Sweep) -> None:
    results = make_sweep(levels=(4,), blocks=3, noise=0.004)
    assert at(summarise(results, threshold=0.02, objective="ttft_p95"), 4).verdict == WINS


def test_cell_ratios_are_per_pair(plain: list[CellResult]) -> None:
    ratios = cell_ratios(plain)
    treated = [result for result in plain if result.role == TREATMENT]
    assert set(ratios) == {result.cell for result in treated}
    assert set(ratios[treated[0].cell]) == {f"ratio/{name}" for name in OBJECTIVES if name != "goodput"}
    assert ratios[treated[0].cell]["ratio/total"] == pytest.approx(1.5, rel=0.03)
    lost = change(plain, lambda r: r.cell == treated[0].cell, outcome=FAILED, metrics={})
    assert treated[0].cell not in cell_ratios(lost)
    assert cell_ratios([]) == {}


def test_goodput_has_a_crossover_where_it_was_measured_and_none_where_it_was_not(make_sweep: Sweep) -> None:
    def goodput(figure: float | None) -> set[str]:
        results = [
            dataclasses.replace(
                r,
                metrics=r.metrics
                | {"slo/goodput_req_s": figure and figure * (r.metrics["throughput/total_tok_s"] or 0.0)},
            )
            for r in make_sweep(blocks=2, noise=0.004)
        ]
        summary = summarise(results, threshold=0.02)
        assert (summary.rows[0].goodput is None) == (figure is None)
        return {row.objective for row in summary.crossovers}

    others = {"total", "computed", "output", "user_speed"}
    assert goodput(None) == others
    assert goodput(0.01) == others | {"goodput"}
