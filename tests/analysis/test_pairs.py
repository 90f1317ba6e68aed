import dataclasses
import math
from collections.abc import Callable

import pytest

from analysis.frame import cells_frame
from analysis.pairs import aa_spreads, baselines, pairs_frame
from jobs.result import CLOSING, FAILED, INVALID, OPENING, TREATMENT, CellResult

Make = Callable[..., CellResult]


def base(make_cell: Make, role: str, total: float, **changes: object) -> CellResult:
    figures = {**make_cell().metrics, "throughput/total_tok_s": total}
    return make_cell(
        **{
            "arm": "b" * 64,
            "arm_label": "tp1/none",
            "drafter": "none",
            "k": 0,
            "role": role,
            "metrics": figures,
        }
        | changes
    )


def test_denominator_is_the_geometric_mean_of_opening_and_closing(make_cell: Make) -> None:
    cells = [base(make_cell, OPENING, 80.0), make_cell(), base(make_cell, CLOSING, 125.0)]
    (pair,) = pairs_frame(cells_frame(cells)).to_dict("records")
    assert pair["valid"]
    assert pair["caveat"] is None
    assert pair["log_total"] == pytest.approx(math.log(100.0 / math.sqrt(80.0 * 125.0)))
    assert aa_spreads(cells_frame(cells))["total"] == pytest.approx(math.log(125 / 80))


def test_one_baseline_alone_is_a_caveat(make_cell: Make) -> None:
    for there, missing in ((OPENING, CLOSING), (CLOSING, OPENING)):
        cells = [base(make_cell, there, 80.0), make_cell()]
        (pair,) = pairs_frame(cells_frame(cells)).to_dict("records")
        assert pair["valid"]
        assert pair["caveat"] == f"no {missing} baseline: the {there} one stands alone"
        assert pair["log_total"] == pytest.approx(math.log(100 / 80))
        assert aa_spreads(cells_frame(cells))["total"] is None


@pytest.mark.parametrize("change", [{"segment": 1}, {"block": 1}, {"concurrency": 8}, {"layout": "tp2"}])
def test_pairs_never_cross_segment_block_level_or_layout(make_cell: Make, change: dict[str, object]) -> None:
    cells = [base(make_cell, OPENING, 80.0, **change), make_cell()]
    (pair,) = pairs_frame(cells_frame(cells)).to_dict("records")
    assert not pair["valid"]
    assert pair["why"] == "its baseline was not measured (none in its segment)"
    assert math.isnan(pair["log_total"])


def test_pair_key_separates_arms_of_one_layout(make_cell: Make) -> None:
    cells = [
        base(make_cell, OPENING, 80.0, identity={"pair_key": "one"}),
        base(make_cell, OPENING, 50.0, identity={"pair_key": "two"}, arm="c" * 64, cell="other"),
        make_cell(identity={"pair_key": "two"}),
    ]
    (pair,) = pairs_frame(cells_frame(cells)).to_dict("records")
    assert pair["opening"] == "other"
    assert pair["log_total"] == pytest.approx(math.log(2.0))


def test_invalid_on_either_side_with_the_reason(make_cell: Make) -> None:
    broken = [base(make_cell, OPENING, 80.0, outcome=INVALID), base(make_cell, CLOSING, 80.0, outcome=FAILED)]
    (pair,) = pairs_frame(cells_frame([*broken, make_cell()])).to_dict("records")
    assert not pair["valid"]
    assert pair["why"] == "its baseline was not measured (opening invalid, closing failed)"
    treated = make_cell(outcome=FAILED, cause="out_of_memory", reason="no room for the KV cache", metrics={})
    (pair,) = pairs_frame(cells_frame([base(make_cell, OPENING, 80.0), treated])).to_dict("records")
    assert pair["why"] == "failed: out_of_memory: no room for the KV cache"


def test_a_missing_metric_spoils_its_own_ratio_only(make_cell: Make) -> None:
    without = make_cell()
    without = dataclasses.replace(without, metrics={**without.metrics, "user/speed_tok_s": None})
    (pair,) = pairs_frame(cells_frame([base(make_cell, OPENING, 80.0), without])).to_dict("records")
    assert pair["valid"]
    assert math.isnan(pair["log_user_speed"])
    assert math.isfinite(pair["log_total"])


def test_oversubscribed_on_either_side(make_cell: Make) -> None:
    quiet, crowded = make_cell(), make_cell(oversubscribed=True)
    for treated, other, expected in ((quiet, False, False), (crowded, False, True), (quiet, True, True)):
        cells = [
            base(make_cell, OPENING, 80.0, oversubscribed=other),
            base(make_cell, CLOSING, 80.0),
            treated,
        ]
        (pair,) = pairs_frame(cells_frame(cells)).to_dict("records")
        assert pair["oversubscribed"] is expected or pair["oversubscribed"] == expected


def test_spread_is_the_root_mean_square(make_cell: Make) -> None:
    cells = []
    for block, ratio in enumerate((1.03, 1 / 1.01, 1.0)):
        cells += [
            base(make_cell, OPENING, 100.0, block=block),
            base(make_cell, CLOSING, 100.0 * ratio, block=block),
        ]
    expected = math.sqrt((math.log(1.03) ** 2 + math.log(1.01) ** 2) / 3)
    assert aa_spreads(cells_frame(cells))["total"] == pytest.approx(expected)
    assert len(baselines(cells_frame(cells))) == 3


def test_no_treatments_and_no_baselines(make_cell: Make) -> None:
    assert pairs_frame(cells_frame([base(make_cell, OPENING, 80.0)])).empty
    assert len(pairs_frame(cells_frame([make_cell(role=TREATMENT)]))) == 1
    assert pairs_frame(cells_frame([])).empty
