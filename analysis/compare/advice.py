"""What each sweep recommends to serve with, and whether that changes."""

from collections.abc import Iterator, Sequence

import pandas as pd

from analysis.choices import Choice, LoadRange
from analysis.compare.identity import Matched
from analysis.compare.side import Side
from analysis.recommendation import Recommendation, recommend
from analysis.rows import ratio_columns
from analysis.section import Section

SAME, CHANGES, NOTHING = "stays", "changes", "nothing to compare"


def advice(pairs: Sequence[Matched], a: Side, b: Side, *, objective: str) -> Section:
    """Return one row a group of layouts and level that both sweeps tried."""
    found = [recommend(side.sweep, objective=objective) for side in (a, b)]
    counterpart = {pair.a.arm: pair.b.arm for pair in pairs}
    rows = [
        {
            "group": group,
            "level": mine[1].level,
            **_about("a", mine, found[0]),
            **_about("b", theirs, found[1]),
            "change": _word(mine[1], theirs[1], counterpart),
        }
        for group, mine, theirs in _common(*found)
    ]
    notes = [f"{side.letter}: {note}" for side, own in zip((a, b), found, strict=True) for note in own.notes]
    return Section(
        name="recommendations",
        title="What to serve with, in A and in B",
        frame=pd.DataFrame(rows),
        columns=COLUMNS if rows else {},
        shown=(
            "level",
            "serve_a",
            "over_baseline_a",
            "status_a",
            "serve_b",
            "over_baseline_b",
            "status_b",
            "change",
        )
        if rows
        else (),
        notes=tuple(notes) if rows else (),
        missing=""
        if rows
        else "nothing can be served with in both sweeps at a common level: forced acceptance, "
        "or no baseline with cores of its own; `specload recommend` says why for each",
    )


_Place = tuple[LoadRange, Choice]


def _common(a: Recommendation, b: Recommendation) -> Iterator[tuple[str, _Place, _Place]]:
    """Yield group, and range and choice of both sweeps, at every level that both tried."""
    own = [_by_group(found) for found in (a, b)]
    one = all(len(groups) == 1 for groups in own)
    for name, levels in own[0].items():
        theirs = next(iter(own[1].values())) if one else own[1].get(name, {})
        for level in sorted(levels.keys() & theirs.keys()):
            yield name, levels[level], theirs[level]


def _by_group(found: Recommendation) -> dict[str, dict[float, _Place]]:
    groups: dict[str, dict[float, _Place]] = {}
    for part in found.ranges:
        groups.setdefault(part.group, {}).update({choice.level: (part, choice) for choice in part.choices})
    return groups


def _about(suffix: str, place: _Place, found: Recommendation) -> dict[str, object]:
    part, choice = place
    known = choice.candidate is not None
    return {
        f"serve_{suffix}": choice.candidate.label if choice.candidate else "nothing can be said",
        **ratio_columns(f"over_baseline_{suffix}", choice.over_baseline),
        f"status_{suffix}": found.status(part) if known else "",
        f"reason_{suffix}": choice.reason,
    }


def _word(a: Choice, b: Choice, counterpart: dict[str, str]) -> str:
    if a.candidate is None or b.candidate is None:
        return NOTHING
    return SAME if counterpart.get(a.candidate.arm) == b.candidate.arm else CHANGES


COLUMNS = {
    "group": "layouts that ran together on the same slices, in A",
    "level": "load level that both sweeps tried",
    **{
        f"{name}_{suffix}": f"{words} in {suffix.upper()}"
        for name, words in {
            "serve": "arm to serve with",
            "over_baseline": "its advantage over its layout's baseline (simultaneous 95 % interval)",
            "status": "whether it won again in fresh blocks",
            "reason": "why it was chosen",
        }.items()
        for suffix in ("a", "b")
    },
    "change": f"`{CHANGES}`: another arm is recommended; `{SAME}`: the same; `{NOTHING}`: one sweep says "
    "nothing",
}
