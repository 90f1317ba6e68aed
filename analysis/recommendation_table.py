"""A recommendation as a table: a row a range of loads."""

import math
import shlex

import numpy as np
import pandas as pd

from analysis.axis import AXES
from analysis.confirmation import confirm_words
from analysis.decision_words import smallest
from analysis.frame import Sweep
from analysis.recommendation import BY_DEFAULT, CONFIRMED, NO_NEED, PROVISIONAL, Recommendation, recommend
from analysis.rows import ratio_columns
from analysis.schedule import Schedule
from analysis.section import Section

COLUMNS = {
    "group": "layouts that ran together on the same slices",
    "devices": "devices of the slice",
    "from": "load from which it holds: lowest level tried, or where it and the choice below are alike, with "
    "its 95 % interval",
    "to": "load up to which it holds: highest level tried, or where it and the choice above are alike, with "
    "its 95 % interval",
    "levels": "levels tried in it",
    "recommended": "arm to serve with",
    "over_baseline": "advantage over its layout's baseline at the level where it is smallest, with the "
    "simultaneous 95 % interval of the verdict; missing for a baseline",
    "over_baseline_at": "that level",
    "runner_up": "the next best arm at the level where the margin is smallest",
    "margin": "advantage over the runner-up there, with the 95 % interval of this comparison",
    "margin_at": "the level where the margin is smallest",
    "status": f"{CONFIRMED}: won again in fresh blocks at every level that these measured; {PROVISIONAL}: it "
    f"did not, or nobody measured it again; {NO_NEED}: a baseline; {BY_DEFAULT}: a baseline because nothing "
    "is decided there",
    "reason": "why, at the level with the smallest margin",
}


def recommendation_frame(found: Recommendation) -> pd.DataFrame:
    """Return one row a range, see `COLUMNS`."""
    rows = []
    for part in found.ranges:
        tight = min(part.choices, key=lambda choice: choice.margin.value if choice.margin else math.inf)
        over, at = smallest(part.choices)
        rows.append(
            {
                "group": part.group,
                "devices": part.devices,
                "from": part.low,
                "from_lo": part.begins.lo if part.begins else np.nan,
                "from_hi": part.begins.hi if part.begins else np.nan,
                "to": part.high,
                "to_lo": part.ends.lo if part.ends else np.nan,
                "to_hi": part.ends.hi if part.ends else np.nan,
                "levels": ", ".join(f"{choice.level:g}" for choice in part.choices),
                "recommended": part.candidate.label if part.candidate else "nothing can be said",
                **ratio_columns("over_baseline", over),
                "over_baseline_at": at,
                "runner_up": tight.runner_up.label if tight.runner_up else "",
                **ratio_columns("margin", tight.margin),
                "margin_at": tight.level if tight.margin else np.nan,
                "status": found.status(part) if part.candidate else "",
                "reason": tight.reason,
            }
        )
    return pd.DataFrame(rows)


def recommendation(sweep: Sweep) -> Section:
    """Return the section `recommendation`."""
    return recommendation_section(sweep, recommend(sweep))


def recommendation_section(sweep: Sweep, found: Recommendation) -> Section:
    """Return a recommendation as a table."""
    frame = recommendation_frame(found)
    notes = [*found.notes]
    axis = AXES[str(sweep.cells["axis"].iloc[0])] if len(sweep.cells) else AXES["concurrency"]
    notes += [_schedule_note(schedule, axis.at(schedule.probes[-1])) for schedule in found.schedules]
    if not frame.empty and bool(frame["status"].eq(PROVISIONAL).any()):
        notes.append(
            "provisional: whoever was picked as the best was partly lucky; "
            f"`{confirm_words(sweep.directory, found.confirmations)}` measures it again against its baseline"
        )
    return Section(
        name="recommendation",
        title="What to serve with, by load",
        frame=frame,
        columns=COLUMNS,
        shown=(
            "from",
            "to",
            "recommended",
            "over_baseline",
            "over_baseline_at",
            "runner_up",
            "margin",
            "margin_at",
            "status",
            "reason",
        ),
        notes=tuple(notes) if not frame.empty else (),
        missing="no baseline was measured with cores of its own, so nothing can be compared; "
        f"`specload status {shlex.quote(str(sweep.directory))}` says what became of the cells",
    )


def _schedule_note(schedule: Schedule, last: str) -> str:
    told = ", ".join(
        f"K={step.k} "
        + (f"up to {step.high:.3g}" if step.high is not None else f"above (tried up to {last})")
        for step in schedule.steps
    )
    return (
        f"{schedule.family} by concurrency: {told}; a proposal until it has been measured as an arm "
        "(`specload recommend` writes it for the engine)"
    )
