"""The decision of a sweep in plain words: what to serve with, where, how sure, and what is missing for it.

Report, Markdown and comparisons show the same words; the figures are those of `analysis.recommendation`.
"""

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.axis import AXES, Axis
from analysis.choices import Choice, Edge, LoadRange, inverse
from analysis.frame import Sweep
from analysis.objectives import OBJECTIVES, Objective
from analysis.recommendation import PROVISIONAL, Recommendation, recommend
from analysis.rows import Ratio, VerdictRow
from analysis.summary import Summary
from analysis.verdict import UNDECIDED

MORE_BLOCKS = 3
"""Blocks that are asked for where there was one: the default of a sweep."""
SHOWN = 6
"""Lines on what a sweep shows where it decides nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One range of loads with what to serve there; all words are plain text."""

    group: str
    """Layouts that ran together."""
    devices: int
    """Devices of the slice."""
    loads: str
    """`up to about C=8.3`."""
    ends: tuple[str, ...]
    """How well each end of the range is known, a sentence each."""
    serve: str
    """`eagle3-k3 on tp2`, or that nothing can be said."""
    label: str
    """The arm's label; empty where nothing can be said."""
    advantage: str = ""
    """Over the baseline, with its interval and the level; empty of a baseline."""
    margin: str = ""
    """Over the runner-up, likewise; empty where there is none."""
    status: str = ""
    """One of the constants of `analysis.recommendation`; empty where nothing can be said."""
    reason: str = ""
    """Why this, at the level with the smallest margin."""
    drafter: bool = False
    """Whether it speculates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What somebody who opens the report reads first; all words are plain text."""

    sentence: str
    """What to serve with, or that and why nothing can be recommended."""
    cards: tuple[Card, ...] = ()
    """By group and load; empty where nothing can be recommended."""
    instead: tuple[str, ...] = ()
    """Where nothing can be recommended: what the sweep shows all the same."""
    command: str = ""
    """What would make a recommendation possible, or surer; empty where nothing would."""
    why: str = ""
    """What the command does."""


def decision(sweep: Sweep, summary: Summary, found: Recommendation | None = None) -> Decision:
    """Return the decision of a sweep.

    Args:
        sweep: the sweep.
        summary: what it says.
        found: `recommend(sweep)`, where it is known already.
    """
    if not sweep.results:
        return Decision(
            sentence="Nothing was measured yet, so nothing can be recommended.",
            command=f"specload sweep --from {shlex.quote(f'{sweep.directory}/plan.json')}",
            why="measures what was planned",
        )
    found = recommend(sweep, objective=summary.objective) if found is None else found
    without = _without(sweep, summary, found)
    if without is not None:
        return without
    cards = tuple(_card(part, found, summary) for part in found.ranges)
    groups = list(dict.fromkeys((part.group, part.devices) for part in found.ranges))
    told = []
    for group, devices in groups:
        own = [part for part in found.ranges if (part.group, part.devices) == (group, devices)]
        where = f"On {devices} device{'' if devices == 1 else 's'} ({group}): " if len(groups) > 1 else ""
        told.append(f"{where}{_sentence(own, found, AXES[summary.axis])}")
    if summary.emulated:
        told.append("Emulated: a model's figures, not a machine's.")
    command, why = _next(sweep, summary, cards)
    return Decision(sentence=" ".join(told), cards=cards, command=command, why=why)


def change(ratio: Ratio, objective: Objective) -> str:
    """Return an advantage as a change of the objective: `+31 % [+24, +38] total throughput`.

    An advantage is a ratio of which more than 1 is better; of a latency it is the inverse of the change.
    """
    turned = ratio if objective.higher_is_better else inverse(ratio)
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
    return f"specload sweep -m {' '.join(shlex.quote(word) for word in (*kept, *changes))}"


