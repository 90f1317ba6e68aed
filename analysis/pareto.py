"""The front of user speed against throughput per device, over all arms and levels.

A point is on the front when no other is as fast for a user and as productive per device, and better in one
of the two. Which points are depends on noise: the chance of each comes from draws of all figures together,
in which a block shifts all its points alike.
"""

import numpy as np
import pandas as pd

from analysis.axis import AXES
from analysis.frame import Sweep
from analysis.points import FACTS, Figure, Points, figure, points_of
from analysis.section import Section

SPEED = "user/speed_tok_s"
OUTPUT = "throughput/output_tok_s_per_device"
TOTAL = "throughput/total_tok_s_per_device"
DRAWS = 2000
SURE = 0.95

ON, PERHAPS, OFF, UNSURE = "on the front", "perhaps", "behind it", "unknown"

COLUMNS = {
    "label": "arm",
    "layout": "layout",
    "drafter": "drafter",
    "k": "draft length",
    "level": "load level, a number on the sweep's axis",
    "devices": "devices of the slice",
    "baseline": "whether it is a baseline",
    "emulated": "whether an emulated engine made the figures",
    "blocks": "blocks and segments it was measured in",
    "user_speed": "tokens/s a user sees flow, with its 95 % interval",
    "output_per_device": "output tokens/s per device, with its 95 % interval",
    "total_per_device": "prompt and output tokens/s per device, with its 95 % interval",
    "p_front": "chance that no other point is as good in both user speed and output per device",
    "front": f"{ON}: p_front of {SURE} and more; {OFF}: {1 - SURE:.2f} and less; {PERHAPS}: between; "
    f"{UNSURE}: one block tells no noise",
}


def pareto_frame(cells: pd.DataFrame) -> pd.DataFrame:
    """Return one row an arm (baselines included) and level: its figures, and its chance to be on the front.

    Forced acceptance cannot be served: such arms are left out. Columns are those of `COLUMNS`.
    """
    points = points_of(cells[~cells["synthetic"].astype(bool)])
    table = points.facts[[*FACTS, "baseline", "emulated", "blocks"]].copy()
    speed, output = figure(points, SPEED), figure(points, OUTPUT)
    for name, found in (
        ("user_speed", speed),
        ("output_per_device", output),
        ("total_per_device", figure(points, TOTAL)),
    ):
        table[name], table[f"{name}_lo"], table[f"{name}_hi"] = found.interval()
    table = _with_chances(table, points, speed, output)
    kept = table["user_speed"].notna() & table["output_per_device"].notna()
    columns = [name for name in table.columns if name in COLUMNS or name[:-3] in COLUMNS]
    return table.loc[kept, columns].reset_index(drop=True)


def _with_chances(table: pd.DataFrame, points: Points, speed: Figure, output: Figure) -> pd.DataFrame:
    drawn = (speed.draws(DRAWS, seed=1), output.draws(DRAWS, seed=2))
    if not len(points) or drawn[0] is None or drawn[1] is None:
        table["p_front"] = np.nan
        table["front"] = UNSURE
        return table
    chance = on_front(drawn[0], drawn[1]).mean(axis=0)
    table["p_front"] = chance
    table["front"] = np.select([chance >= SURE, chance <= 1.0 - SURE], [ON, OFF], PERHAPS)
    return table


def on_front(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return which points of each row are dominated by no other (rows x points); more is better in both.

    A NaN is worse than every number.
    """
    x, y = np.nan_to_num(x, nan=-np.inf), np.nan_to_num(y, nan=-np.inf)
    order = np.lexsort((-y, -x), axis=-1)  # by x, then y, both descending
    sorted_y = np.take_along_axis(y, order, axis=-1)
    before = np.maximum.accumulate(sorted_y, axis=-1)
    best = np.concatenate([np.full((len(y), 1), -np.inf), before[:, :-1]], axis=-1)
    same = np.zeros(y.shape, dtype=bool)
    sorted_x = np.take_along_axis(x, order, axis=-1)
    same[:, 1:] = (sorted_x[:, 1:] == sorted_x[:, :-1]) & (sorted_y[:, 1:] == sorted_y[:, :-1])
    # of equal points the first one stands for all
    first = np.maximum.accumulate(np.where(same, 0, np.arange(y.shape[1])), axis=-1)
    free = np.take_along_axis(sorted_y > best, first, axis=-1)
    found = np.zeros(y.shape, dtype=bool)
    np.put_along_axis(found, order, free & np.isfinite(sorted_x + sorted_y), axis=-1)
    return found


def pareto(sweep: Sweep) -> Section:
    """Return the section `pareto`: every point, the front first."""
    frame = pareto_frame(sweep.cells)
    notes = []
    if not frame.empty:
        rank = frame["front"].map({ON: 0, PERHAPS: 1, UNSURE: 2, OFF: 3})
        frame = frame.assign(rank=rank).sort_values(["rank", "user_speed"], ascending=[True, False])
        frame = frame.drop(columns="rank").reset_index(drop=True)
        axis = AXES[str(sweep.cells["axis"].iloc[0])]
        notes.append(
            f"levels are {axis.noun} over the whole slice; user speed and output per device both count as "
            "more is better, whatever the level"
        )
    if bool(sweep.cells["synthetic"].any()):
        notes.append("arms with forced acceptance are left out: nobody can serve with them")
    if not frame.empty and bool(frame["emulated"].any()):
        notes.append("figures of emulated engines come from a model of hardware")
    return Section(
        name="pareto",
        title="User speed against throughput per device",
        frame=frame,
        columns=COLUMNS,
        shown=(
            "label",
            "level",
            "user_speed",
            "output_per_device",
            "total_per_device",
            "p_front",
            "front",
        ),
        notes=tuple(notes),
        missing="no cell with real acceptance was measured with cores of its own; `specload sweep` measures "
        "them, and `specload doctor` says what this machine lacks",
    )
