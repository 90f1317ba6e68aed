"""Where a decode step's time goes: by the profiles of a sweep, else estimated from its fitted step costs.

The estimate is T(K) = t0 [1 + c + s K] (`analysis.stepcost`) in milliseconds: the plain step t0, what
speculation costs at any K (c t0), and what grows with K (s K t0), split into verifying and drafting where
something tells them apart. The step that was measured stands beside it.
"""

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.arms import FLAGS, flag_notes
from analysis.axis import AXES, Axis
from analysis.frame import Sweep
from analysis.ksweep import POINTWISE, axis_of, k_sweep
from analysis.profiles import TRACE, EngineStep, Profile, profiles_of
from analysis.section import Section
from analysis.step_parts import DRAFTING, DRAFTS, FIXED, NOT_TOLD_APART, PARTS, PLAIN_STEP, VERIFYING
from analysis.stepcost import step_cost
from jobs.result import TREATMENT

FITTED = "fitted"
"""Source of steps that are no profile's: the sweep's own step costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One mean step of one engine."""

    arm: str
    """Digest."""
    label: str
    k: int
    step_ms: float
    """As measured; of a fitted one with the 95 % interval of its ratio to the plain step."""
    low_ms: float = math.nan
    high_ms: float = math.nan
    parts: Mapping[str, float]
    """Name of a part (`analysis.step_parts`) -> milliseconds."""
    synthetic: bool = False
    emulated: bool = False
    oversubscribed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """Steps at one load, baselines first."""

    source: str
    """`trace`, `estimate` or `fitted`."""
    level: float
    """Load level; of a profile the requests held in decode."""
    at: str
    """The same as text: `C=16`."""
    context: int | None
    """KV length of each request, tokens; None for that of the workload."""
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()


def step_times(sweep: Sweep) -> tuple[StepTimes, ...]:
    """Return the steps of the profiles, traces first; without a profile those fitted, by level.

    Raises:
        ResultsError: a profile that cannot be read; the message names the file.
    """
    profiled = _profiled(profiles_of(sweep.directory), sweep)
    return tuple(profiled) or tuple(_fitted(sweep))


def step_time(sweep: Sweep) -> Section:
    """Return one row a step with the milliseconds of its parts."""
    found = sweep.once(step_times)
    used = {part for group in found for step in group.steps for part in step.parts}
    names = [name for name in PARTS if name in used]
    frame = pd.DataFrame(
        [
            {
                "arm": step.label,
                "load": group.at,
                "context": group.context,
                "source": group.source,
                "step_ms": step.step_ms,
                "step_ms_lo": step.low_ms,
                "step_ms_hi": step.high_ms,
                **{name: step.parts.get(name, math.nan) for name in names},
                "synthetic": step.synthetic,
                "emulated": step.emulated,
                "oversubscribed": step.oversubscribed,
            }
            for group in found
            for step in group.steps
        ]
    )
    fitted = any(group.source == FITTED for group in found)
    notes = [note for group in found for note in group.notes]
    if found:
        frame["context"] = frame["context"].astype("Int64")
        notes += [f"ESTIMATE: {FITTED_NOTE}", POINTWISE] if fitted else []
        notes += flag_notes(frame)
    definitions = {name: f"ms of {PARTS[name]}" for name in names}
    marks = tuple(FLAGS)
    return Section(
        name="step_time",
        title="Where a decode step's time goes, ms",
        frame=frame,
        columns=STEP_COLUMNS | definitions | FLAGS if found else {},
        shown=tuple(name for name in frame.columns if name not in (*marks, *(["context"] * fitted))),
        notes=tuple(dict.fromkeys(notes)),
        missing="" if found else f"no step times are known; `{profile_command(sweep)}` measures them",
    )


def profile_command(sweep: Sweep, arm: str = "", level: float | None = None) -> str:
    """Return the command that measures where the step's time goes, for an arm and level of this sweep.

    Args:
        sweep: the sweep.
        arm: digest; an arm with a drafter where empty.
        level: load level, which is the number of requests in decode only in a closed loop.
    """
    name, load = "ARM", "C"
    cells = sweep.cells
    if len(cells):
        cells = cells[(cells["role"] == TREATMENT) & cells["counterfactual"].eq("")]
        cells = cells[cells["arm"] == arm] if arm else cells
    if len(cells):
        first = cells.iloc[0]
        # where swept keys are added to tell labels apart, only the digest names an arm
        name = str(first["arm"])[:12] if "[" in str(first["label"]) else str(first["label"])
        if first["axis"] == "concurrency":
            load = f"{cells['level'].max() if level is None else level:.0f}"
    words = ("specload", "profile", name, "--from", str(sweep.directory), "--concurrency", load)
    return " ".join(map(shlex.quote, words))


