"""Verdicts, crossovers and a summary of runs that are not paired, in the rows of a sweep's own."""

import math
from collections import Counter
from collections.abc import Sequence

import pandas as pd

from analysis.objectives import DEFAULT, OBJECTIVES, check_objective
from analysis.others.crossing import unpaired_crossovers
from analysis.others.run import OtherResultsError
from analysis.others.welch import UnpairedContrast, unpaired_contrasts
from analysis.pairs import log_metric
from analysis.rows import VerdictRow, implied
from analysis.summary import Summary, baseline_rows
from analysis.verdict import INVALID, UNDECIDED, Verdict, decide, threshold_of
from jobs.result import MEASURED, OUTCOMES, TREATMENT

UNPAIRED = (
    "unpaired: arms and baselines are runs of their own, so whatever changed between them (machine, clocks, "
    "load of others, cache state, workload) is in the ratio; an interval holds as far as its runs were "
    "independent"
)
WORK_TOLERANCE = 0.01
"""Mean output tokens of a request may differ by so much, relative, before the row says so."""
UNIT = "run of each side"


def unpaired_verdicts(
    cells: pd.DataFrame, *, threshold: float, objective: str = DEFAULT, trust_repeats: bool = False
) -> tuple[VerdictRow, ...]:
    """Return the verdict rows of arms against the baselines of their pair key, by arm and level.

    `blocks` of a row are the replicates of that side which has fewer.

    Args:
        cells: an `others_frame`.
        threshold: practical threshold as a share; the spread of the baseline's own replicates raises it.
        objective: what the verdicts are on.
        trust_repeats: take runs of one server start for replicates.

    Raises:
        OtherResultsError: an unknown objective.
    """
    check_objective(objective, error=OtherResultsError)
    contrasts = unpaired_contrasts(cells, trust_repeats=trust_repeats)
    rows = []
    for _, group in cells.groupby(["pair", "level"], sort=True):
        level = float(group["level"].iloc[0])
        base = group[group["role"] != TREATMENT]
        for arm, own in group[group["role"] == TREATMENT].groupby("arm", sort=True):
            places = {name: (str(arm), level, name) for name in OBJECTIVES}
            found = {name: contrasts[place] for name, place in places.items() if place in contrasts}
            rows.append(_row(own, base, found, threshold=threshold, objective=objective))
    return tuple(sorted(rows, key=lambda row: (row.layout, row.drafter, row.k, row.label, row.level)))


def unpaired_summary(
    cells: pd.DataFrame,
    notes: Sequence[str] = (),
    *,
    threshold: float,
    objective: str = DEFAULT,
    trust_repeats: bool = False,
) -> Summary:
    """Return verdicts, crossovers and caveats; see `unpaired_verdicts`.

    Args:
        cells: an `others_frame`.
        notes: what has to be said about its columns.
        threshold: practical threshold as a share.
        objective: what the verdicts are on.
        trust_repeats: take runs of one server start for replicates.
    """
    rows = unpaired_verdicts(cells, threshold=threshold, objective=objective, trust_repeats=trust_repeats)
    counts = Counter(cells["outcome"])
    return Summary(
        objective=objective,
        threshold=threshold,
        axis=str(cells["axis"].iloc[0]),
        rows=rows,
        crossovers=unpaired_crossovers(cells, rows, trust_repeats=trust_repeats),
        baselines=baseline_rows(cells),
        outcomes={outcome: counts.get(outcome, 0) for outcome in OUTCOMES},
        unpaired=True,
        caveats=(UNPAIRED, *_caveats(cells, rows), *notes),
    )


