"""Measured acceptance: mean lengths of a file, and the positions of another cell."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.acceptance import Acceptance
from engines.spec import Drafter, EngineConfig, Model
from jobs.result import CellResult
from orchestrator.acceptance import acceptance_notes, acceptance_of
from orchestrator.acceptance_cell import cell_acceptance
from orchestrator.acceptance_lengths import file_acceptance, non_increasing, rates_of
from orchestrator.errors import ConfigError

PUBLISHED = Path(__file__).parents[3] / "shared" / "data" / "acceptance_lengths"
QUICK = settings(max_examples=60, deadline=None)

LENGTHS = """
# key = draft length, value = mean acceptance length
some-model:
  falling:
    1: 1.8
    2: 2.3
    3: 2.5
  flat:
    1: 1.8
    2: 2.3
    3: 2.25
    4: 2.35
"""


@pytest.fixture
def lengths(tmp_path: Path) -> str:
    path = tmp_path / "lengths.yaml"
    path.write_text(LENGTHS)
    return str(path)


def test_what_a_position_adds_is_its_rate(lengths: str) -> None:
    found = file_acceptance(lengths, row="falling")
    assert found.rates(3) == pytest.approx((0.8, 0.5, 0.2))
    assert found.mean_length(2) == pytest.approx(2.3)
    assert found.source is not None
    assert (found.source.name, found.source.note) == ("lengths.yaml some-model/falling", "")


def test_rates_that_would_rise_are_pooled_and_the_move_is_said(lengths: str) -> None:
    found = file_acceptance(lengths, row="some-model/flat")
    # Increments .8, .5, -.05, .1: the last two have the mean .025.
    assert found.rates(4) == pytest.approx((0.8, 0.5, 0.025, 0.025))
    assert found.source is not None
    assert "moved them by up to 0.075: 2.25 to 2.325 at K=3" in found.source.note


def test_the_plan_says_where_rates_are_from(lengths: str) -> None:
    acceptance = acceptance_of({"file": lengths, "row": "flat"}, k=3, results="")
    assert acceptance is not None
    assert acceptance.positions == pytest.approx((0.8, 0.5, 0.025))
    drafter = Drafter(method="free", k=3, acceptance=acceptance)
    config = EngineConfig(engine="vllm", version="1", model=Model(name="m"), drafter=drafter)
    [note] = acceptance_notes([config, config])
    assert note.startswith("acceptance of file lengths.yaml some-model/flat (SHA-256 ")
    assert "isotonic regression" in note


@pytest.mark.parametrize(
    ("text", "row", "told"),
    [
        (LENGTHS, None, "has the rows some-model/falling, some-model/flat; choose one"),
        (LENGTHS, "on", "on is no row of .* it has some-model/falling"),
        ("a: [1, 2]", None, "has no row of mean acceptance lengths"),
        ("1: 2.5", None, r"2.5 at K=1 cannot be: it lies in 1 to 2"),
        ("0: 1.0", None, "whole numbers from 1"),
        ("a: {", None, "cannot be read as YAML"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, text: str, row: str | None, told: str) -> None:
    path = tmp_path / "lengths.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=told):
        file_acceptance(str(path), row=row)
    with pytest.raises(ConfigError, match="cannot be read"):
        file_acceptance(str(tmp_path / "absent"), row=None)


def test_lengths_with_gaps_are_spread_evenly() -> None:
    assert rates_of({1: 1.8, 3: 2.8}) == pytest.approx((0.8, 0.5, 0.5))


@QUICK
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=10))
def test_the_isotonic_fit_is_the_nearest(values: list[float]) -> None:
    fit = non_increasing(values)
    assert all(after <= before + 1e-12 for before, after in pairwise(fit))
    assert sum(fit) == pytest.approx(sum(values), abs=1e-9)
    # The projection on the cone of falling sequences: no falling sequence lies further along the residual.
    residual = [value - fitted for value, fitted in zip(values, fit, strict=True)]
    assert sum(r * f for r, f in zip(residual, fit, strict=True)) == pytest.approx(0, abs=1e-9)
    for cut in range(1, len(values) + 1):
        assert sum(residual[:cut]) <= 1e-9
    assert non_increasing(fit) == pytest.approx(fit)


@QUICK
@given(st.lists(st.floats(0, 1), min_size=1, max_size=10))
def test_lengths_of_falling_rates_give_those_rates_back(values: list[float]) -> None:
    rates = sorted(values, reverse=True)
    lengths = {k: Acceptance(positions=tuple(rates)).mean_length(k) for k in range(1, len(rates) + 1)}
    assert rates_of(lengths) == pytest.approx(rates, abs=1e-9)


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the shared traces are not here")
def test_published_lengths_load() -> None:
    found = file_acceptance(str(PUBLISHED / "dsv4_mtp.yaml"), row="thinking_on")
    # Flat after K=4 and not monotone: the last four increments (.01, 0, -.01, .04) have the mean .01.
    assert found.rates(8) == pytest.approx((0.79, 0.48, 0.22, 0.05, 0.01, 0.01, 0.01, 0.01))
    assert [found.mean_length(k) for k in (4, 8)] == pytest.approx([2.54, 2.58])
    assert found.source is not None
    assert "by up to 0.030: 2.55 to 2.560 at K=6, 2.54 to 2.570 at K=7" in found.source.note
    with pytest.raises(ConfigError, match="deepseek-v4-pro/thinking_on, deepseek-v4-pro/thinking_off"):
        file_acceptance(str(PUBLISHED / "dsv4_mtp.yaml"), row=None)
    single = file_acceptance(str(PUBLISHED / "glm5.2_mtp.yaml"), row=None)
    assert single.mean_length(8) == pytest.approx(4.06)
    rising = file_acceptance(str(PUBLISHED / "kimik3_dspark.yaml"), row=None)
    assert rising.mean_length(5) == pytest.approx(3.44)
    assert rising.rates(8)[5:] == pytest.approx((0.17, 0.17, 0.10))


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a cell's result into a sweep of the results folder, as the ledger lays it out."""

    def one(
        sweep: str, cell: str, rates: tuple[float, ...], *, drafts: float = 1000.0, **changes: Any
    ) -> Path:
        metrics: dict[str, float | None] = {
            f"spec/acceptance_pos_{position}": rate for position, rate in enumerate(rates, start=1)
        }
        values: dict[str, Any] = {
            "cell": cell,
            "arm": "a" * 64,
            "arm_label": "tp1/eagle3-k3",
            "layout": "tp1",
            "drafter": "eagle3",
            "concurrency": 1,
            "block": 0,
            "segment": 0,
            "role": "treatment",
            "emulated": False,
            "k": len(rates),
            "metrics": {**metrics, "spec/drafts": drafts},
            "outcome": "measured",
            **changes,
        }
        folder = tmp_path / sweep / "cells" / cell
        folder.mkdir(parents=True)
        (folder / "result.json").write_text(json.dumps(CellResult(**values).to_dict()))
        return folder

    return one


