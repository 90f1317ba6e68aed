"""Loads, ranges, advantages and commands in words: what a decision is told in."""

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from analysis.axis import Axis
from analysis.choices import Choice, Edge, LoadRange
from analysis.objectives import OBJECTIVES, Objective
from analysis.recommendation import CONFIRMED, Recommendation
from analysis.rows import Ratio
from jobs.nouns import some

NOTHING = "nothing can be said"
"""Of a range without a choice."""


def change(ratio: Ratio, objective: Objective) -> str:
    """Return an advantage as a change of the objective: `+31 % [+24, +38] total throughput`.

    An advantage is a ratio of which more than 1 is better; of a latency it is the inverse of the change.
    """
    turned = ratio if objective.higher_is_better else ratio.inverse
    ends = "" if turned.lo is None or turned.hi is None else f" [{_signed(turned.lo)}, {_signed(turned.hi)}]"
    return f"{_signed(turned.value)} %{ends} {objective.title}"


def words_again(plan: Mapping[str, Any], *changes: str, without: str = "\0") -> str:
    """Return the command of a sweep's own words with some changed.

    Args:
        plan: content of the plan.
        changes: `design.blocks=3`; each replaces what the plan says of its key.
        without: keys with this beginning are left out.
    """
    keys = {word.partition("=")[0] for word in changes}
    kept = [
        f"+{word}" if word.startswith("experiment=") else word
        for word in map(str, plan.get("overrides", ()))
        if word.partition("=")[0] not in keys and not word.startswith(without)
    ]
    return f"specload sweep -m {' '.join(shlex.quote(word) for word in (*kept, *changes))}".strip()


def ranges_sentence(parts: Sequence[LoadRange], found: Recommendation, axis: Axis) -> str:
    """Return one sentence on the ranges of one group, ascending."""
    if len(parts) == 1:
        (part,) = parts
        where = tried(part.choices, axis)
        if part.candidate is not None and part.candidate.is_baseline:
            return f"No drafter is shown to pay {where}: serve {serve(part)}{_by_default(part)}."
        return _capital(f"{where} {_clause(part, found)}.")
    told = [f"{loads(part, axis)} {_clause(part, found)}" for part in parts[:-1]]
    return _capital(f"{'; '.join([*told, f'above, {_clause(parts[-1], found)}'])}.")


def serve(part: LoadRange) -> str:
    """Return what to serve with in a range: `eagle3-k3 on tp2`."""
    candidate = part.candidate
    if candidate is None:
        return NOTHING
    own = candidate.label.removeprefix(f"{candidate.layout}/")
    if candidate.is_baseline:
        more = own.removeprefix("none").strip()
        return f"without a drafter on {candidate.layout}{f' {more}' if more else ''}"
    return f"{own} on {candidate.layout}"


def smallest(choices: Sequence[Choice]) -> tuple[Ratio | None, float]:
    """Return the advantage over the baseline where it is smallest, and the level."""
    known = [(choice.over_baseline, choice.level) for choice in choices if choice.over_baseline]
    return min(known, key=lambda pair: pair[0].value, default=(None, math.nan))


def loads(part: LoadRange, axis: Axis) -> str:
    """Return the loads of a range: `up to about C=8.3`."""
    low, high = (axis.pattern.format(f"{value:.3g}") for value in (part.low, part.high))
    if part.begins is None:
        return tried(part.choices, axis) if part.ends is None else f"up to about {high}"
    return f"above about {low}" if part.ends is None else f"from about {low} to about {high}"


def tried(choices: Sequence[Choice], axis: Axis) -> str:
    """Return the levels of a range: `at C=1 to C=8`."""
    low, high = (axis.at(choice.level) for choice in (choices[0], choices[-1]))
    return f"at {low}" if len(choices) == 1 else f"at {low} to {high}"


def edge(found: Edge, axis: Axis) -> str:
    """Return how well an end of a range is known."""
    levels = f"between the levels {axis.at(found.lower)} and {axis.at(found.upper)}"
    if (found.lo, found.hi) == (found.lower, found.upper):
        return f"somewhere {levels}"
    interval = f"95 % interval {found.lo:.3g} to {found.hi:.3g}"
    return f"near {axis.pattern.format(f'{found.at:.3g}')} ({interval}), {levels}"


def won_again(part: LoadRange, found: Recommendation) -> tuple[str, ...]:
    """Return the levels at which fresh blocks confirm a range's choice."""
    return tuple(entry.at for entry in found.fresh(part) if entry.confirmed)


def _clause(part: LoadRange, found: Recommendation) -> str:
    if part.candidate is None:
        return f"{NOTHING} ({part.choices[0].reason})"
    if part.candidate.is_baseline:
        return f"serve {serve(part)}{_by_default(part)}"
    ratio, _ = smallest(part.choices)
    told = [_status(part, found)]
    if ratio is not None:
        least = "at least " if len(part.choices) > 1 else ""
        told.insert(0, f"{least}{change(ratio, OBJECTIVES[found.objective])}")
    return f"serve {serve(part)} ({', '.join(told)})"


def _by_default(part: LoadRange) -> str:
    """Return that a baseline is served for want of evidence, where it is."""
    return f" until more is known ({some(part.undecided)})" if part.undecided else ""


def _status(part: LoadRange, found: Recommendation) -> str:
    """Return whether a range's choice won again, and where: fresh blocks are measured at one level."""
    word = found.status(part)
    return f"{word} at {', '.join(won_again(part, found))}" if word == CONFIRMED else word


def _signed(ratio: float) -> str:
    percent = 100.0 * (ratio - 1.0)
    return f"{percent:+.0f}" if abs(percent) >= 10.0 else f"{percent:+.1f}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
