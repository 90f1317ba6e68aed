"""The speculative cycle of the chosen drafter: what it proposes, what is accepted, what a step emits."""

import math
import shlex
from collections.abc import Sequence

import pandas as pd

from analysis.arms import ArmFacts, arm_facts
from analysis.contrasts import counted
from analysis.figures.chosen import chosen_arm
from analysis.figures.cycle_panels import MOST_LEVELS, Load, draw_cycle
from analysis.figures.figure import Figure
from analysis.figures.words import percent, with_interval
from analysis.frame import Sweep
from analysis.ksweep import MISSING, axis_of
from analysis.positions import COUNTED, Interval, pooled_length, position_shares, positions
from analysis.summary import Summary
from jobs.result import MEASURED

TITLE = "What does one speculative step yield?"


def cycle(sweep: Sweep, summary: Summary) -> tuple[Figure, ...]:
    """Return the acceptance by position of the chosen drafter, and the tokens that it adds up to."""
    arm = chosen_arm(sweep, summary)
    if arm is None:
        return (_absent(MISSING),)
    fact = arm_facts(sweep.cells, sweep.plan)[arm]
    cells = _cells(sweep, arm)
    table = sweep.once(positions).frame
    rows = table[table["drafter"].eq(fact.family) & table["k"].eq(fact.k)] if len(table) else table
    if rows.empty:
        return (
            _absent(
                f"the engine of {fact.label} counts neither drafts nor accepted tokens; `specload analyse "
                f"{shlex.quote(str(sweep.directory))} k_sweep` tells its speed by the users' clock"
            ),
        )
    length = pooled_length(cells, "spec/mal")
    tokens = pooled_length(cells, "spec/tokens_per_step")
    loads = _loads(sweep, cells, fact.k)
    return (
        Figure(
            name="cycle",
            title=TITLE,
            plot=draw_cycle(rows, loads, length, tokens),
            finding=_finding(fact, rows, length, loads),
            reading=_reading(fact, rows, len(loads)),
            sections=("positions",),
        ),
    )


def _absent(why: str) -> Figure:
    return Figure(name="cycle", title=TITLE, missing=why, sections=("positions",))


def _cells(sweep: Sweep, arm: str) -> pd.DataFrame:
    """Return the arm's measured cells: those with cores of their own, where there are any."""
    cells = counted(sweep.cells)
    own = cells[cells["arm"].eq(arm) & cells["outcome"].eq(MEASURED)]
    alone = own[~own["oversubscribed"].astype(bool)]
    return own if alone.empty else alone


def _loads(sweep: Sweep, cells: pd.DataFrame, k: int) -> list[Load]:
    """Return what was counted at each load, ascending; loads without counted positions are left out."""
    axis = axis_of(sweep)
    return [
        Load(name=axis.at(float(str(level))), shares=shares, length=pooled_length(own, "spec/mal"))
        for level, own in cells.groupby("level")
        if (shares := position_shares(own, k))
    ]


def _finding(fact: ArmFacts, rows: pd.DataFrame, length: Interval, loads: Sequence[Load]) -> str:
    first, last = rows.iloc[0], rows.iloc[-1]
    forced = " (forced acceptance)" if fact.synthetic else ""
    told = (
        f"{fact.label}{forced} emits {with_interval(*length)} of {fact.k + 1} tokens a step; the first draft "
        f"token is accepted {_share(first, 'unconditional')} of the time"
    )
    if fact.k > 1:
        told += f", the last, where reached, {_share(last, 'conditional')}"
    lengths = [load.length[0] for load in loads if math.isfinite(load.length[0])]
    if len(lengths) > 1:
        told += f"; by load the length is {min(lengths):.2f} to {max(lengths):.2f}"
    return f"{told}."


def _share(row: pd.Series, name: str) -> str:
    return percent(row[name], row[f"{name}_lo"], row[f"{name}_hi"])


def _reading(fact: ArmFacts, rows: pd.DataFrame, loads: int) -> str:
    told = [
        f"Bars: share of the drafts of {fact.label} whose tokens up to a position were all accepted.",
        "Squares: share accepted of those whose earlier positions were.",
        "Dotted: what the one alpha that fits all draft lengths best would give.",
        "Below, the bars stand in a row after the verifier's own token, together the mean acceptance length",
        "(MAL), tokens a verification step; steps without a draft lower the tokens a decode step.",
    ]
    if rows["source"].iloc[0] != COUNTED:
        told.append(
            "The engine counts no positions: shares are what each draft length adds to the mean length, made "
            "non-increasing."
        )
    elif rows["unconditional_lo"].notna().any():
        told.append(
            "Intervals are 95 % over blocks, which replay the same conversations: they tell how the "
            "measurement varies, not how other texts would."
        )
    else:
        told.append("One block: there is no interval.")
    if loads > 1:
        drawn = f" ({MOST_LEVELS} of {loads})" if loads > MOST_LEVELS else ""
        told.append(f"Thin lines: single loads{drawn}; acceptance follows the text, hardly the load.")
    return " ".join(told)
