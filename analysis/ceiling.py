"""The ceiling ladder: how much speculation could give at each level, and what a real drafter gets of it.

    baseline -> loaded, never asked -> real drafter -> synthetic acceptance -> perfect acceptance

A rung that was not run is missing, with the words that would run it. Perfect acceptance is computed where it
was not run: K + 1 tokens a step at the step cost measured at that K, all other time as measured.
"""

import math
from collections.abc import Iterator, Sequence

import pandas as pd

from analysis.arms import (
    BASELINE,
    FLAGS,
    GEOMETRIC,
    LOADED,
    MATCHED,
    MEASURED_POSITIONS,
    PERFECT,
    REAL,
    ArmFacts,
    flag_notes,
    flags,
)
from analysis.capture import NONE, Interval, capture, computed_capture
from analysis.decomposition import LevelParts, level_parts
from analysis.formulas import end_to_end_speed_up
from analysis.frame import Sweep
from analysis.ksweep import POINTWISE
from analysis.section import Section

RUNGS = (LOADED, REAL, MEASURED_POSITIONS, GEOMETRIC, PERFECT)
MEASURED, COMPUTED, NOT_RUN = "measured", "computed", "not run"
MISSING = "no arm was measured beside a baseline; run `specload sweep -m drafter=... drafter.k=3`"


def ceiling(sweep: Sweep) -> Section:
    """Return one row a rung of each layout and level, the baseline first, and the rungs that are missing."""
    rows: list[dict[str, object]] = []
    levels = level_parts(sweep)
    for item in levels:
        rows += _rows(item)
    rows += _not_run(levels, sweep)
    frame = pd.DataFrame(rows)
    if rows:
        order = {kind: place for place, kind in enumerate(_ORDER)}
        frame = frame.assign(place=frame["rung"].map(order)).sort_values(
            ["layout", "level", "oversubscribed", "place", "k"], kind="stable"
        )
        frame = frame.drop(columns="place").reset_index(drop=True)
    return Section(
        name="ceiling",
        title="Ceiling ladder: what there is to win, and what was captured",
        frame=frame,
        columns=COLUMNS if rows else {},
        shown=SHOWN if rows else (),
        notes=(POINTWISE, CAPTURED, *flag_notes(frame)) if rows else (),
        missing="" if rows else MISSING,
    )


def _rows(item: LevelParts) -> Iterator[dict[str, object]]:
    here = [fact for arm, fact in item.facts.items() if math.isfinite(item.figure("x", arm))]
    yield from _baselines(item, here)
    for fact in here:
        if fact.kind == MATCHED:
            continue
        digest = fact.arm
        row: dict[str, object] = {
            **_about(item, digest),
            "rung": fact.kind,
            "source": MEASURED,
            **_ends("total", item.ratio("total", digest)),
            **_ends("user_speed", item.ratio("x", digest)),
            "step_ratio": _step(item, digest),
            "how": "",
        }
        yield row | (_captures(item, digest, here) if fact.kind == REAL else _no_captures())
        if fact.kind == REAL and not _rivals(here, fact, PERFECT):
            total, speed = computed_ceiling(item, digest)
            yield {
                **row,
                "rung": PERFECT,
                "source": COMPUTED,
                **_ends("total", (total, math.nan, math.nan)),
                **_ends("user_speed", (speed, math.nan, math.nan)),
                **_no_captures(),
                "how": _override("drafter=free", [fact.k], "drafter.acceptance.alpha=1"),
            }


def _baselines(item: LevelParts, here: Sequence[ArmFacts]) -> Iterator[dict[str, object]]:
    """Yield the ladder's foot: the baselines of these arms, at a ratio of 1 by definition."""
    pairs = {fact.pair for fact in here}
    for fact in item.facts.values():
        if fact.kind != BASELINE or fact.pair not in pairs:
            continue
        one = dict.fromkeys(("total", "user_speed", "step_ratio"), 1.0)
        yield {**_about(item, fact.arm), "rung": BASELINE, "source": MEASURED, **one, "how": ""}


def computed_ceiling(item: LevelParts, arm: str) -> tuple[float, float]:
    """Return the ratios of total throughput and user speed that an arm would have if all were accepted.

    K + 1 tokens a step at its own step cost; all time but decode grows as the arm's did. NaN where the step
    times are not known.
    """
    speed = (item.facts[arm].k + 1) / _step(item, arm)
    if not math.isfinite(speed):
        return math.nan, math.nan
    share, growth = item.share(arm), item.growth(arm)
    if not (math.isfinite(share) and math.isfinite(growth)) or "total:whole" not in item.fits:
        return math.nan, speed
    return end_to_end_speed_up(share, speed, growth), speed


def _captures(item: LevelParts, arm: str, here: Sequence[ArmFacts]) -> dict[str, object]:
    """Return what an arm captures: of perfect acceptance, and of a free drafter that is accepted as it is."""
    found: dict[str, object] = {}
    perfect = _rivals(here, item.facts[arm], PERFECT)
    free = [other for other in _rivals(here, item.facts[arm], MEASURED_POSITIONS) if item.facts[other].free]
    computed = computed_ceiling(item, arm)
    for name, figure, made in (("total", "total", computed[0]), ("speed", "x", computed[1])):
        fit = item.fits.get(figure)
        own = NONE
        if fit is not None and perfect:
            own = capture(fit, arm, perfect[0])
        elif fit is not None:
            own = computed_capture(fit.ratio(arm)[0], made)
        found |= _ends(f"capture_{name}", own)
        found |= _ends(
            f"capture_free_{name}", capture(fit, arm, free[0]) if fit is not None and free else NONE
        )
    return found


