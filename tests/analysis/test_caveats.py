import dataclasses
from pathlib import Path
from typing import Any

from analysis.caveats import ranked_caveats
from analysis.frame import Sweep, cells_frame
from analysis.recommendation import recommend
from analysis.summary import summary_of
from jobs.result import CLOSING, FAILED, TREATMENT


def caveats(results: list[Any], threshold: float = 0.02) -> tuple[str, ...]:
    sweep = Sweep(directory=Path("results/made"), plan={}, cells=cells_frame(results), results=results)
    return ranked_caveats(sweep, summary_of(sweep, threshold=threshold), recommend(sweep))


def one_failed(results: list[Any], **changes: Any) -> list[Any]:
    """Return the cells with the first of the arm with a drafter failed, and others changed as told."""
    first = next(place for place, cell in enumerate(results) if cell.role == TREATMENT)
    cells = [dataclasses.replace(cell, **changes) for cell in results]
    cells[first] = dataclasses.replace(cells[first], outcome=FAILED, cause="out_of_memory", metrics={})
    return cells


def test_lost_cells_of_the_recommended_arm_come_first_then_the_provisional_winner(make_sweep) -> None:
    found = caveats(one_failed(make_sweep(noise=0.002), emulated=True))
    assert found[0] == (
        "1 of 9 cells of tp1/ngram-k3, which is recommended, do not count (1 failed: out_of_memory)"
    )
    assert found[1].startswith("tp1/ngram-k3 won in the blocks that picked the best")
    assert found[2].startswith("emulated: ")
    assert any("1 of 27 cells have no measurement that counts" in caveat for caveat in found[3:])
    assert len(set(found)) == len(found)


def test_a_spread_above_the_threshold_is_told_with_its_level(make_sweep) -> None:
    drifting = [
        dataclasses.replace(cell, metrics={**cell.metrics, "throughput/total_tok_s": total * 1.2})
        if cell.role == CLOSING and cell.concurrency == 4
        else cell
        for cell in make_sweep(noise=0.001)
        if (total := cell.metrics["throughput/total_tok_s"]) is not None
    ]
    (told,) = [caveat for caveat in caveats(drifting) if "A/A" in caveat]
    assert "at C=4" in told
    assert "more than the practical threshold of 2.0%" in told
    assert not [caveat for caveat in caveats(make_sweep(noise=0.001)) if "A/A" in caveat]


def test_a_runner_up_that_may_be_as_good_is_named(make_sweep, true_arm) -> None:
    ratios = {4: 1.3}
    twins = [true_arm(ratios=ratios), true_arm(label="tp1/ngram-k5", k=5, ratios=ratios)]
    (told,) = [
        caveat for caveat in caveats(make_sweep(twins, levels=(4,), noise=0.01)) if "as good" in caveat
    ]
    assert told.endswith("at C=4: no interval tells them apart")
    apart = make_sweep([true_arm(ratios=ratios)], levels=(4,), noise=0.01)
    assert not any("as good" in caveat for caveat in caveats(apart))


def test_one_block_goes_before_what_is_only_of_rows(make_sweep) -> None:
    cells = make_sweep(blocks=1)
    found = caveats([dataclasses.replace(cell, caveats=(f"{cell.level:g} went wrong",)) for cell in cells])
    assert found[0].startswith("one block:")
    assert found[-1] == "1 went wrong (tp1/ngram-k3 C=1, tp1/ngram-k3 C=4, tp1/ngram-k3 C=16)"
    assert sum("block" in caveat and "noise" in caveat for caveat in found) == 1


def test_window_and_whole_work_and_shares(make_sweep, true_arm) -> None:
    apart = make_sweep([true_arm(computed={1: 2.0, 4: 1.6, 16: 1.1})], noise=0.002)
    assert any("imply different uncached shares at 3 places" in caveat for caveat in caveats(apart))
    drained = [
        dataclasses.replace(cell, metrics={**cell.metrics, "fixed_work/total_tok_s": 900.0})
        for cell in make_sweep(noise=0.002)
    ]
    assert any("steady window and whole fixed work disagree" in caveat for caveat in caveats(drained))


def test_forced_acceptance_shared_cores_and_text_of_hashes(make_sweep) -> None:
    cells = [
        dataclasses.replace(
            cell,
            synthetic=cell.role == TREATMENT,
            oversubscribed=cell.concurrency == 16,
            identity={"validity": "synthetic" if cell.role == TREATMENT else "hashed"},
        )
        for cell in make_sweep(noise=0.002)
    ]
    found = caveats(cells)
    assert any(caveat.startswith("acceptance was forced in tp1/ngram-k3") for caveat in found)
    assert any(caveat.startswith("client and engine shared a core at C=16") for caveat in found)
    assert any("text was made from hashes" in caveat for caveat in found)
    assert sum("acceptance was forced" in caveat for caveat in found) == 1  # not by each rule anew


def test_a_curve_that_never_comes_down_is_unfinished(make_sweep, true_arm) -> None:
    found = caveats(make_sweep([true_arm(ratios={1: 1.5, 4: 1.4, 16: 1.3})], noise=0.002))
    assert any("still above 1 at C=16, the highest level tried" in caveat for caveat in found)
    assert not any("still above 1" in caveat for caveat in caveats(make_sweep(noise=0.002)))
