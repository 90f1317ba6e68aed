"""Turn by turn: the same turn of the same conversation in an arm and in its block's baselines.

Only figures of a user have such pairs: decode speed, TTFT and E2EL of a request. A turn counts where it was
answered in the steady window of the arm's cell and of every baseline of its segment, so that each side of a
ratio rests on the same work.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.pairs import STRATUM
from jobs.result import CLOSING, TREATMENT

FIGURES = ("user_speed", "ttft", "e2el")
"""Figures that are paired by turn, in the order of the arrays' columns."""
REQUESTS = (
    "conversation",
    "epoch",
    "turn",
    "error",
    "in_window",
    "ttft_ms",
    "e2el_ms",
    "decode_tokens",
    "decode_s",
)
"""Columns of `Sweep.requests` that are needed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TurnPairs:
    """Log ratios of turns, and what they make of the cells."""

    cell: np.ndarray
    """Row of each pair's speculative cell in the table of cells."""
    conversation: np.ndarray
    """Number of its conversation; repetitions under a fresh salt are the same conversation."""
    logs: np.ndarray
    """ln of the arm's figure over its baselines' geometric mean (pairs x figures); NaN where missing."""
    means: np.ndarray
    """A value a cell (cells x figures): its matched turns' mean log, so that the difference of an arm's value
    and the mean of its baselines' is the mean of its `logs`."""
    possible: np.ndarray
    """Turns of each cell that were answered in its window."""


def turn_pairs(cells: pd.DataFrame, requests: pd.DataFrame) -> TurnPairs:
    """Pair the turns of each speculative cell with those of its baselines.

    Args:
        cells: rows of `cells_frame`, with an index of their own from 0.
        requests: `Sweep.requests` of these cells, with the columns of `REQUESTS`.
    """
    place = pd.Index(cells["cell"]).get_indexer(pd.Index(requests["cell"].astype(object)))
    answered = requests["error"].isna().to_numpy() & requests["in_window"].to_numpy(dtype=bool) & (place >= 0)
    rows, place = requests[answered], place[answered]
    values = _logs(rows)
    stratum = cells.groupby(STRATUM, sort=False).ngroup().to_numpy()
    conversation = pd.factorize(rows["conversation"])[0]
    turns = [conversation, rows["epoch"].to_numpy(), rows["turn"].to_numpy()]
    turn = pd.factorize(pd.MultiIndex.from_arrays(turns))[0]
    code = stratum[place] * (int(turn.max(initial=0)) + 1) + turn
    treated = (cells["role"] == TREATMENT).to_numpy(dtype=bool)
    own = treated[place]
    base = _baselines(cells, stratum, place=place[~own], code=code[~own], values=values[~own])
    spots = np.minimum(np.searchsorted(base.codes, code[own]), max(0, len(base.codes) - 1))
    met = base.codes[spots] == code[own] if len(base.codes) else np.zeros(len(spots), dtype=bool)
    cell = place[own][met]
    logs = values[own][met] - base.means[spots[met]]
    kept = np.isfinite(logs).any(axis=1)
    means = base.cells.copy()
    means[treated] = (base.strata[stratum] + _mean(cell, logs, len(cells)))[treated]
    return TurnPairs(
        cell=cell[kept],
        conversation=conversation[own][met][kept],
        logs=logs[kept],
        means=means,
        possible=np.bincount(place, minlength=len(cells)),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Baselines:
    """What the baselines of all strata have to be compared with."""

    codes: np.ndarray
    """Stratum and turn as one number, ascending."""
    means: np.ndarray
    """Mean log over the stratum's baselines of each (codes x figures); NaN unless all of them have it."""
    strata: np.ndarray
    """The mean of those by stratum."""
    cells: np.ndarray
    """A value a cell: of a baseline the mean over the same turns, of other cells NaN."""


def _baselines(
    cells: pd.DataFrame, stratum: np.ndarray, *, place: np.ndarray, code: np.ndarray, values: np.ndarray
) -> _Baselines:
    """Gather the turns of baselines: `place` is each one's cell, `code` its stratum and turn."""
    strata = int(stratum.max(initial=-1)) + 1
    codes, inverse = np.unique(code, return_inverse=True)
    count = np.bincount(inverse, minlength=len(codes))
    present = np.unique(place)
    expected = np.bincount(stratum[present], minlength=strata)
    of_code = np.zeros(len(codes), dtype=int)
    of_code[inverse] = stratum[place]
    complete = (count == expected[of_code])[:, None]
    means = np.where(complete, _sums(inverse, values, len(codes)) / count[:, None], np.nan)
    by_stratum = _mean(of_code, means, strata)
    side = np.where(cells["role"] == CLOSING, 1.0, -1.0)
    lean = _sums(inverse, values * side[place][:, None], len(codes)) / 2.0  # half of closing less opening
    of_stratum = _mean(of_code, np.where(np.isfinite(means), lean, np.nan), strata)
    of_stratum[expected < 2] = 0.0
    own = np.full((len(cells), values.shape[1]), np.nan)
    own[present] = by_stratum[stratum[present]] + side[present, None] * of_stratum[stratum[present]]
    return _Baselines(codes=codes, means=means, strata=by_stratum, cells=own)


def _logs(rows: pd.DataFrame) -> np.ndarray:
    seconds = rows["decode_s"].to_numpy(dtype=float)
    speed = np.divide(
        rows["decode_tokens"].to_numpy(dtype=float),
        seconds,
        out=np.full(len(rows), np.nan),
        where=seconds > 0.0,
    )
    figures = np.column_stack(
        [speed, rows["ttft_ms"].to_numpy(dtype=float), rows["e2el_ms"].to_numpy(dtype=float)]
    )
    logs: np.ndarray = np.log(figures, out=np.full(figures.shape, np.nan), where=figures > 0.0)
    return logs


def _sums(codes: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """Return sums by code (codes x figures); NaN where any value is."""
    return np.column_stack([np.bincount(codes, weights=column, minlength=count) for column in values.T])


def _mean(codes: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """Return means by code of what is finite; NaN where nothing is."""
    known = np.isfinite(values)
    sums = _sums(codes, np.where(known, values, 0.0), count)
    numbers = _sums(codes, known.astype(float), count)
    means: np.ndarray = np.divide(sums, numbers, out=np.full(sums.shape, np.nan), where=numbers > 0.0)
    return means
