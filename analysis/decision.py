"""The decision of a sweep in plain words: what to serve with, where, how sure, and what is missing for it.

Report, Markdown and comparisons show the same words; the figures are those of `analysis.recommendation`.
"""

import math
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from analysis.axis import AXES
from analysis.choices import LoadRange
from analysis.confirmation import confirm_words
from analysis.decision_words import (
    change,
    edge,
    loads,
    ranges_sentence,
    serve,
    smallest,
    tried,
    won_again,
    words_again,
)
from analysis.frame import Sweep
from analysis.objectives import OBJECTIVES
from analysis.recommendation import PROVISIONAL, Recommendation, recommend
from analysis.rows import VerdictRow
from analysis.summary import Summary
from analysis.undecided import deciding_words, retry_words, undecided_rows
from analysis.verdict import INVALID
from jobs.nouns import counted

MORE_BLOCKS = 3
"""Blocks that are asked for where there was one: the default of a sweep."""
SHOWN = 6
"""Lines on what a sweep shows where it decides nothing."""
NO_BASELINE = "no baseline was measured to compare arms with."
NO_PAIR = "no arm with a drafter has a valid pair."
A_DRAFTER = ("drafter=ngram", "drafter.k=3,7")
"""Words of a drafter that needs no model of its own."""
ANOTHER = (
    "measures a drafter that needs no model of its own; drafter=eagle3 drafter.model=PATH is one that does"
)


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
    again: tuple[str, ...] = ()
    """Levels at which it won again in fresh blocks: `C=16`."""
    reason: str = ""
    """Why this, at the level with the smallest margin."""
    undecided: tuple[str, ...] = ()
    """Of a baseline: arms that may pay here all the same, each with why nobody knows."""
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
    undecided: tuple[str, ...] = ()
    """Arms and levels without a verdict, for want of blocks or of a valid pair, a sentence each."""
    deciding: str = ""
    """The command with as many blocks as would decide the nearest of them; empty where none is known."""
    retry: str = ""
    """The command that measures failed and invalid cells again; empty where there are none."""


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
    undecided = tuple(_undecided(row) for row in undecided_rows(summary))
    deciding = deciding_words(sweep, summary)
    without = _without(sweep, summary, found)
    if without is not None:
        nothing = f"Nothing can be recommended: {without.sentence}"
        return replace(
            without, sentence=nothing, undecided=undecided, deciding=deciding, retry=retry_words(sweep)
        )
    cards = tuple(_card(part, found, summary) for part in found.ranges)
    groups = list(dict.fromkeys((part.group, part.devices) for part in found.ranges))
    told = []
    for group, devices in groups:
        own = [part for part in found.ranges if (part.group, part.devices) == (group, devices)]
        where = f"On {counted(devices, 'device')} ({group}): " if len(groups) > 1 else ""
        told.append(f"{where}{ranges_sentence(own, found, AXES[summary.axis])}")
    if summary.emulated:
        told.append("Emulated: a model's figures, not a machine's.")
    command, why = _next(sweep, found, cards, deciding)
    return Decision(
        sentence=" ".join(told),
        cards=cards,
        command=command,
        why=why,
        undecided=undecided,
        deciding=deciding,
        retry=retry_words(sweep),
    )


def _undecided(row: VerdictRow) -> str:
    lost = "no valid pair, " if row.verdict == INVALID else ""
    return f"{row.label} {row.at}: {lost}{row.reason}"


def _without(sweep: Sweep, summary: Summary, found: Recommendation) -> Decision | None:
    """Return the decision of a sweep that can recommend nothing, and why; None of all others."""
    if any(part.candidate and not part.candidate.is_baseline for part in found.ranges):
        return None
    if not any(part.candidate for part in found.ranges):
        crowded = bool(summary.rows) and all(row.oversubscribed for row in summary.rows)
        return _crowded(sweep, summary) if crowded else _status(sweep, NO_BASELINE, summary.caveats)
    served = [row for row in summary.rows if not (row.synthetic or row.counterfactual)]
    if not served:
        return _unserved(sweep, summary)
    if all(row.verdict == INVALID and not row.capacity_failure for row in served):
        reasons = Counter(row.reason for row in served).most_common()
        return _status(sweep, NO_PAIR, _some([f"{count} x {reason}" for reason, count in reasons], "reasons"))
    if all(row.blocks <= 1 for row in served if not row.oversubscribed):
        return _one_block(sweep, summary, served)
    return None


def _crowded(sweep: Sweep, summary: Summary) -> Decision:
    return Decision(
        sentence="client and engine shared a core at every level, so no figure here gets a verdict.",
        instead=_indications(summary.rows, summary, "an indication, no verdict"),
        command=words_again(sweep.plan),
        why="where client and engine have cores of their own (`specload doctor` counts them)",
    )