def _no_captures() -> dict[str, object]:
    return {
        key: value
        for name in ("capture_total", "capture_free_total", "capture_speed", "capture_free_speed")
        for key, value in _ends(name, NONE).items()
    }


def _rivals(here: Sequence[ArmFacts], own: ArmFacts, kind: str) -> list[str]:
    """Return the arms of a kind with the same pair and K; those whose drafts cost nothing first."""
    same = [fact for fact in here if (fact.kind, fact.pair, fact.k) == (kind, own.pair, own.k)]
    return [fact.arm for fact in sorted(same, key=lambda fact: not fact.free)]


def _step(item: LevelParts, arm: str) -> float:
    """Return T(K)/t0 of an arm by the engine's counters."""
    return item.figure("step", arm)


def _about(item: LevelParts, arm: str) -> dict[str, object]:
    fact = item.facts[arm]
    return {
        "layout": fact.layout,
        "level": item.level,
        "arm": fact.label,
        "digest": arm,
        "k": fact.k,
        **flags([fact], oversubscribed=item.oversubscribed),
    }


def _ends(name: str, values: Interval) -> dict[str, object]:
    return dict(zip((name, f"{name}_lo", f"{name}_hi"), values, strict=True))


def _not_run(levels: Sequence[LevelParts], sweep: Sweep) -> Iterator[dict[str, object]]:
    """Yield a row for each rung that no level of a layout has, with the words that would run it."""
    if not levels:
        return
    facts = levels[0].facts.values()
    for layout in sorted({fact.layout for fact in facts}):
        own = [fact for fact in facts if fact.layout == layout]
        real = [fact for fact in own if fact.kind == REAL]
        ks = sorted({fact.k for fact in own if fact.k}) or [3]
        for rung in RUNGS:
            if rung in {fact.kind for fact in own} or (rung == PERFECT and real):
                continue
            yield {
                "layout": layout,
                "level": math.nan,
                "rung": rung,
                "arm": "",
                "digest": "",
                "k": 0,
                "source": NOT_RUN,
                "how": _how(rung, real, ks, sweep),
                **flags([], oversubscribed=False),
            }


def _how(rung: str, real: Sequence[ArmFacts], ks: Sequence[int], sweep: Sweep) -> str:
    drafter = f"drafter={real[0].drafter}" if real else "drafter=eagle3"
    if rung == LOADED:
        return _override(drafter, ks[:1], "drafter.loaded_only=true")
    if rung == REAL:
        return _override(drafter, ks, "")
    if rung == PERFECT:
        return _override("drafter=free", ks, "drafter.acceptance.alpha=1")
    own = sweep.cells[sweep.cells["arm"].isin([fact.arm for fact in real]) & (sweep.cells["k"] == max(ks))]
    if rung == MEASURED_POSITIONS:
        one = len({fact.family for fact in real}) == 1
        cell = own["cell"].iloc[0] if len(own) else "CELL"
        source = sweep.directory.name if one else f"{sweep.directory.name}/cells/{cell}"
        return _override("drafter=free", ks, f"drafter.acceptance.from={source}")
    mal = float(own["spec/mal"].mean()) if len(own) else math.nan
    if math.isfinite(mal):
        return _override("drafter=free", [max(ks)], f"drafter.acceptance.length={mal:.2f}")
    return _override("drafter=free", ks, "drafter.acceptance.alpha=0.7")


def _override(drafter: str, ks: Sequence[int], more: str) -> str:
    return f"{drafter} drafter.k={','.join(str(k) for k in ks)} {more}".strip()


CAPTURED = (
    "capture is ln(ratio) over ln(ceiling): `capture_*` of perfect acceptance (computed where it was not "
    "run, and then without an interval), `capture_free_*` of a free drafter that is accepted as often. "
    "Missing where the ceiling itself does not pay"
)
_ORDER = (BASELINE, *RUNGS)
COLUMNS = {
    "layout": "layout label",
    "level": "load level on the sweep's axis; missing: at no level",
    "rung": "step of the ladder, from the baseline (ratio 1) up",
    "arm": "label of the arm",
    "digest": "digest of the arm",
    "k": "draft length K, tokens",
    "source": "`measured`; `computed`: from the arm's own step cost, not run; `not run`",
    "total": "total throughput over the baseline's",
    "user_speed": "user speed over the baseline's",
    "step_ratio": "step time over the baseline's",
    "capture_total": "share of the gain in total throughput that perfect acceptance gives",
    "capture_speed": "share of the gain in user speed that perfect acceptance gives",
    "capture_free_total": "share of the gain in total throughput of a free drafter that is accepted as often",
    "capture_free_speed": "the same of user speed",
    "how": "words that would run it, added to the sweep's own",
    **FLAGS,
}
SHOWN = (
    "layout", "level", "rung", "arm", "source", "total", "user_speed", "step_ratio", "capture_total",
    "capture_speed", "capture_free_speed", "how",
)  # fmt: skip
