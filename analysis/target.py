"""What an end-to-end target needs of each drafter and draft length, and whether it is reached."""

import math
from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from analysis.amdahl import Need, decode_shares, need
from analysis.arms import FLAGS, flag_notes, flags
from analysis.curves import position_rates
from analysis.decomposition import LevelParts, level_parts
from analysis.frame import Sweep
from analysis.ksweep import DrafterLevel, axis_of, drafter_levels
from analysis.section import Section

REACHED, PERHAPS, PREDICTED = "reached", "within noise", "predicted"
NEEDS, ABOVE_ALL, CAPPED = "needs more acceptance", "out of reach: above K + 1", "out of reach: decode share"
UNKNOWN, POSSIBLE = "needs this decode speed-up", "needs this acceptance"
ON_LINE, MEASURED = "line over K", "measured"
MISSING = "no baseline was measured; run `specload sweep`"


def target(sweep: Sweep, speed_up: float) -> Section:
    """Return one row a drafter, level and draft length: what an end-to-end speed-up needs of it.

    Raises:
        ValueError: a speed-up that is not positive.
    """
    levels = {(item.level, item.oversubscribed): item for item in level_parts(sweep)}
    drafters: dict[tuple[float, bool], list[DrafterLevel]] = {}
    for item in drafter_levels(sweep):
        drafters.setdefault((item.level, item.oversubscribed), []).append(item)
    rows = [
        row for key, parts in levels.items() for row in _level_rows(parts, drafters.get(key, []), speed_up)
    ]
    frame = pd.DataFrame(rows)
    if rows:
        frame = frame.sort_values(["layout", "drafter", "level", "k"], kind="stable").reset_index(drop=True)
    return Section(
        name="target",
        title=f"What {speed_up:g} times faster end to end needs",
        frame=frame,
        columns=COLUMNS if rows else {},
        shown=SHOWN if rows else (),
        notes=(*_answers(sweep, frame, speed_up), MEANS, *flag_notes(frame)) if rows else (),
        missing="" if rows else MISSING,
    )


def bare_target(speed_up: float, shares: Sequence[float], steps: Mapping[int, float]) -> Section:
    """Return the same without a sweep: one row a decode share and draft length.

    Args:
        speed_up: target G.
        shares: decode shares f.
        steps: K -> T(K)/t0; empty where only the decode speed-up is asked for.

    Raises:
        ValueError: a share outside 0 to 1, or a speed-up that is not positive.
    """
    rows = []
    for share in shares:
        for k, step in steps.items() or ((None, None),):
            found = need(speed_up, share, step=step, k=k)
            answer = CAPPED if found.decode is None else UNKNOWN
            if found.length is not None and k is not None:
                answer = POSSIBLE if found.length <= k + 1 else ABOVE_ALL
            own = {**_needed(found), "k": k, "step_ratio": step, "answer": answer}
            rows.append({**own, "cap": found.cap})
    shown = ("decode_share", "cap", "x", "k", "step_ratio", "length_needed", "alpha_needed", "answer")
    return Section(
        name="target",
        title=f"What {speed_up:g} times faster end to end needs",
        frame=pd.DataFrame(rows),
        columns=COLUMNS,
        shown=shown if steps else ("decode_share", "cap", "x", "answer"),
        notes=("all time but decode stays as it is (h = 1); with a sweep it is measured for each drafter",),
    )


def _level_rows(
    parts: LevelParts, drafters: Sequence[DrafterLevel], speed_up: float
) -> Iterator[dict[str, object]]:
    for share in decode_shares(parts):
        f = float(str(share["decode_share"]))
        own = [item for item in drafters if next(iter(item.facts.values())).pair == share["pair"]]
        for item in own:
            yield from _drafter_rows(parts, item, speed_up, f)
        if not own:
            found = need(speed_up, f)
            yield {
                **_about(share["layout"], parts.level, ""),
                **_needed(found),
                "x_plain": found.decode,
                "answer": CAPPED if found.decode is None else UNKNOWN,
                **{name: share[name] for name in FLAGS},
            }