def _without(sweep: Sweep, summary: Summary, found: Recommendation) -> Decision | None:
    """Return the decision of a sweep that can recommend nothing; None of all others."""
    rows = summary.rows
    if any(part.candidate and not part.candidate.is_baseline for part in found.ranges):
        return None
    if rows and all(row.oversubscribed for row in rows):
        return Decision(
            sentence="Nothing can be recommended: client and engine shared a core at every level, so no "
            "figure here gets a verdict.",
            instead=_indications(rows, summary, "an indication, no verdict"),
            command=words_again(sweep.plan),
            why="where client and engine have cores of their own (`specload doctor` counts them)",
        )
    if not any(part.candidate for part in found.ranges):
        return Decision(
            sentence="Nothing can be recommended: no baseline was measured to compare arms with.",
            instead=summary.caveats,
            command=f"specload status {shlex.quote(str(sweep.directory))}",
            why="says what became of each cell; the sweep's own words measure what is missing",
        )
    served = [row for row in rows if not (row.synthetic or row.counterfactual)]
    if rows and not served:
        return Decision(
            sentence="Nothing can be recommended: no drafter was measured that could be served. Acceptance "
            "was forced in every arm, so this is what there is to win, and no drafter earned it.",
            instead=_ceilings(summary),
            command=words_again(sweep.plan, "drafter=ngram", "drafter.k=3,7", without="drafter"),
            why="measures a drafter that needs no model of its own; drafter=eagle3 drafter.model=PATH is "
            "one that does",
        )
    if served and all(row.blocks <= 1 for row in served if not row.oversubscribed):
        return Decision(
            sentence="Nothing can be recommended: with one block the noise between blocks is unknown.",
            instead=_indications(served, summary, "one block, so no interval"),
            command=words_again(sweep.plan, f"design.blocks={MORE_BLOCKS}"),
            why=f"measures {MORE_BLOCKS} blocks; two are the least that a verdict needs",
        )
    return None


def _ceilings(summary: Summary) -> tuple[str, ...]:
    told = [
        f"forced acceptance, {row.label}: {OBJECTIVES[row.objective].title} {row.text}"
        for row in summary.crossovers
        if row.objective == summary.objective
    ]
    return _some(told, "arms")


def _indications(rows: Sequence[VerdictRow], summary: Summary, restriction: str) -> tuple[str, ...]:
    """Return the largest gain at each level, by estimate."""
    objective = OBJECTIVES[summary.objective]
    best: dict[float, tuple[float, str]] = {}
    for row in rows:
        ratio = row.ratio(summary.objective)
        if ratio is None or row.counterfactual or row.synthetic:
            continue
        gain = ratio if objective.higher_is_better else inverse(ratio)
        if row.level not in best or gain.value > best[row.level][0]:
            best[row.level] = (
                gain.value,
                f"{row.at}: the best drafter is {row.label} with {change(gain, objective)} ({restriction})",
            )
    return _some([told for _, (_, told) in sorted(best.items())], "levels")


def _some(told: Sequence[str], noun: str) -> tuple[str, ...]:
    more = len(told) - SHOWN
    return (*told[:SHOWN], *((f"and {more} more {noun}, in the tables below",) if more > 0 else ()))


def _next(sweep: Sweep, summary: Summary, cards: Sequence[Card]) -> tuple[str, str]:
    """Return the command that would make the decision surer, and what it does."""
    if any(card.status == PROVISIONAL for card in cards):
        plan = shlex.quote(f"{sweep.directory}/plan.json")
        why = "measures the winner again in fresh blocks: whoever was picked as the best was partly lucky"
        return f"specload sweep --from {plan} --confirm 4", why
    open_rows = [
        row
        for row in summary.rows
        if row.verdict == UNDECIDED and not row.synthetic and row.more_blocks is not None
    ]
    if any(card.drafter for card in cards) or not open_rows:
        return "", ""
    more = min(row.more_blocks or 0 for row in open_rows)
    blocks = max(row.blocks for row in summary.rows) + more
    return words_again(sweep.plan, f"design.blocks={blocks}"), "would decide the nearest undecided arm"


def _sentence(parts: Sequence[LoadRange], found: Recommendation, axis: Axis) -> str:
    """Return one sentence on the ranges of one group, ascending."""
    if len(parts) == 1:
        (part,) = parts
        where = _tried(part.choices, axis)
        if part.candidate is not None and part.candidate.is_baseline:
            return f"No drafter is shown to pay {where}: serve {_serve(part)}."
        return _capital(f"{where} {_clause(part, found)}.")
    told = [
        f"{_loads(part, axis, short=bool(place) and part.ends is None)} {_clause(part, found)}"
        for place, part in enumerate(parts)
    ]
    return _capital("; ".join(told) + ".").replace("; above serve", "; above, serve")


