"""Where each arm's gain flips in both sweeps."""

from collections.abc import Sequence

import pandas as pd

from analysis.arms import FLAGS
from analysis.compare.identity import Matched
from analysis.compare.side import Side
from analysis.crossover import ABOVE, BELOW, Crossover
from analysis.objectives import CROSSOVERS
from analysis.rows import CrossoverRow
from analysis.section import Section

LATER, EARLIER, NOT_APART, UNKNOWN = "later", "earlier", "not apart", "not known"


def crossings(pairs: Sequence[Matched], a: Side, b: Side, *, objective: str) -> Section:
    """Return one row an arm and objective that crossovers are looked for, the verdicts' objective first."""
    rows: list[dict[str, object]] = []
    flagged = {row.arm: row for side in (a, b) for row in side.rows.values()}
    for name in dict.fromkeys((objective, *CROSSOVERS)):
        for pair in pairs:
            mine, theirs = a.crossings.get((pair.a.arm, name)), b.crossings.get((pair.b.arm, name))
            if mine is not None and theirs is not None and (mine.levels or theirs.levels):
                own = [flagged[arm.arm] for arm in (pair.a, pair.b)]
                rows.append(
                    _row(pair, name, mine, theirs)
                    | {flag: any(getattr(row, flag) for row in own) for flag in FLAGS}
                )
    return Section(
        name="crossings",
        title="Where the gain flips, in A and in B",
        frame=pd.DataFrame(rows),
        columns=COLUMNS if rows else {},
        shown=("arm", "objective", "where_a", "where_b", "moved") if rows else (),
        notes=(CAUTIOUS,) if rows else (),
        missing="" if rows else "no arm with a drafter is in both sweeps",
    )


def _row(pair: Matched, objective: str, mine: CrossoverRow, theirs: CrossoverRow) -> dict[str, object]:
    row: dict[str, object] = {"arm": pair.label, "objective": objective}
    for suffix, own in (("a", mine), ("b", theirs)):
        main = own.crossover.main
        row |= {
            f"at_{suffix}": None if main is None else main.log_log,
            f"at_{suffix}_lo": own.crossover.low,
            f"at_{suffix}_hi": own.crossover.high,
            f"kind_{suffix}": own.crossover.kind,
            f"where_{suffix}": own.text,
        }
    row["moved"] = moved(mine, theirs)
    return row


def moved(a: CrossoverRow, b: CrossoverRow) -> str:
    """Return whether the gain holds up to a higher load in B than in A, by the ends of both intervals."""
    first, second = _range(a), _range(b)
    if first is None or second is None:
        return UNKNOWN
    if second[0] > first[1]:
        return LATER
    return EARLIER if first[0] > second[1] else NOT_APART


def _range(row: CrossoverRow) -> tuple[float, float] | None:
    """Return the interval of the place; beyond the levels tried it begins or ends at the last of them."""
    found: Crossover = row.crossover
    if not row.levels:
        return None
    least, most = row.levels[0], row.levels[-1]
    if found.low is None and found.high is None and not (found.low_censored or found.high_censored):
        return None  # nothing was repeated
    low = 0.0 if found.low_censored else found.low
    high = float("inf") if found.high_censored else found.high
    if found.kind == ABOVE and low is None:
        low = most
    if found.kind == BELOW and high is None:
        high = least
    return (0.0 if low is None else low, float("inf") if high is None else high)


CAUTIOUS = (
    f"`{LATER}` and `{EARLIER}` only where the two 95 % intervals do not overlap: a cautious sign; the "
    "change of the ratio at a level says more"
)
COLUMNS = {
    "arm": "name of the arm in A",
    "objective": "whose ratio passes 1",
    **{
        f"{name}_{suffix}": f"{words} in {suffix.upper()}"
        for name, words in {
            "at": "load up to which it pays (first downward crossing, 95 % interval)",
            "kind": "whether it crosses, or stays above or below 1,",
            "where": "all of it in a sentence",
        }.items()
        for suffix in ("a", "b")
    },
    "moved": f"`{LATER}`: it pays up to a higher load in B; `{EARLIER}`: to a lower one; `{NOT_APART}`: the "
    f"intervals overlap; `{UNKNOWN}`: no interval",
    **FLAGS,
}