def _row(
    own: pd.DataFrame,
    base: pd.DataFrame,
    found: dict[str, UnpairedContrast],
    *,
    threshold: float,
    objective: str,
) -> VerdictRow:
    first = own.iloc[0]
    ratios = {name: found[name].contrast.ratio if name in found else None for name in OBJECTIVES}
    measured = own[own["outcome"] == MEASURED]
    mal = measured["spec/mal"].mean()
    mal = None if pd.isna(mal) else float(mal)
    step, uncached = implied(mal, ratios)
    verdict = _verdict(own, base, found.get(objective), threshold=threshold, objective=objective)
    return VerdictRow(
        arm=str(first["arm"]),
        label=str(first["label"]),
        pair=str(first["pair"]),
        layout=str(first["layout"]),
        drafter=str(first["drafter"]),
        k=int(first["k"]),
        axis=str(first["axis"]),
        level=float(first["level"]),
        blocks=found[objective].contrast.pairs if objective in found else 0,
        verdict=verdict.word,
        reason=verdict.reason,
        threshold=verdict.threshold,
        **ratios,
        mal=mal,
        step_ratio=step,
        uncached_share_ratio=uncached,
        sign_flip_p=None,
        more_blocks=verdict.more_blocks,
        outcomes=dict(sorted(Counter(own["outcome"]).items())),
        capacity_failure=False,
        emulated=False,
        synthetic=False,
        counterfactual="",
        oversubscribed=False,
        unpaired=True,
        caveats=_row_caveats(measured, base[base["outcome"] == MEASURED]),
    )


def _verdict(
    own: pd.DataFrame,
    base: pd.DataFrame,
    found: UnpairedContrast | None,
    *,
    threshold: float,
    objective: str,
) -> Verdict:
    if found is None:
        return Verdict(
            word=INVALID, reason=_why(own, base, objective), threshold=threshold_of(threshold, None)
        )
    if found.contrast.half_width is None:
        return Verdict(word=UNDECIDED, reason=found.why, threshold=threshold_of(threshold, found.spread))
    return decide(
        found.contrast,
        found.fit,
        practical=threshold,
        spread=found.spread,
        higher_is_better=OBJECTIVES[objective].higher_is_better,
        unit=UNIT,
    )


def _why(own: pd.DataFrame, base: pd.DataFrame, objective: str) -> str:
    told = {"arm": own, "baseline": base}
    if base.empty:
        return f"no run of its baseline ({own['pair'].iloc[0]}) at this level"
    for side, rows in told.items():
        if not rows["outcome"].eq(MEASURED).any():
            reasons = Counter(rows["reason"])
            return f"no valid run of the {side}: " + "; ".join(f"{n} x {why}" for why, n in reasons.items())
    lacking = [side for side, rows in told.items() if not log_metric(rows, objective).notna().any()]
    return f"the files do not give {OBJECTIVES[objective].title} ({' and '.join(lacking)})"


def _row_caveats(own: pd.DataFrame, base: pd.DataFrame) -> tuple[str, ...]:
    found = [caveat for rows in (own, base) for caveats in rows["caveats"] for caveat in caveats]
    means = []
    for rows in (own, base):
        answered = rows["requests/total"] - rows["requests/failed"]
        means.append(float((rows["tokens/client_output"] / answered).mean()))
    if all(math.isfinite(mean) and mean > 0.0 for mean in means):
        ratio = means[0] / means[1]
        if abs(math.log(ratio)) > math.log1p(WORK_TOLERANCE):
            found.append(
                f"unequal work: answers of the arm have {means[0]:.1f} tokens on average, the baseline's "
                f"{means[1]:.1f} (pin lengths with --ignore-eos)"
            )
    capacities = [float(rows["kv/capacity_tokens"].mean()) for rows in (own, base)]
    if all(math.isfinite(tokens) for tokens in capacities) and capacities[0] != capacities[1]:
        found.append(
            f"KV caches of {capacities[0]:,.0f} tokens against {capacities[1]:,.0f} of the baseline "
            f"({capacities[0] / capacities[1] - 1.0:+.1%}): part of the ratio where requests wait for room"
        )
    return tuple(dict.fromkeys(found))


def _caveats(cells: pd.DataFrame, rows: Sequence[VerdictRow]) -> list[str]:
    found = []
    models = sorted({str(model) for model in cells["model"] if model})
    if len(models) > 1:
        found.append(
            f"the runs name several models ({', '.join(models)}): a drafter must not change the model"
        )
    if not rows:
        found.append("no arm was compared with a baseline: there is nothing to judge")
    if any(row.mal is not None for row in rows):
        found.append(
            "acceptance means something on real text only, and the files do not tell what the prompts were"
        )
    if str(cells["axis"].iloc[0]) != "concurrency":
        found.append(
            "open loop: until an arm cannot keep up, its throughput is what arrives, and only latencies and "
            "user speed tell arms apart"
        )
    return found
