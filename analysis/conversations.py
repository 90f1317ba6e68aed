"""What users gain, by conversation: the same turn in the arm and in its block's baselines.

Pairing by turn takes the differences between conversations out of a ratio. It does not make more of the
blocks: turns of one cell share its engine, its start and its stretch of time. So the variance of a mean log
ratio has two parts,

    V = V(blocks) + V(conversations)

V(blocks) is that of the level's fit of the cells' means (`analysis.fit`: residuals pooled over the arms, its
degrees of freedom). V(conversations) is what other conversations of the same kind would change: the sum over
conversations, clustered over their turns and blocks, less what is clustered within single blocks, which the
first part has already; the difference is short of one part in the number of blocks, and is made up for
(A. C. Cameron, J. B. Gelbach and D. L. Miller, 2011, for the two ways of clustering). Degrees of freedom are
Satterthwaite's. An interval is never narrower than that of the blocks alone.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from analysis.contrasts import counted
from analysis.errors import ResultsError
from analysis.fit import CONFIDENCE, Contrast, LevelFit, fit_figures, level_cells
from analysis.formulas import ratio_of
from analysis.frame import THRESHOLD, Sweep
from analysis.levels import conditions
from analysis.multiplicity import critical_value
from analysis.section import Section
from analysis.turns import FIGURES, REQUESTS, TurnPairs, turn_pairs
from analysis.verdict import NO_VERDICT, decide
from jobs.result import MEASURED, TREATMENT

WORDS = {"user_speed": "decode speed of a request", "ttft": "TTFT", "e2el": "E2EL"}
_INTERVAL = "ratio to the same turns of the baselines, geometric mean (simultaneous 95 % interval over {})"
COLUMNS: dict[str, str] = {
    "arm": "name of the arm",
    "digest": "digest of the arm",
    "layout": "layout of the arm",
    "k": "draft length, tokens",
    "level": "load level",
    "blocks": "segments of blocks with pairs",
    "conversations": "different conversations among the pairs",
    "turns": "pairs of turns",
    "share": "paired turns over all that the arm answered in its steady windows",
    **{
        key: value
        for name, words in WORDS.items()
        for key, value in {
            name: f"{words}: {_INTERVAL.format('blocks and conversations')}",
            f"{name}_verdict": f"verdict on {words} by the rule of the sweep (threshold or A/A spread)",
        }.items()
    },
    "oversubscribed": "client and engine shared a core: no verdict",
}
_IN_LABEL = ("digest", "layout", "k")
PAIRED = (
    "turns are paired where the arm and every baseline of its segment answered them in their steady windows; "
    "each block counts alike, and each turn within it"
)
WIDTH = (
    "an interval has the noise of blocks and the choice of conversations in it, and is never narrower than "
    "the blocks allow: more conversations do not make up for few blocks"
)
MISSING = "no turn was answered in the windows of an arm and of its baselines; `specload sweep` measures them"


def conversations(sweep: Sweep) -> Section:
    """Return one row an arm and level."""
    frame, missing = pd.DataFrame(columns=_names()), MISSING
    cells = paired_cells(sweep.cells)
    try:
        if not cells.empty:
            requests = sweep.requests(columns=REQUESTS, cells=cells["cell"])
            frame = conversations_frame(cells, requests, threshold=sweep.threshold)
    except ResultsError as error:
        missing = str(error)
    return Section(
        name="conversations",
        title="What users gain, by conversation",
        frame=frame,
        columns=COLUMNS,
        shown=tuple(
            name
            for name in COLUMNS
            if name not in _IN_LABEL and (name != "oversubscribed" or frame["oversubscribed"].any())
        ),
        notes=(PAIRED, WIDTH) if len(frame) else (),
        missing=missing,
    )


def paired_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the measured cells that count, counterfactual arms left out."""
    own = counted(cells)
    return own[(own["outcome"] == MEASURED) & (own["counterfactual"] == "")].reset_index(drop=True)


def conversations_frame(
    cells: pd.DataFrame, requests: pd.DataFrame, *, threshold: float = THRESHOLD
) -> pd.DataFrame:
    """Return the rows of the section.

    Args:
        cells: `paired_cells` of a sweep.
        requests: of these cells, with the columns of `analysis.turns.REQUESTS`.
        threshold: practical threshold of the verdicts, as a share.
    """
    if cells.empty:
        return pd.DataFrame(columns=_names())
    pairs = turn_pairs(cells, requests)
    spreads = _Clusters(cells, pairs)
    rows = [
        row
        for level, crowded, group in conditions(cells)
        for row in _level(level, group, pairs, spreads, crowded=crowded, threshold=threshold)
    ]
    frame = pd.DataFrame(rows, columns=_names())
    return frame.sort_values(["layout", "k", "arm", "level"], kind="stable").reset_index(drop=True)


