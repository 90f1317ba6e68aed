"""Goodput as a section: by the design's limits, and counted anew from the requests by others."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.errors import ResultsError
from analysis.frame import Sweep, cells_frame
from analysis.goodput import RATE, SHARE, checked, goodput, goodput_frame, with_limits, within

REQUESTS = pd.DataFrame(
    {
        "error": [None, None, None, "http_500"],
        "ttft_ms": [100.0, 300.0, 100.0, None],
        "tpot_ms": [10.0, 10.0, None, None],
        "e2el_ms": [500.0, 900.0, 100.0, None],
    }
)


@pytest.mark.parametrize(
    ("limits", "good"),
    [
        ({"ttft_ms": 300}, [True, True, True, False]),
        ({"ttft_ms": 299}, [True, False, True, False]),
        ({"tpot_ms": 5}, [False, False, True, False]),  # one chunk: no time per token to be too long
        ({"ttft_ms": 300, "e2el_ms": 500}, [True, False, True, False]),
    ],
)
def test_a_failure_is_a_miss_and_every_limit_has_to_hold(limits, good):
    assert within(REQUESTS, limits).tolist() == good


@pytest.mark.parametrize("limits", [{"ttft": 1}, {"ttft_ms": 0}])
def test_a_limit_has_to_be_one(limits):
    with pytest.raises(ValueError, match="is none; limits are ttft_ms, tpot_ms, e2el_ms"):
        within(REQUESTS, limits)


def of(results, directory=Path("results/s"), **plan):
    return Sweep(directory=directory, plan=plan, cells=cells_frame(results), results=results)


def with_share(results, share):
    """The treatment's share and rate; the baseline has half of both."""
    return [
        result.__class__.from_dict(
            {
                **result.to_dict(),
                "metrics": {
                    **result.metrics,
                    SHARE: share if result.k else share / 2,
                    RATE: 8.0 if result.k else 4.0,
                },
            }
        )
        for result in results
    ]


def test_the_section_has_share_rate_and_ratio(make_sweep):
    results = with_share(make_sweep(levels=(4,), blocks=3), 0.8)
    section = goodput(of(results, slo={"ttft_ms": 500.0, "tpot_ms": None, "e2el_ms": None}))
    assert section.title == "Goodput within TTFT 500 ms"
    rows = section.frame.set_index("label")
    assert rows.loc["tp1/ngram-k3", ["share", "rate", "ratio"]].tolist() == pytest.approx([0.8, 8.0, 2.0])
    assert rows.loc["tp1/none", ["share", "rate"]].tolist() == pytest.approx([0.4, 4.0])
    assert pd.isna(rows.loc["tp1/none", "ratio"])


def test_without_limits_there_is_none_and_the_command_that_counts_it(make_sweep):
    section = goodput(of(make_sweep()))
    assert section.frame.empty
    assert "--slo-ttft-ms" in section.missing
    assert checked(of(make_sweep()), {}).plan == {}


def test_other_limits_are_counted_from_the_requests(make_sweep, tmp_path):
    """Two of three requests of the window meet 150 ms, and of all four two: one failed."""
    results = make_sweep(levels=(4,), blocks=2)
    for result in results:
        folder = tmp_path / "cells" / result.cell
        folder.mkdir(parents=True)
        times = [0, 1_000_000_000, 2_000_000_000, 3_000_000_000]
        table = {
            "dispatched": pa.array(times, pa.int64()),
            "error": [None, None, None, "cut"],
            "ttft_ms": [100.0, 300.0, 120.0, None],
            "tpot_ms": [1.0, 1.0, 1.0, None],
            "in_window": [True, True, True, False],
        }
        pq.write_table(pa.table(table), folder / "requests.parquet")
    sweep = with_limits(of(results, tmp_path), {"ttft_ms": 150})
    assert sweep.cells[SHARE].tolist() == pytest.approx([0.5] * len(results))
    assert sweep.cells[RATE].tolist() == pytest.approx([2.0] * len(results))  # a window of one second
    assert sweep.results[0].metrics[SHARE] == pytest.approx(0.5)
    assert goodput(sweep).title == "Goodput within TTFT 150 ms"
    assert goodput_frame(sweep.cells)["share"].tolist() == pytest.approx([0.5, 0.5])
    (tmp_path / "cells" / results[0].cell / "requests.parquet").unlink()
    with pytest.raises(ResultsError, match="other limits is counted from the requests"):
        checked(of(results, tmp_path), {"ttft_ms": 150})
