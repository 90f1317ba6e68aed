"""Requests and samples of a sweep as tidy frames."""

import io
import math

import pyarrow.parquet as pq
import pytest

from analysis import load_sweep
from analysis.errors import ResultsError
from analysis.requests import GAUGE_COLUMNS, JOINED, REQUEST_COLUMNS
from jobs.rows import requests_parquet
from tests.analysis.folders import record, replay, samples, write_folder

LEFT_OUT = {"speculation", "chunk_offset"}
"""Of a file: a struct whose parts are columns of their own, and a place in another file."""


@pytest.fixture(scope="module")
def results(make_sweep):
    return make_sweep(levels=(1, 4), blocks=1)


@pytest.fixture(scope="module")
def loaded(results, tmp_path_factory):
    failed = record(
        begun=4, turn=2, first=None, last=None, completion_tokens=None, error="cut", speculation=None
    )
    single = record(begun=5, turn=3, tokens=1, chunks=1)
    records = [record(), record(begun=3, turn=1), failed, single]
    root = write_folder(tmp_path_factory.mktemp("results") / "made", results, requests=records)
    return load_sweep(root)


def test_every_field_of_a_request_has_its_column():
    names = pq.read_table(io.BytesIO(requests_parquet(replay([record()])))).column_names
    told = {name.removesuffix("_s") for name in REQUEST_COLUMNS} | {"send_lag"}
    assert {name for name in names if name not in told} == LEFT_OUT
    assert list(samples()[0]) == ["time", "replica", "running", "waiting", "kv_usage", "gpu0_power_w"]


def test_requests_carry_their_cell_and_tidy_units(loaded):
    rows = loaded.requests()
    assert list(rows.columns) == [*JOINED, *REQUEST_COLUMNS]
    assert len(rows) == 4 * len(loaded.cells)
    assert rows["cell"].tolist()[::4] == loaded.cells["cell"].tolist()
    assert rows["level"].tolist()[::4] == loaded.cells["level"].tolist()
    assert rows["role"].dtype == "category"
    one = rows.iloc[1]
    assert (one["dispatched_s"], one["first_s"], one["last_s"], one["ended_s"]) == (2.0, 2.5, 4.5, 5.0)
    assert (one["ttft_ms"], one["tpot_ms"], one["e2el_ms"]) == (500.0, 100.0, 2500.0)
    assert (one["decode_tokens"], one["decode_s"], one["send_lag_ms"]) == (20, 2.0, 2.0)
    assert (one["steps"], one["drafted"], one["accepted"]) == (10, 30, 11)
    assert rows["in_window"].tolist()[:4] == [False, True, True, True]


def test_what_a_request_lacks_is_missing(loaded):
    failed, single = (loaded.requests().iloc[place] for place in (2, 3))
    lacking = ["first_s", "last_s", "ttft_ms", "completion_tokens", "decode_s", "steps", "cached_tokens"]
    assert [math.isnan(failed[name]) for name in lacking] == [True] * len(lacking)
    assert failed["error"] == "cut"
    assert failed["dispatched_s"] == 3.0
    assert math.isnan(single["tpot_ms"])
    assert math.isnan(single["decode_tokens"])
    assert math.isnan(single["decode_s"])


def test_only_what_is_asked_for_is_read(loaded):
    cells = loaded.cells["cell"].iloc[[2, 0]]
    rows = loaded.requests(["decode_s", "conversation", "cell"], cells=cells)
    assert list(rows.columns) == [*JOINED, "decode_s", "conversation"]
    assert rows["cell"].unique().tolist() == sorted(cells, key=loaded.cells["cell"].tolist().index)
    assert loaded.requests(["steps"])["steps"].tolist()[:2] == [10, 10]
    with pytest.raises(ValueError, match="no column ttft; choose of cell, "):
        loaded.requests(["ttft"])
    with pytest.raises(ValueError, match="the sweep has no cell b9"):
        loaded.requests(cells=["b9"])
    assert loaded.requests(cells=[]).empty


def test_samples_are_tidy_too(loaded):
    rows = loaded.gauges()
    assert list(rows.columns) == [*JOINED, *GAUGE_COLUMNS, "gpu0_power_w"]
    assert rows["time_s"].tolist()[:2] == [0.0, 1.0]
    assert rows["waiting"].isna().all()
    assert rows["host_cpu"].isna().all()
    some = loaded.gauges(["kv_usage", "gpu0_power_w"])
    assert list(some.columns) == [*JOINED, "kv_usage", "gpu0_power_w"]
    assert some["gpu0_power_w"].eq(300.0).all()


def test_missing_and_damaged_files_are_all_named(make_sweep, make_cell, tmp_path):
    failed = make_cell(cell="lost", outcome="failed", cause="crash", block=7)
    root = write_folder(tmp_path / "made", [*make_sweep(levels=(1,), blocks=1), failed])
    assert "lost" not in set(load_sweep(root).requests(["error"])["cell"])
    names = sorted(path.name for path in (root / "cells").iterdir() if path.name != "lost")
    (root / "cells" / names[0] / "requests.parquet").unlink()
    (root / "cells" / names[1] / "requests.parquet").write_bytes(b"PAR1 cut")
    sweep = load_sweep(root)
    with pytest.raises(ResultsError) as caught:
        sweep.requests(["error"])
    message = str(caught.value)
    assert f"cells/{names[0]}/requests.parquet (missing)" in message
    assert f"cells/{names[1]}/requests.parquet (" in message
    assert "leave those cells out with cells=" in message
    assert len(sweep.requests(["error"], cells=names[2:])) == 2
