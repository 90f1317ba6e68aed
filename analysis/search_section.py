"""Section `search`: how far the search of each arm's level is, and what it would measure next."""

from typing import Any

import pandas as pd

from analysis.adaptive import Search, SearchState, search_states
from analysis.frame import Sweep
from analysis.section import Section

COLUMNS = {
    "arm": "arm whose level is looked for",
    "level": "first level at which its curve falls through the limit, interpolated, with the 95 % interval; "
    "an end beyond the levels is missing",
    "width": "upper over lower end of the interval; an end beyond the levels counts as twice beyond",
    "status": "found, outside (surely not within the levels), open, stuck (nothing narrows it) or unknown",
    "rounds": "rounds of the search that measured the arm",
    "next": "levels that the next round would measure",
    "text": "the same in words",
}


def search(sweep: Sweep) -> Section:
    """Return the searched levels of a sweep, by arm."""
    title = "Searched levels"
    settings = sweep.plan.get("search")
    if not settings:
        return Section(
            name="search",
            title=title,
            missing="the sweep measured the levels as given; the same words with load.search=crossover (or "
            "slo, with limits in design.slo) go on and place further levels",
        )
    limits = {name: limit for name, limit in (sweep.plan.get("slo") or {}).items() if limit is not None}
    wanted = Search(
        kind=settings["kind"],
        width=settings["width"],
        objective=str(sweep.plan.get("objective") or "total"),
        limits=limits,
    )
    rows = [_row(state, sweep.cells) for state in search_states(sweep.cells, wanted)]
    return Section(
        name="search",
        title=title,
        frame=pd.DataFrame(rows),
        columns=COLUMNS,
        shown=("arm", "level", "width", "status", "rounds", "next"),
        notes=(_note(wanted, settings["rounds"]),),
        missing="nothing was measured yet: the same words go on",
    )


def _note(wanted: Search, rounds: int) -> str:
    return (
        f"load.search={wanted.kind}, to a width of {wanted.width:g} (load.search_width), in at most {rounds} "
        "rounds (load.search_rounds); searched cells count in every other table"
    )


def _row(state: SearchState, cells: pd.DataFrame) -> dict[str, Any]:
    found, own = state.crossover, cells[(cells["arm"] == state.curve.arm) & (cells["kind"] == "search")]
    main = found.main
    return {
        "arm": state.curve.label,
        "level": None if main is None else main.log_log,
        "level_lo": found.low,
        "level_hi": found.high,
        "width": state.width,
        "status": state.status,
        "rounds": int(own["round"].nunique()),
        "next": ", ".join(f"{level:g}" for level in state.bundle.levels) if state.bundle else "",
        "text": state.text,
    }
