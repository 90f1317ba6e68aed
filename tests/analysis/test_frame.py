import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis import load_sweep
from analysis.errors import ResultsError
from analysis.frame import COLUMNS, cells_frame
from jobs.metric_names import METRICS
from jobs.result import CellResult, Gate

Make = Callable[..., CellResult]


def save(root: Path, results: list[CellResult]) -> None:
    root.mkdir(parents=True, exist_ok=True)
    (root / "plan.json").write_text(json.dumps({"name": "study"}))
    for result in results:
        folder = root / "cells" / result.cell
        folder.mkdir(parents=True)
        (folder / "result.json").write_text(json.dumps(result.to_dict()))


def test_levels_of_two_kinds_are_not_of_one_sweep(make_cell: Make) -> None:
    with pytest.raises(ValueError, match="levels of concurrency and rate"):
        cells_frame([make_cell(), make_cell(concurrency=None, rate=4.0)])


def test_columns_and_values(make_cell: Make) -> None:
    result = make_cell(
        factors={"drafter.k": "3"},
        metrics={"spec/mal": 2.5, "spec/acceptance_pos_1": 0.8, "user/speed_tok_s": None},
    )
    frame = cells_frame([result, result.to_dict() | {"cell": "second", "block": 1}])
    assert list(frame.columns[: len(COLUMNS)]) == COLUMNS
    assert set(METRICS) <= set(frame.columns)
    assert list(frame["factor:drafter.k"]) == ["3", "3"]
    assert list(frame["spec/acceptance_pos_1"]) == [0.8, 0.8]
    assert frame["user/speed_tok_s"].isna().all()
    assert list(frame["cell"]) == [result.cell, "second"]
    assert list(frame["pair"]) == ["tp1", "tp1"]


def test_arms_of_one_label_are_told_apart_by_what_was_swept(make_cell: Make) -> None:
    frame = cells_frame(
        [
            make_cell(arm="a", factors={"engine.flags.block_size": "16", "seed": "1"}, cell="x"),
            make_cell(arm="b", factors={"engine.flags.block_size": "32", "seed": "1"}, cell="y"),
            make_cell(arm="c", arm_label="tp1/none", cell="z"),
        ]
    )
    assert list(frame["label"]) == [
        "tp1/ngram-k3 [engine.flags.block_size=16]",
        "tp1/ngram-k3 [engine.flags.block_size=32]",
        "tp1/none",
    ]


def test_two_cells_in_one_place_are_refused(make_cell: Make) -> None:
    with pytest.raises(ValueError, match="cells x, y claim the same arm"):
        cells_frame([make_cell(cell="x"), make_cell(cell="y")])


def test_no_results_is_an_empty_table() -> None:
    frame = cells_frame([])
    assert isinstance(frame, pd.DataFrame)
    assert frame.empty
    assert set(COLUMNS) <= set(frame.columns)


def test_load_sweep_reads_all_there_is(tmp_path: Path, make_cell: Make) -> None:
    results = [
        make_cell(gates=(Gate(name="occupancy", passed=True, message="1.0"),), caveats=("short",)),
        make_cell(concurrency=8, outcome="failed", cause="died", metrics={}),
    ]
    save(tmp_path / "a b'; echo", results)
    sweep = load_sweep(str(tmp_path / "a b'; echo"))
    assert sweep.plan == {"name": "study"}
    assert sorted(sweep.results, key=lambda r: r.level) == results
    assert len(sweep.cells) == 2


def test_every_damaged_file_is_named(tmp_path: Path, make_cell: Make) -> None:
    save(tmp_path, [make_cell(), make_cell(concurrency=8, cell="cut"), make_cell(concurrency=9, cell="old")])
    cut, old = (tmp_path / "cells" / name / "result.json" for name in ("cut", "old"))
    cut.write_text(cut.read_text()[:100])
    old.write_text(json.dumps(json.loads(old.read_text()) | {"schema": 99}))
    with pytest.raises(ResultsError, match=r"cells/cut/result\.json .*cells/old/result\.json .*schema 99"):
        load_sweep(tmp_path)
    (tmp_path / "plan.json").write_text("[")
    with pytest.raises(ResultsError, match=r"plan\.json"):
        load_sweep(tmp_path)


def test_earlier_outcomes_and_unfinished_folders_are_no_cells(tmp_path: Path, make_cell: Make) -> None:
    save(tmp_path, [make_cell(cell="x"), make_cell(cell=".earlier-x-1", outcome="failed")])
    (tmp_path / "cells" / ".staging").mkdir()
    (tmp_path / "cells" / ".staging" / "result.json").write_text("{")
    assert [result.cell for result in load_sweep(tmp_path).results] == ["x"]


def test_a_try_that_is_replaced_while_a_running_sweep_is_read_is_no_damage(
    tmp_path: Path, make_cell: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, [make_cell(cell="x"), make_cell(cell="y", concurrency=8)])
    read_text = Path.read_text

    def later(path: Path, *args: Any, **kwargs: Any) -> str:
        if path.parent.name == "x":
            path.parent.rename(path.parent.with_name(".earlier-000003-x"))
        return read_text(path, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", later)
    assert [result.cell for result in load_sweep(tmp_path).results] == ["y"]


def test_not_a_sweep(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"has no plan\.json; give the folder"):
        load_sweep(tmp_path)