def _profiled(profiles: Sequence[Profile], sweep: Sweep) -> Iterator[StepTimes]:
    """Yield the profiles, those of one load and context together; an arm counts once in each."""
    groups: dict[tuple[bool, str, int, int], list[Profile]] = {}
    for profile in profiles:
        key = (profile.source != TRACE, profile.source, profile.concurrency, profile.context)
        groups.setdefault(key, []).append(profile)
    forced = set(sweep.cells.loc[sweep.cells["synthetic"].astype(bool), "arm"]) if len(sweep.cells) else set()
    for (_, source, concurrency, context), own in sorted(groups.items(), key=lambda group: group[0]):
        baselines = {profile.baseline.arm: (profile.baseline, profile) for profile in own}
        arms = {engine.arm: (engine, profile) for profile in own for engine in profile.arms}
        yield StepTimes(
            source=source,
            level=float(concurrency),
            at=AXES["concurrency"].at(concurrency),
            context=context,
            steps=tuple(
                _of_engine(engine, profile, forced) for engine, profile in (baselines | arms).values()
            ),
            notes=tuple(dict.fromkeys(note for profile in own for note in profile.notes)),
        )


def _of_engine(engine: EngineStep, profile: Profile, forced: set[str]) -> Step:
    return Step(
        arm=engine.arm,
        label=engine.label,
        k=engine.k,
        step_ms=engine.step_ms,
        parts=engine.parts,
        synthetic=engine.arm in forced,
        emulated=profile.emulated,
    )


def _fitted(sweep: Sweep) -> Iterator[StepTimes]:
    """Yield the steps of each level by the fitted costs; where cores were shared only if they always were."""
    arms, costs = sweep.once(k_sweep).frame, sweep.once(step_cost).frame
    if arms.empty or costs.empty:
        return
    keys = ["drafter", "layout", "level", "oversubscribed"]
    table = arms.merge(costs.drop(columns=["synthetic", "emulated"]), on=keys, how="inner")
    table = table[table["step_ratio"].notna()]
    apart = table[~table["oversubscribed"].astype(bool)]
    names = sweep.cells.drop_duplicates("arm").set_index("arm")
    bases = sweep.cells[sweep.cells["role"] != TREATMENT].drop_duplicates("pair").set_index("pair")
    axis = axis_of(sweep)
    for value, own in (table if apart.empty else apart).groupby("level", sort=True):
        yield _level(float(str(value)), own, names, bases, axis)


def _level(
    level: float, own: pd.DataFrame, names: pd.DataFrame, bases: pd.DataFrame, axis: Axis
) -> StepTimes:
    own = own.assign(
        label=names.loc[own["arm"], "label"].to_numpy(), pair=names.loc[own["arm"], "pair"].to_numpy()
    )
    plain = []
    for pair, rows in own.groupby("pair", sort=False):
        base = bases.loc[pair]
        ms = float(rows["t0_ms"].mean())
        plain.append(
            Step(
                arm=str(base["arm"]),
                label=str(base["label"]),
                k=0,
                step_ms=ms,
                parts={PLAIN_STEP: ms},
                emulated=bool(rows["emulated"].any()),
                oversubscribed=bool(rows["oversubscribed"].any()),
            )
        )
    alone = own.groupby("drafter")["k"].transform("count").eq(1)
    steps = [_of_fit(row, alone=bool(single)) for row, single in zip(_rows(own), alone, strict=True)]
    return StepTimes(source=FITTED, level=level, at=axis.at(level), context=None, steps=(*plain, *steps))


def _rows(frame: pd.DataFrame) -> Iterable[Mapping[str, object]]:
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def _of_fit(row: Mapping[str, object], *, alone: bool) -> Step:
    def value(name: str) -> float:
        return float(np.asarray(row[name], dtype=float))

    t0, k = value("t0_ms"), int(value("k"))
    drafts, verifying, drafting = (value(name) * k * t0 for name in ("s", "v", "d"))
    parts = {PLAIN_STEP: t0}
    if alone:
        parts[NOT_TOLD_APART] = value("c") * t0 + drafts
    else:
        if math.isfinite(verifying) and math.isfinite(drafting):
            parts |= {VERIFYING: verifying, DRAFTING: drafting}
            rest = drafts - verifying - drafting  # a trace and the sweep need not agree
            parts |= {"rest": rest} if abs(rest) > 0.005 * t0 else {}
        else:
            parts[DRAFTS] = drafts
        if not bool(row["c_assumed"]):
            parts[FIXED] = value("c") * t0
    return Step(
        arm=str(row["arm"]),
        label=str(row["label"]),
        k=k,
        step_ms=t0 * value("step_ratio"),
        low_ms=t0 * value("step_ratio_lo"),
        high_ms=t0 * value("step_ratio_hi"),
        parts=parts,
        synthetic=bool(row["synthetic"]),
        emulated=bool(row["emulated"]),
        oversubscribed=bool(row["oversubscribed"]),
    )


FITTED_NOTE = (
    "parts by the fitted line T = t0 [1 + c + s K] of each drafter and level; where a drafter has two draft "
    "lengths its fixed cost is in what grows with K, and where it has one nothing is told apart"
)
STEP_COLUMNS = {
    "arm": "name of the arm",
    "load": "load level of the sweep; of a profile the requests held in decode",
    "context": "KV length of each request in tokens, as the profile asked for",
    "source": "`trace` of the engine's profiler, `estimate` of a profile without one, `fitted` to the sweep",
    "step_ms": "mean decode step, ms; of `fitted` as measured in the sweep, with the interval of its ratio",
}
