"""What configurations are worth to a fleet, as a table."""

import numpy as np
import pandas as pd

from analysis.fleet import HOUR, Amount, Fleet
from analysis.objectives import OBJECTIVES
from analysis.recommendation import Recommendation
from analysis.section import Section
from analysis.traffic import DAY, Load

COLUMNS = {
    "configuration": "what would serve all of the time",
    "ahead": "share of the time with requests in which it is ahead of today's, with its 95 % interval",
    "inside": "share of the time with requests at loads between the levels that it was tried at",
    "gained": "tokens (goodput: requests) a day more than today's at the same load, with its 95 % interval",
    "gained_share": "the same over what today's makes a day, with its 95 % interval",
    "device_hours": "device-hours a day that today's work would take less, with its 95 % interval",
    "money": "their price a day, with its 95 % interval",
    "proposal": "whether it is a schedule, taken to be as good as the arms that it is made of",
}


def fleet_frame(fleet: Fleet, *, price: float | None = None) -> pd.DataFrame:
    """Return one row a configuration, see `COLUMNS`; `price` is that of a device-hour."""
    rows = []
    for row in fleet.rows:
        figures = {
            "ahead": row.ahead,
            "gained": row.gained,
            "gained_share": row.share,
            "device_hours": row.hours,
            "money": _times(row.hours, np.nan if price is None else price),
        }
        told: dict[str, object] = {"configuration": row.label, "inside": row.inside}
        for name, amount in figures.items():
            told |= {name: amount.value, f"{name}_lo": amount.lo, f"{name}_hi": amount.hi}
        rows.append({**told, "proposal": row.proposal})
    return pd.DataFrame(rows)


def _times(amount: Amount, factor: float) -> Amount:
    return Amount(value=amount.value * factor, lo=amount.lo * factor, hi=amount.hi * factor)


def range_shares(found: Recommendation, load: Load) -> tuple[tuple[str, float], ...]:
    """Return the share of the time with requests in each range of loads that has a recommendation."""
    return tuple(
        (
            part.candidate.label,
            load.share(part.low, np.nextafter(part.high, np.inf) if part.ends is None else part.high),
        )
        for part in found.ranges
        if part.candidate is not None
    )


def fleet_section(
    found: Recommendation, fleet: Fleet, load: Load, *, price: float | None, currency: str
) -> Section:
    """Return what configurations are worth to a fleet."""
    frame = fleet_frame(fleet, price=price)
    what = "requests" if found.objective == "goodput" else f"tokens of {OBJECTIVES[found.objective].title}"
    low, high = fleet.levels
    idle = 1.0 - float(load.seconds[load.running > 0.0].sum() / load.seconds.sum())
    beside = max(0.0, 1.0 - load.share(low, np.nextafter(high, np.inf)))
    made = f"{fleet.made:,.0f} {what} a day at loads from {low:g} to {high:g}"
    servers = f"{load.servers:.1f} servers of {fleet.devices} devices"
    ranges = ", ".join(f"{label} {share:.1%}" for label, share in range_shares(found, load))
    notes = [
        f"today's is {fleet.today}, which makes {made}",
        f"traffic: {load.span / DAY:.2f} days, {servers} on average, {idle:.1%} of the time without requests",
        f"a sample held at most {load.hold:g} s; {load.gaps / HOUR:.2f} server-hours of gaps are as the rest",
        f"{beside:.1%} of the time with requests no level was tried at: nothing is counted as gained there",
        f"time in the recommended ranges: {ranges}",
        "gains are at the same number of running requests: a faster server with the same demand runs fewer",
    ]
    if price is None:
        notes.append("no price is known, so money is missing: --price PRICE, or design.gpu_hour_price")
    shown = ["configuration", "ahead", "gained", "gained_share", "device_hours"]
    return Section(
        name="fleet",
        title=f"Against {fleet.today}, weighted by the fleet's traffic"
        + ("" if price is None else f" (money in {currency})"),
        frame=frame,
        columns=COLUMNS,
        shown=(*shown, *(("money",) if price is not None else ()), "proposal"),
        notes=tuple(notes),
        missing=f"there is nothing beside {fleet.today} that could serve",
    )
