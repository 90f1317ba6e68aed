"""Pairs of turns: their means and widths by hand, and what the blocks allow."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.conversations import conversations, conversations_frame, paired_cells
from analysis.fit import fit_values
from analysis.frame import cells_frame, load_sweep
from analysis.multiplicity import critical_value
from analysis.turns import turn_pairs
from jobs.result import TREATMENT
from tests.analysis.folders import SECOND, record, write_folder


def requests_of(cells: pd.DataFrame, logs: np.ndarray, conversations: int) -> pd.DataFrame:
    """Requests of cells, two turns a conversation, each figure e^(its log) (cells x turns)."""
    count = logs.shape[1]
    frame = pd.DataFrame(
        {
            "cell": np.repeat(cells["cell"].to_numpy(), count),
            "conversation": np.tile([f"c{turn % conversations}" for turn in range(count)], len(cells)),
            "epoch": 0,
            "turn": np.tile(np.arange(count) // conversations, len(cells)),
            "error": None,
            "in_window": True,
        }
    )
    figures = np.exp(logs).ravel()
    return frame.assign(ttft_ms=figures, e2el_ms=figures, decode_tokens=figures, decode_s=1.0)


@pytest.fixture(scope="module")
def cells(make_sweep: Any, true_arm: Any) -> pd.DataFrame:
    arms = [true_arm(), true_arm(label="tp1/eagle3-k7", drafter="eagle3", k=7)]
    return paired_cells(cells_frame(make_sweep(arms, levels=(4,), blocks=4)))


def test_the_ratio_is_the_mean_over_blocks_of_the_mean_over_turns(cells: pd.DataFrame) -> None:
    logs = np.random.default_rng(1).normal(0.0, 0.3, (len(cells), 12))
    pairs = turn_pairs(cells, requests_of(cells, logs, 6))
    arm = cells["arm"][cells["drafter"] == "eagle3"].iloc[0]
    by_block = []
    for _, block in cells.groupby("block"):
        treated = logs[block.index[(block["arm"] == arm)]][0]
        base = logs[block.index[block["role"] != TREATMENT]].mean(axis=0)
        by_block.append((treated - base).mean())
    fit = fit_values(cells, pairs.means[:, 1])
    assert fit.contrasts[arm].estimate == pytest.approx(np.mean(by_block))
    assert len(pairs.logs) == 2 * 4 * 12
    baselines = (cells["role"] != TREATMENT).to_numpy()
    assert pairs.means[baselines, 2] == pytest.approx(logs[baselines].mean(axis=1))


def test_only_turns_that_arm_and_baselines_answered_in_their_windows(cells: pd.DataFrame) -> None:
    rows = requests_of(cells, np.zeros((len(cells), 4)), 2)
    opening = cells["cell"][(cells["role"] == "opening") & (cells["block"] == 0)].iloc[0]
    treated = cells["cell"][(cells["role"] == TREATMENT) & (cells["block"] == 1)].iloc[0]
    rows.loc[(rows["cell"] == opening) & (rows["turn"] == 1), "in_window"] = False
    rows.loc[(rows["cell"] == treated) & (rows["conversation"] == "c0"), "error"] = "cut"
    pairs = turn_pairs(cells, rows)
    counts = np.bincount(pairs.cell, minlength=len(cells))
    first = ((cells["role"] == TREATMENT) & (cells["block"] == 0)).to_numpy()
    assert list(counts[first]) == [2, 2]  # turn 1 has no opening baseline
    assert counts[cells["cell"] == treated] == [2]
    assert counts.sum() == 2 + 2 + 2 + 5 * 4
    answered = rows[rows["in_window"] & rows["error"].isna()].groupby("cell").size()
    assert list(pairs.possible) == answered.reindex(cells["cell"]).tolist()


def test_more_conversations_do_not_narrow_what_the_blocks_allow(cells: pd.DataFrame) -> None:
    """Cells differ by a start that all their turns share: 10 or 400 conversations tell the same little."""
    starts = np.random.default_rng(2).normal(0.0, 0.05, (len(cells), 1))
    widths = []
    for count in (10, 400):
        frame = conversations_frame(cells, requests_of(cells, np.repeat(starts, 2 * count, axis=1), count))
        widths.append((np.log(frame["ttft_hi"] / frame["ttft_lo"]) / 2).to_numpy())
    assert widths[0] == pytest.approx(widths[1])
    fit = fit_values(cells, starts[:, 0])
    assert widths[0] == pytest.approx([contrast.half_width for contrast in fit.contrasts.values()])


def test_conversations_that_gain_differently_widen_the_interval(cells: pd.DataFrame) -> None:
    """A gain of 0 or 0.4 by conversation, alike in all blocks: the blocks alone would leave no doubt."""
    count = 16
    gains = np.tile(np.where(np.arange(count) % 2 == 0, 0.0, 0.4), 2)
    treated = (cells["role"] == TREATMENT).to_numpy()
    frame = conversations_frame(cells, requests_of(cells, treated[:, None] * gains[None, :], count))
    error = 0.2 / math.sqrt(count - 1)  # of the mean of 16 values, half 0, half 0.4
    assert np.log(frame["user_speed"]).to_numpy() == pytest.approx([0.2, 0.2])
    half = np.log(frame["user_speed_hi"] / frame["user_speed_lo"]).to_numpy() / 2
    assert half == pytest.approx([critical_value(2, count - 1, 1 / 3) * error] * 2)
    assert set(frame["conversations"]) == {count}
    assert set(frame["turns"]) == {4 * 2 * count}


def test_a_sweep_from_its_folder(make_sweep: Any, tmp_path: Any) -> None:
    results = make_sweep(levels=(4,), blocks=2)
    records = [record(conversation=name, begun=3, turn=turn) for name in ("a", "b") for turn in (0, 1)]
    late = record(conversation="c", begun=12)  # after the steady window
    sweep = load_sweep(write_folder(tmp_path / "made", results, requests=[*records, late]))
    (row,) = conversations(sweep).rows()
    assert (row["blocks"], row["conversations"], row["turns"], row["share"]) == (2, 2, 8, 1.0)
    assert [row[name] for name in ("user_speed", "ttft", "e2el")] == pytest.approx([1.0] * 3)
    assert row["user_speed_verdict"] == "no difference"
    assert records[0].dispatched == 3 * SECOND
    (tmp_path / "made" / "cells" / results[0].cell / "requests.parquet").unlink()
    section = conversations(load_sweep(tmp_path / "made"))
    assert section.frame.empty
    assert "requests.parquet" in section.missing