def _status(sweep: Sweep, sentence: str, instead: Sequence[str]) -> Decision:
    return Decision(
        sentence=sentence,
        instead=tuple(instead),
        command=f"specload status {shlex.quote(str(sweep.directory))}",
        why="says what became of each cell; the sweep's own words measure what is missing",
    )


def _unserved(sweep: Sweep, summary: Summary) -> Decision:
    told = "no drafter was measured that could be served."
    if any(row.synthetic for row in summary.rows):
        told += " Acceptance was forced: this is what there is to win, and no drafter earned it."
    command = words_again(sweep.plan, *A_DRAFTER, without="drafter")
    return Decision(sentence=told, instead=_ceilings(summary), command=command, why=ANOTHER)


def _one_block(sweep: Sweep, summary: Summary, served: Sequence[VerdictRow]) -> Decision:
    return Decision(
        sentence="with one block the noise between blocks is unknown.",
        instead=_indications(served, summary, "one block, so no interval"),
        command=words_again(sweep.plan, f"design.blocks={MORE_BLOCKS}"),
        why=f"measures {MORE_BLOCKS} blocks; two are the least that a verdict needs",
    )


def _ceilings(summary: Summary) -> tuple[str, ...]:
    forced = {row.arm for row in summary.rows if row.synthetic}
    told = [
        f"forced acceptance, {row.label}: {OBJECTIVES[row.objective].title} {row.text}"
        for row in summary.crossovers
        if row.objective == summary.objective and row.arm in forced
    ]
    return _some(told, "arms")


def _indications(rows: Sequence[VerdictRow], summary: Summary, restriction: str) -> tuple[str, ...]:
    """Return the largest gain at each level, by estimate."""
    objective = OBJECTIVES[summary.objective]
    best: dict[float, tuple[float, str]] = {}
    for row in rows:
        gain = row.gain(summary.objective)
        if gain is None or row.counterfactual or row.synthetic:
            continue
        if row.level not in best or gain.value > best[row.level][0]:
            told = f"{row.at}: the best drafter is {row.label} with {change(gain, objective)} ({restriction})"
            best[row.level] = gain.value, told
    return _some([told for _, (_, told) in sorted(best.items())], "levels")


def _some(told: Sequence[str], noun: str) -> tuple[str, ...]:
    more = len(told) - SHOWN
    return (*told[:SHOWN], *((f"and {more} more {noun}, in the tables below",) if more > 0 else ()))


def _next(sweep: Sweep, found: Recommendation, cards: Sequence[Card], deciding: str) -> tuple[str, str]:
    """Return the command that would make the decision surer, and what it does."""
    if any(card.status == PROVISIONAL for card in cards):
        why = "measures the winner again in fresh blocks: whoever was picked as the best was partly lucky"
        return confirm_words(sweep.directory, found.confirmations), why
    if any(card.drafter for card in cards) or not deciding:
        return "", ""
    return deciding, "would decide the nearest undecided arm"


def _card(part: LoadRange, found: Recommendation, summary: Summary) -> Card:
    axis, objective = AXES[summary.axis], OBJECTIVES[found.objective]
    tight = min(part.choices, key=lambda choice: choice.margin.value if choice.margin else math.inf)
    card = Card(
        group=part.group,
        devices=part.devices,
        loads=loads(part, axis),
        ends=(
            *([f"begins {edge(part.begins, axis)}"] if part.begins else ()),
            *([f"ends {edge(part.ends, axis)}"] if part.ends else ()),
            f"tried {tried(part.choices, axis)}",
        ),
        serve=serve(part),
        label="" if part.candidate is None else part.candidate.label,
        reason=tight.reason,
    )
    if part.candidate is None:
        return card
    several = len(part.choices) > 1
    ratio, level = smallest(part.choices)
    advantage = margin = ""
    if ratio is not None:
        least = ", where it is smallest" if several else ""
        advantage = f"{change(ratio, objective)} at {axis.at(level)}{least}"
    if tight.margin is not None and tight.runner_up is not None:
        unsure = tight.margin.lo is not None and tight.margin.lo < 1.0
        where = f"{axis.at(tight.level)}{', not surely ahead' if unsure else ''}"
        margin = f"{change(tight.margin, objective)} over {tight.runner_up.label} at {where}"
    return replace(
        card,
        advantage=advantage,
        margin=margin,
        status=found.status(part),
        again=won_again(part, found),
        undecided=part.undecided,
        drafter=not part.candidate.is_baseline,
    )
