"""The decode share of each level, and what the chosen arm did there: what Amdahl's curves are drawn of."""

import math
from dataclasses import dataclass

from analysis.amdahl import decode_shares
from analysis.decomposition import level_parts
from analysis.frame import Sweep


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The decode share of one level, and what the chosen arm did there."""

    level: float
    value: float
    low: float
    high: float
    """Ends of its interval; NaN where there is none."""
    decode: tuple[float, float, float]
    """x of the arm, with its interval; NaN without an arm."""
    gain: tuple[float, float, float]
    """G of the arm: total throughput in a closed loop, else mean latency."""
    step: float
    """T(K)/t0 of the arm."""


def shares_of(sweep: Sweep, chosen: str | None) -> list[Share]:
    """Return the levels of the chosen arm's baseline, or of the first one."""
    found: dict[float, Share] = {}
    pair = None
    # Of a level with cells of both kinds those come last, and stand, whose client had cores of its own.
    for item in sorted(level_parts(sweep), key=lambda item: not item.oversubscribed):
        pair = pair if chosen is None else item.facts[chosen].pair
        closed = bool(item.group["axis"].eq("concurrency").all())
        for row in decode_shares(item):
            pair = pair or str(row["pair"])
            if row["pair"] != pair:
                continue
            nothing = (math.nan,) * 3
            gain = nothing
            if chosen is not None:
                gain = item.ratio("total", chosen) if closed else _inverse(item.ratio("growth", chosen))
            value, low, high = (float(str(row[f"decode_share{end}"])) for end in ("", "_lo", "_hi"))
            found[item.level] = Share(
                level=item.level,
                value=value,
                low=low,
                high=high,
                decode=nothing if chosen is None else item.ratio("x", chosen),
                gain=gain,
                step=math.nan if chosen is None else item.figure("step", chosen),
            )
    return [found[level] for level in sorted(found)]


def _inverse(ends: tuple[float, float, float]) -> tuple[float, float, float]:
    value, low, high = ends
    return 1.0 / value, 1.0 / high, 1.0 / low