def test_a_cell_is_found_by_its_id_its_folder_and_within_a_sweep(write: Write, tmp_path: Path) -> None:
    folder = write("s1", "b0-one", (0.8, 0.5, 0.2))
    found = {
        name: cell_acceptance(name, results=str(tmp_path))
        for name in ("b0-one", str(folder), str(folder / "result.json"), "s1/cells/b0-one", "s1")
    }
    assert {acceptance.positions for acceptance in found.values()} == {(0.8, 0.5, 0.2)}
    source = found["b0-one"].source
    assert source is not None
    assert (source.kind, source.name) == ("cell", "b0-one")
    assert "measured over 1,000 drafts of tp1/eagle3-k3 at K=3" in source.note
    assert len(source.digest) == 64
    settled = acceptance_of({"from": "b0-one"}, k=2, results=str(tmp_path))
    assert settled is not None
    assert settled.positions == (0.8, 0.5)


def test_the_cells_of_one_drafter_are_pooled_by_their_drafts(write: Write, tmp_path: Path) -> None:
    write("s1", "c1", (0.8, 0.4), drafts=3000)
    write("s1", "c16", (0.4, 0.2), drafts=1000)
    write("s1", "forced", (1.0, 1.0), synthetic=True, arm="b" * 64)
    write("s1", "base", (), arm="c" * 64)
    write("s1", "broken", (0.1, 0.1), outcome="invalid")
    found = cell_acceptance("s1", results=str(tmp_path))
    assert found.positions == pytest.approx((0.7, 0.35))
    assert found.source is not None
    assert (found.source.kind, found.source.name) == ("sweep", "s1")


def test_cells_that_have_no_acceptance_to_take(write: Write, tmp_path: Path) -> None:
    write("s1", "base", ())
    write("s1", "broken", (0.1,), outcome="invalid")
    write("s2", "one", (0.8,))
    write("s2", "two", (0.7,), arm="b" * 64, arm_label="tp1/ngram-k1")
    write("s3", "one", (0.8,))
    for name, told in {
        "base": "has no acceptance by position",
        "broken": "is invalid: it has no acceptance",
        "s1": "no cell of this sweep has a real acceptance",
        "s2": r"several drafters: tp1/eagle3-k3 \(one\), tp1/ngram-k1 \(two\)",
        "one": "is a cell of s2, s3; give its folder",
        "nowhere": "is no cell and no sweep in",
    }.items():
        with pytest.raises(ConfigError, match=told):
            cell_acceptance(name, results=str(tmp_path))


def test_made_up_text_is_said(write: Write, tmp_path: Path) -> None:
    write("s1", "c", (0.8,), identity={"validity": "hashed"})
    found = cell_acceptance("c", results=str(tmp_path))
    assert found.source is not None
    assert found.source.note.endswith("on made-up text, so it says nothing of real text")