def _drafter_rows(
    parts: LevelParts, item: DrafterLevel, speed_up: float, f: float
) -> Iterator[dict[str, object]]:
    growths = [value for arm in item.arms.values() if math.isfinite(value := parts.growth(arm))]
    common = math.exp(sum(math.log(value) for value in growths) / len(growths)) if growths else 1.0
    line, rates = item.steps(), position_rates(_lengths(item))
    for k in range(1, max(item.arms) + 1):
        arm = item.arms.get(k)
        growth = common if arm is None or not math.isfinite(parts.growth(arm)) else parts.growth(arm)
        measured = arm is not None and item.fits["step"].has(arm)
        if measured and arm is not None:
            step, length = item.fits["step"].ratio(arm)[0], item.fits["tokens"].ratio(arm)[0]
            speed = item.fits["user_speed"].ratio(arm)
        elif line is not None and len(item.step_arms) > 1 and len(rates) >= k:
            step, length = 1.0 + line.fixed + line.value * k, 1.0 + math.fsum(rates[:k])
            speed = (length / step, math.nan, math.nan)
        else:
            continue
        found = need(speed_up, f, h=growth, step=step, k=k)
        yield {
            **_about(item.layout, item.level, item.family),
            **_needed(found),
            "x_plain": need(speed_up, f).decode,
            "k": k,
            "step_ratio": step,
            "source": MEASURED if measured else ON_LINE,
            "length": length,
            "x_has": speed[0],
            "x_has_lo": speed[1],
            "x_has_hi": speed[2],
            "answer": _answer(found, k, speed, measured=measured),
            **flags(item.facts.values(), oversubscribed=item.oversubscribed),
        }


def _lengths(item: DrafterLevel) -> dict[int, float]:
    """Return K -> tokens a decode step, kept within 1 to K + 1."""
    fit = item.fits["tokens"]
    return {k: min(max(1.0, fit.ratio(arm)[0]), k + 1.0) for k, arm in item.arms.items() if fit.has(arm)}


def _answer(found: Need, k: int, speed: tuple[float, float, float], *, measured: bool) -> str:
    if found.decode is None or found.length is None:
        return CAPPED
    value, low, high = speed
    if value < found.decode and found.length > k + 1:
        return ABOVE_ALL
    if math.isfinite(low) and low < found.decode <= high:
        return PERHAPS
    if value >= found.decode:
        return REACHED if measured else PREDICTED
    return NEEDS


def _about(layout: object, level: float, drafter: str) -> dict[str, object]:
    return {"drafter": drafter, "layout": layout, "level": level}


def _needed(found: Need) -> dict[str, object]:
    return {
        "decode_share": found.share,
        "h": found.growth,
        "x": found.decode,
        "length_needed": found.length,
        "alpha_needed": found.alpha,
    }


def _answers(sweep: Sweep, frame: pd.DataFrame, speed_up: float) -> Iterator[str]:
    """Say for each drafter and level in one line whether, and at which K."""
    drafted = frame[frame["drafter"] != ""]
    for (family, level), own in drafted.groupby(["drafter", "level"], sort=False):
        where = f"{family} at {axis_of(sweep).at(float(str(level)))}: {speed_up:g}"
        told = {
            word: ", ".join(f"K={k}" for k in own.loc[own["answer"] == word, "k"].astype(int))
            for word in (REACHED, PERHAPS, PREDICTED)
        }
        if any(told.values()):
            parts = [f"{word} at {ks}" for word, ks in told.items() if ks]
            yield f"{where} is {'; '.join(parts)}"
            continue
        open_to = own[own["answer"] == NEEDS]
        if open_to.empty:
            yield f"{where} is out of reach at every K, whatever is accepted"
            continue
        best = open_to.iloc[int(open_to["alpha_needed"].to_numpy(dtype=float).argmin())]
        yield (
            f"{where} is not reached; nearest at K={int(best['k'])}: {best['length_needed']:.2f} tokens a "
            f"step are needed (alpha {best['alpha_needed']:.2f} at every position), there are "
            f"{best['length']:.2f}"
        )


MEANS = (
    "G is of mean end-to-end latency, and in a closed loop of total throughput; other draft lengths than "
    "those measured are taken from the line over K and the acceptance by position: a prediction"
)
COLUMNS = {
    "drafter": "name of the drafter over its K",
    "layout": "layout label",
    "level": "load level on the sweep's axis",
    "decode_share": "f: share of decode in the baseline's end-to-end latency",
    "cap": "end-to-end speed-up of an infinitely fast decode, 1 / (1 - f)",
    "h": "all time but decode over the baseline's, measured with the drafter (others of its K: their mean)",
    "x_plain": "decode speed-up needed if all other time stayed as it is (Amdahl)",
    "x": "decode speed-up needed with h; missing: no decode is fast enough",
    "k": "draft length K, tokens",
    "step_ratio": "T(K)/t0",
    "source": f"of the step ratio and the length: `{MEASURED}`, or `{ON_LINE}`, a prediction",
    "length_needed": "tokens a step needed: x times the step ratio",
    "alpha_needed": "acceptance at every position that gives them; missing where none does",
    "length": "tokens a step there are",
    "x_has": "decode speed-up there is: user speed over the baseline's",
    "answer": "whether the target is reached",
    **FLAGS,
}
SHOWN = (
    "drafter", "level", "decode_share", "h", "x_plain", "x", "k", "step_ratio", "source", "length_needed",
    "length", "x_has", "alpha_needed", "answer",
)  # fmt: skip
