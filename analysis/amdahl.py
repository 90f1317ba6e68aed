"""Working back from a target: decode speed-up and acceptance length that an end-to-end speed-up needs.

    1/G = (1 - f) h + f/x          x = decode speed-up = tokens a step / step ratio

f is the baseline's measured decode share, h the growth of all other time (1 in Amdahl's law; measured with
each drafter, where speculation slows prefill and queues, too). G is of mean end-to-end latency; in a closed
loop of total throughput as well.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.arms import FLAGS, flag_notes, flags
from analysis.contrasts import t_quantile
from analysis.decomposition import LevelParts, level_parts
from analysis.formulas import alpha_of, required_decode_speed_up, required_length, speed_up_cap
from analysis.frame import Sweep
from analysis.section import Section
from jobs.result import MEASURED, TREATMENT

TARGETS = (1.2, 1.5, 2.0)
"""End-to-end speed-ups of the section; `specload target` takes any."""
MISSING = "no baseline was measured; run `specload sweep`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a target needs at one decode share and step cost."""

    speed_up: float
    """G asked for."""
    share: float
    """f."""
    growth: float
    """h."""
    cap: float
    """G of an infinitely fast decode."""
    decode: float | None
    """x that is needed; None where no x is enough."""
    length: float | None = None
    """Tokens a step that are needed at the step cost; None without one, or where no x is enough."""
    alpha: float | None = None
    """Conditional acceptance that gives this length at the K; None where none does."""


def need(g: float, f: float, *, h: float = 1.0, step: float | None = None, k: int | None = None) -> Need:
    """Return what an end-to-end speed-up g needs.

    Args:
        g: target.
        f: decode share of the baseline's latency.
        h: growth of all time but decode.
        step: T(K)/t0; None leaves the length out.
        k: draft length, for the acceptance.

    Raises:
        ValueError: f outside 0 to 1, or g not positive.
    """
    x = required_decode_speed_up(g, f, h)
    length = None if x is None or step is None else max(1.0, required_length(x, step))
    reachable = length is not None and k is not None and k >= 1 and length <= k + 1
    return Need(
        speed_up=g,
        share=f,
        growth=h,
        cap=speed_up_cap(f, h),
        decode=x,
        length=length,
        alpha=alpha_of(length, k) if reachable and length is not None and k is not None else None,
    )


def amdahl(sweep: Sweep) -> Section:
    """Return one row a baseline and level: its decode share, the cap, and what some targets need."""
    rows = [
        {
            **share,
            "cap": speed_up_cap(float(str(share["decode_share"]))),
            **{
                f"x_{target:g}": math.nan if x is None else x
                for target in TARGETS
                for x in [required_decode_speed_up(target, float(str(share["decode_share"])))]
            },
        }
        for item in level_parts(sweep)
        for share in decode_shares(item)
    ]
    frame = pd.DataFrame(rows)
    return Section(
        name="amdahl",
        title="Decode share, and the decode speed-up that an end-to-end target needs",
        frame=frame,
        columns=COLUMNS if rows else {},
        shown=("baseline", "level", "decode_share", "cap", *(f"x_{target:g}" for target in TARGETS))
        if rows
        else (),
        notes=(PLAIN, *flag_notes(frame)) if rows else (),
        missing="" if rows else MISSING,
    )


def decode_shares(item: LevelParts) -> Iterator[dict[str, object]]:
    """Yield the measured decode share of each baseline of a level, with an interval over its segments."""
    base = item.group[(item.group["role"] != TREATMENT) & (item.group["outcome"] == MEASURED)]
    odds = item.cells.loc[base.index, "share"]
    logit = np.log(odds / (1.0 - odds))
    for arm in sorted(set(base["arm"])):
        places = base.index[base["arm"] == arm]
        by_segment = logit.loc[places].groupby([base.loc[places, "block"], base.loc[places, "segment"]])
        values = by_segment.mean().dropna().to_numpy(dtype=float)
        if not values.size:
            continue
        half = math.nan
        if values.size > 1:
            half = t_quantile(values.size - 1) * float(values.std(ddof=1)) / math.sqrt(values.size)
        middle = float(values.mean())
        fact = item.facts[arm]
        ends = (middle, middle - half, middle + half)
        yield {
            "baseline": fact.label,
            "pair": fact.pair,
            "layout": fact.layout,
            "level": item.level,
            "segments": values.size,
            **{
                f"decode_share{end}": 1.0 / (1.0 + math.exp(-value))
                for end, value in zip(("", "_lo", "_hi"), ends, strict=True)
            },
            **flags([fact], oversubscribed=item.oversubscribed),
        }


PLAIN = (
    "Amdahl's law, with all other time as it is; a drafter changes it, too (h): `specload target "
    "results/SWEEP --speedup 1.5` reckons with what each drafter did and with what its steps cost"
)
COLUMNS = {
    "baseline": "label of the baseline",
    "pair": "what it shares with its drafters",
    "layout": "layout label",
    "level": "load level on the sweep's axis",
    "segments": "segments behind the share",
    "decode_share": "f: share of decode in end-to-end latency; 95 % over segments (t, on the log odds)",
    "cap": "end-to-end speed-up of an infinitely fast decode, 1 / (1 - f)",
    **{
        f"x_{target:g}": f"decode speed-up needed for {target:g} end to end; missing: none"
        for target in TARGETS
    },
    **FLAGS,
}