def _clause(part: LoadRange, found: Recommendation) -> str:
    if part.candidate is None:
        return f"nothing can be said ({part.choices[0].reason})"
    if part.candidate.is_baseline:
        return f"serve {_serve(part)}"
    ratio, _ = _smallest(part.choices)
    told = [found.status(part)]
    if ratio is not None:
        least = "at least " if len(part.choices) > 1 else ""
        told.insert(0, f"{least}{change(ratio, OBJECTIVES[found.objective])}")
    return f"serve {_serve(part)} ({', '.join(told)})"


def _serve(part: LoadRange) -> str:
    candidate = part.candidate
    if candidate is None:
        return "nothing can be said"
    own = candidate.label.removeprefix(f"{candidate.layout}/")
    if candidate.is_baseline:
        more = own.removeprefix("none").strip()
        return f"without a drafter on {candidate.layout}{f' {more}' if more else ''}"
    return f"{own} on {candidate.layout}"


def _card(part: LoadRange, found: Recommendation, summary: Summary) -> Card:
    axis, objective = AXES[summary.axis], OBJECTIVES[found.objective]
    tight = min(part.choices, key=lambda choice: choice.margin.value if choice.margin else math.inf)
    ends = (
        *([f"begins {_edge(part.begins, axis)}"] if part.begins else ()),
        *([f"ends {_edge(part.ends, axis)}"] if part.ends else ()),
        f"tried {_tried(part.choices, axis)}",
    )
    card = Card(
        group=part.group,
        devices=part.devices,
        loads=_loads(part, axis),
        ends=ends,
        serve=_serve(part),
        label="" if part.candidate is None else part.candidate.label,
        reason=tight.reason,
    )
    if part.candidate is None:
        return card
    ratio, at = _smallest(part.choices)
    margin = ""
    if tight.margin is not None and tight.runner_up is not None:
        where = f" at {axis.at(tight.level)}" if len(part.choices) > 1 else ""
        margin = f"{change(tight.margin, objective)} over {tight.runner_up.label}{where}"
    where = f" at {axis.at(at)}, where it is smallest" if len(part.choices) > 1 else ""
    return Card(
        group=card.group,
        devices=card.devices,
        loads=card.loads,
        ends=card.ends,
        serve=card.serve,
        label=card.label,
        reason=card.reason,
        advantage="" if ratio is None else f"{change(ratio, objective)}{where}",
        margin=margin,
        status=found.status(part),
        drafter=not part.candidate.is_baseline,
    )


def _smallest(choices: Sequence[Choice]) -> tuple[Ratio | None, float]:
    """Return the advantage over the baseline where it is smallest, and the level."""
    known = [(choice.over_baseline, choice.level) for choice in choices if choice.over_baseline]
    return min(known, key=lambda pair: pair[0].value, default=(None, math.nan))


def _loads(part: LoadRange, axis: Axis, *, short: bool = False) -> str:
    low, high = (axis.pattern.format(f"{value:.3g}") for value in (part.low, part.high))
    if short:
        return "above"
    if part.begins is None:
        return _tried(part.choices, axis) if part.ends is None else f"up to about {high}"
    return f"above about {low}" if part.ends is None else f"from about {low} to about {high}"


def _tried(choices: Sequence[Choice], axis: Axis) -> str:
    low, high = (axis.at(choice.level) for choice in (choices[0], choices[-1]))
    return f"at {low}" if len(choices) == 1 else f"at {low} to {high}"


def _edge(edge: Edge, axis: Axis) -> str:
    levels = f"between the levels {axis.at(edge.lower)} and {axis.at(edge.upper)}"
    if (edge.lo, edge.hi) == (edge.lower, edge.upper):
        return f"somewhere {levels}"
    interval = f"95 % interval {edge.lo:.3g} to {edge.hi:.3g}"
    return f"near {axis.pattern.format(f'{edge.at:.3g}')} ({interval}), {levels}"


def _signed(ratio: float) -> str:
    percent = 100.0 * (ratio - 1.0)
    return f"{percent:+.0f}" if abs(percent) >= 10.0 else f"{percent:+.1f}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
