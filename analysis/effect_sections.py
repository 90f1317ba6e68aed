"""The sections on layouts, drafters and other swept factors: their effects, and every combination of them."""

from collections.abc import Callable, Iterator, Sequence

import pandas as pd

from analysis.axis import AXES
from analysis.contrasts import counted
from analysis.factorial import COMBINATION_COLUMNS, EFFECT_COLUMNS, combinations_of, effects_of, fits
from analysis.factorial_fit import FactorialFit, Point
from analysis.factors import LAYOUT, TREATMENT, per_device, short, swept_factors, with_treatment
from analysis.frame import Sweep
from analysis.objectives import DEFAULT, OBJECTIVES
from analysis.section import Section
from analysis.sign_flips import flip_text, flips
from jobs.result import MEASURED

_COMPARED = "the factors, `a x b`; what else was swept is held"
_ONE_FACTOR = (
    "nothing but the drafter was swept, so there is no second factor whose effect could be told; sweep one "
    "beside it: `specload sweep -m layout=tp2,dp2 drafter=...`, or another key with several values"
)
_NO_CELLS = "no cell that counts was measured; the same sweep command measures what is missing"
_SUM = (
    "an effect is a ratio to the geometric mean over the factor's levels, every level of the other counted "
    "alike (Sum contrasts): read main effects only where the interaction is small"
)
_CACHE = "hit rates and KV capacities differ between layouts: they are part of what a layout is"
_PER_DEVICE = (
    "layouts of different size are compared at equal load per device, each filling the same slice with "
    "replicas; figures that grow with the devices are per device"
)
_ONE_COMPARISON = (
    "intervals are for one comparison each, from residuals pooled over all combinations of a load"
)


def factor_sets(cells: pd.DataFrame) -> list[list[str]]:
    """Return what to compare: layout by treatment, and each other swept factor by treatment.

    Empty where nothing beside the drafter was swept.
    """
    swept = swept_factors(cells)
    beside = [[TREATMENT]] if TREATMENT in swept else [[]]
    return [[name, *beside[0]] for name in swept if name != TREATMENT]


def effects_section(sweep: Sweep) -> Section:
    """Return main effects and interactions on the sweep's objective; warn where one flips a sign."""
    return _section(
        sweep,
        name="effects",
        title="Effects of what was swept, and their interaction",
        frame_of=effects_of,
        columns=EFFECT_COLUMNS,
        extra=_SUM,
    )


def layouts_section(sweep: Sweep) -> Section:
    """Return every combination of layout (or another swept factor) and treatment, indexed to the best."""

    def frame_of(fitted: Sequence[FactorialFit], objective: str) -> pd.DataFrame:
        frame = combinations_of(fitted, objective)
        factors = [short(name) for name in fitted[0].table.factors] if fitted else []
        points = zip(*(frame[name].tolist() for name in factors), strict=True)
        place = frame.columns.tolist().index("held") + 1
        frame.insert(place, "combination", [" x ".join(map(str, point)) for point in points])
        return frame.drop(columns=factors)

    return _section(
        sweep,
        name="layouts",
        title="Combinations of layout and drafter, indexed to the best",
        frame_of=frame_of,
        columns={**COMBINATION_COLUMNS, "combination": "a level of each factor"},
        extra=_CACHE,
    )


def _section(
    sweep: Sweep,
    *,
    name: str,
    title: str,
    frame_of: Callable[[Sequence[FactorialFit], str], pd.DataFrame],
    columns: dict[str, str],
    extra: str,
) -> Section:
    cells = counted(sweep.cells)
    objective = str(sweep.plan.get("objective") or DEFAULT)
    sets = factor_sets(cells) if len(cells) else []
    if not sets:
        return Section(name=name, title=title, missing=_ONE_FACTOR if len(cells) else _NO_CELLS)
    frames, notes = [], [_basis(objective), _ONE_COMPARISON, extra]
    if LAYOUT in sets[0]:
        notes.append(_PER_DEVICE)
    for factors in sets:
        fitted = fits(cells, factors, objective)
        if not fitted:
            continue
        compared = " x ".join(short(factor) for factor in factors)
        frame = frame_of(fitted, objective)
        frame.insert(0, "compared", compared)
        frames.append(frame)
        notes += _warnings(fitted, objective, str(sweep.cells["axis"].iloc[0]), sweep)
        notes += _gaps(fitted, compared, with_treatment(cells))
    if not frames:
        return Section(name=name, title=title, missing=_NO_CELLS)
    frame = pd.concat(frames, ignore_index=True)
    kept = [column for column in frame.columns if column != "held" or (frame["held"] != "").any()]
    return Section(
        name=name,
        title=title,
        frame=frame[kept],
        columns={"compared": _COMPARED, **columns},
        shown=tuple(column for column in kept if column not in ("objective", "df", "level")),
        notes=tuple(dict.fromkeys(notes)),
    )


def _basis(objective: str) -> str:
    where = " per device" if per_device(objective) else ""
    metric = OBJECTIVES[objective]
    better = "" if metric.higher_is_better else "; below 1 is better"
    return f"on {metric.title}{where} ({metric.metric}){better}"


def _warnings(fitted: Sequence[FactorialFit], objective: str, axis: str, sweep: Sweep) -> Iterator[str]:
    threshold = sweep.threshold
    for row in flips(combinations_of(fitted, objective), threshold=threshold).to_dict("records"):
        plain = {str(key): value for key, value in row.items()}
        yield flip_text(plain, f"{AXES[axis].at(float(row['per_device']))} per device")


def _gaps(fitted: Sequence[FactorialFit], compared: str, cells: pd.DataFrame) -> Iterator[str]:
    """Say which combinations have no measured cell and why, once for all loads that lack them."""
    factors = fitted[0].table.factors
    lost = cells[cells["outcome"] != MEASURED]
    texts = zip(*(lost[name].astype(str) for name in factors), strict=True)
    reasons = dict(zip(texts, lost["reason"].fillna(lost["outcome"]).astype(str), strict=True))
    lacking: dict[Point, set[float]] = {}
    for fit in fitted:
        for point in fit.points:
            if point not in fit.cells:
                lacking.setdefault(point, set()).add(fit.table.per_device)
    for point, loads in lacking.items():
        why = reasons.get(point, "not part of this sweep: a sweep over it would measure it")
        yield (
            f"{compared}: {' x '.join(point)} has no measured cell at a load per device of "
            f"{', '.join(f'{load:g}' for load in sorted(loads))} ({why}); its effects are left out"
        )