class _Clusters:
    """V(conversations) of every arm and level, all at once."""

    def __init__(self, cells: pd.DataFrame, pairs: TurnPairs) -> None:
        self.groups = cells.groupby(["arm", "level"], sort=False).ngroup().to_numpy()
        count = int(self.groups.max(initial=-1)) + 1
        group = self.groups[pairs.cell]
        width = int(pairs.conversation.max(initial=0)) + 1
        self.pairs = np.bincount(group, minlength=count)
        met = np.unique(group * width + pairs.conversation)
        self.conversations = np.bincount(met // width, minlength=count)
        both = np.unique(np.column_stack([group, pairs.cell]), axis=0)
        self.blocks = np.bincount(both[:, 0], minlength=count) if len(both) else np.zeros(count, dtype=int)
        self.variances = np.column_stack(
            [
                _conversation_variance(pairs.logs[:, column], pairs.cell, group, pairs.conversation, count)
                for column in range(len(FIGURES))
            ]
        )


def _conversation_variance(
    logs: np.ndarray, cell: np.ndarray, group: np.ndarray, conversation: np.ndarray, count: int
) -> np.ndarray:
    """Return what the choice of conversations adds to the variance of each group's mean log ratio.

    A group is an arm at a level; its mean has every cell's mean with the same weight.
    """
    known = np.isfinite(logs)
    logs, cell, group, conversation = logs[known], cell[known], group[known], conversation[known]
    if not len(logs):
        return np.full(count, np.nan)
    size = np.bincount(cell)
    centred = logs - (np.bincount(cell, weights=logs) / np.maximum(1, size))[cell]
    cells = np.bincount(np.unique(np.column_stack([group, cell]), axis=0)[:, 0], minlength=count)
    scores = centred / size[cell] / cells[group]
    width = int(conversation.max()) + 1
    whole, within = np.zeros(count), np.zeros(count)
    clusters, place = np.unique(group * width + conversation, return_inverse=True)
    np.add.at(whole, clusters // width, np.bincount(place, weights=scores) ** 2)
    number = np.bincount(clusters // width, minlength=count)
    place = np.unique(cell * width + conversation, return_inverse=True)[1]
    groups = np.zeros(int(place.max()) + 1, dtype=int)
    groups[place] = group
    np.add.at(within, groups, np.bincount(place, weights=scores) ** 2)
    enough = (number > 1) & (cells > 1)
    more = number / np.maximum(1, number - 1) * cells / np.maximum(1, cells - 1)
    return np.where(enough, more * np.maximum(0.0, whole - within), 0.0)


def _level(
    level: float,
    group: pd.DataFrame,
    pairs: TurnPairs,
    spreads: _Clusters,
    *,
    crowded: bool,
    threshold: float,
) -> Iterator[dict[str, object]]:
    places = group.index.to_numpy()
    means = pairs.means[places]
    fits = dict(zip(FIGURES, fit_figures(level_cells(group), means), strict=True))
    gaps = {name: _spread(group, means[:, column]) for column, name in enumerate(FIGURES)}
    treated = group[group["role"] == TREATMENT]
    for arm, own in treated.groupby("arm", sort=True):
        number = int(spreads.groups[own.index[0]])
        if not spreads.pairs[number]:
            continue
        first = own.iloc[0]
        row: dict[str, object] = {
            "arm": first["label"],
            "digest": arm,
            "layout": first["layout"],
            "k": int(first["k"]),
            "level": level,
            "blocks": int(spreads.blocks[number]),
            "conversations": int(spreads.conversations[number]),
            "turns": int(spreads.pairs[number]),
            "share": float(spreads.pairs[number] / pairs.possible[own.index].sum()),
            "oversubscribed": crowded,
        }
        for column, name in enumerate(FIGURES):
            contrast = fits[name].contrasts.get(str(arm))
            if contrast is None:
                continue
            wide = widened(
                contrast,
                fits[name].df,
                float(spreads.variances[number, column]),
                int(spreads.conversations[number]),
            )
            row |= _figures(name, wide, fits[name], gaps[name], crowded=crowded, threshold=threshold)
        yield row


def widened(contrast: Contrast, df: int, variance: float, conversations: int) -> Contrast:
    """Return a contrast of the blocks with the variance of the choice of conversations added.

    Args:
        contrast: of the fit of the cells' means.
        df: degrees of freedom of the fit.
        variance: what the choice of conversations adds.
        conversations: how many there are.
    """
    if contrast.error is None or contrast.critical is None or not variance > 0.0 or conversations < 2:
        return contrast
    blocks = contrast.error**2
    whole = blocks + variance
    free = whole**2 / (blocks**2 / df + variance**2 / (conversations - 1))
    critical = critical_value(contrast.family, _coarse(free), round(contrast.correlation, 6), CONFIDENCE)
    error = math.sqrt(whole)
    # the added part may bring degrees of freedom of its own, but never a narrower interval
    return replace(contrast, error=error, critical=max(critical, contrast.error * contrast.critical / error))


def _coarse(df: float) -> int:
    """Round degrees of freedom down to two digits: a critical value is worked out once for all near ones."""
    whole = max(1, math.floor(df))
    unit: int = 10 ** max(0, len(str(whole)) - 2)
    return whole // unit * unit


def _figures(
    name: str, contrast: Contrast, fit: LevelFit, spread: float | None, *, crowded: bool, threshold: float
) -> Mapping[str, object]:
    half = contrast.half_width
    ends = (math.nan, math.nan) if half is None else (contrast.estimate - half, contrast.estimate + half)
    verdict = decide(contrast, fit, practical=threshold, spread=spread, higher_is_better=name == "user_speed")
    return {
        name: math.exp(contrast.estimate),
        f"{name}_lo": math.exp(ends[0]),
        f"{name}_hi": ratio_of(ends[1]),
        f"{name}_verdict": NO_VERDICT if crowded else verdict.word,
    }


def _spread(group: pd.DataFrame, means: np.ndarray) -> float | None:
    """Return the A/A spread: root mean square of closing less opening baseline, turn by turn."""
    own = group[group["role"] != TREATMENT].assign(mean=means[(group["role"] != TREATMENT).to_numpy()])
    table = own.pivot_table(index=["pair", "block", "segment"], columns="role", values="mean")
    if table.shape[1] < 2:
        return None
    gaps = (table.iloc[:, 0] - table.iloc[:, 1]).dropna().to_numpy(dtype=float)
    return float(np.sqrt(np.mean(gaps**2))) if gaps.size else None


def _names() -> list[str]:
    ends = {name: [name, f"{name}_lo", f"{name}_hi"] for name in FIGURES}
    return [end for name in COLUMNS for end in ends.get(name, [name])]
