"""What restricts a sweep's decision, strongest first: a list of rules, one function each.

The order is fixed: what touches the recommended arm's own figures goes before what touches the sweep as a
whole, and that before what touches single rows. Each caveat is one plain sentence.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from analysis.axis import AXES
from analysis.banners import BANNERS
from analysis.crossover import ABOVE
from analysis.frame import Sweep
from analysis.objectives import OBJECTIVES
from analysis.recommendation import PROVISIONAL, Recommendation
from analysis.rows import VerdictRow
from analysis.summary import Summary
from analysis.table import DISAGREE_SHARES, DISAGREE_WINDOW
from analysis.verdict import INVALID, UNDECIDED
from jobs.nouns import NAMED, counted, some
from jobs.result import MEASURED

_HIGHEST = "the highest level tried"
_FIGURE = re.compile(r"\d[\d.,]*")
TEXTS = {
    "hashed": "the workload's text was made from hashes: acceptance on it means nothing, and neither does "
    "what a drafter gains by it",
    "synthetic": "acceptance was forced in some cells: what was accepted is no property of a drafter",
}
"""Content validity -> what it means for acceptance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What the rules look at."""

    sweep: Sweep
    summary: Summary
    found: Recommendation

    @property
    def chosen(self) -> tuple[str, ...]:
        """Digests of recommended arms with a drafter."""
        candidates = (part.candidate for part in self.found.ranges)
        return tuple(dict.fromkeys(arm.arm for arm in candidates if arm and not arm.is_baseline))

    @property
    def rows(self) -> tuple[VerdictRow, ...]:
        """Verdict rows of the recommended arms first."""
        chosen = self.chosen
        return tuple(sorted(self.summary.rows, key=lambda row: row.arm not in chosen))

    def at(self, level: float) -> str:
        """Return a level as text."""
        return AXES[self.summary.axis].at(level)


def ranked_caveats(sweep: Sweep, summary: Summary, found: Recommendation) -> tuple[str, ...]:
    """Return every caveat of a sweep once, strongest first."""
    known = _Known(sweep=sweep, summary=summary, found=found)
    told = (caveat for rule in RULES for caveat in rule(known))
    return tuple(dict.fromkeys(told))


def _lost_cells(known: _Known) -> Iterator[str]:
    for arm in known.chosen:
        cells = [cell for cell in known.sweep.results if cell.arm == arm and cell.counts]
        lost = [cell for cell in cells if cell.outcome != MEASURED]
        if lost:
            causes = Counter(f"{cell.outcome}: {cell.cause or 'no cause'}" for cell in lost)
            told = ", ".join(f"{count} {cause}" for cause, count in causes.most_common(NAMED))
            name = known.found.candidates[arm].label
            of = f"{counted(len(cells), 'cell')} of {name}"
            yield f"{len(lost)} of {of}, which is recommended, do not count ({told})"


def _provisional(known: _Known) -> Iterator[str]:
    parts = [part for part in known.found.ranges if known.found.status(part) == PROVISIONAL]
    labels = dict.fromkeys(part.candidate.label for part in parts if part.candidate)
    if labels:
        yield (
            f"{some(labels)} won in the blocks that picked the best and was not measured again: expect a "
            "smaller gain than these blocks show"
        )


def _ties(known: _Known) -> Iterator[str]:
    """Say where the runner-up may be as good: its margin's interval holds no advantage."""
    where: dict[tuple[str, str], list[str]] = {}
    for choice in (choice for part in known.found.ranges for choice in part.choices):
        chosen, second, margin = choice.candidate, choice.runner_up, choice.margin
        if chosen is None or second is None or margin is None or margin.lo is None or margin.lo > 1.0:
            continue
        where.setdefault((chosen.label, second.label), []).append(known.at(choice.level))
    for (first, other), levels in where.items():
        yield f"{other} may be as good as {first} at {some(levels)}: no interval tells them apart"


def _spread(known: _Known) -> Iterator[str]:
    objective, limit = known.summary.objective, math.log1p(known.summary.threshold)
    wide = [
        (row.values[objective], row.level)
        for row in known.summary.aa_spread
        if row.values.get(objective, 0.0) > limit
    ]
    if wide:
        value, level = max(wide)
        yield (
            f"the same baseline differs from itself by {math.expm1(value):.1%} at {known.at(level)} (A/A "
            f"spread), more than the practical threshold of {known.summary.threshold:.1%}: smaller gains "
            "cannot be told there"
        )


def _one_block(known: _Known) -> Iterator[str]:
    if known.summary.rows and all(row.blocks <= 1 for row in known.summary.rows):
        yield "one block: the noise between blocks is unknown, so nothing is decided"


def _windows(known: _Known) -> Iterator[str]:
    yield from _rows_that_say(known, DISAGREE_WINDOW, "steady window and whole fixed work disagree")


def _emulated(known: _Known) -> Iterator[str]:
    if known.summary.emulated:
        yield "emulated: the figures come from a model of hardware, and so does what is recommended"


def _synthetic(known: _Known) -> Iterator[str]:
    labels = dict.fromkeys(row.label for row in known.summary.rows if row.synthetic)
    if labels:
        yield f"acceptance was forced in {some(labels)}: their ratios show a ceiling that no drafter earned"


def _oversubscribed(known: _Known) -> Iterator[str]:
    levels = sorted({row.level for row in known.summary.rows if row.oversubscribed})
    if levels:
        where = some(map(known.at, levels))
        yield f"client and engine shared a core at {where}: measured, but without verdict or choice"


def _beyond(known: _Known) -> Iterator[str]:
    """Say where the curve of a recommended arm (of every arm, where there is none) was left unfinished."""
    chosen = known.chosen
    for row in known.summary.crossovers:
        if row.objective != known.summary.objective or (chosen and row.arm not in chosen):
            continue
        found = row.crossover
        if not row.levels or row.oversubscribed:
            continue
        top = known.at(row.levels[-1])
        beyond = [known.at(entry.level) for entry in row.unread if entry.level > row.levels[-1]]
        highest = f"the highest level with a ratio ({some(beyond)} gave none)" if beyond else _HIGHEST
        if found.kind == ABOVE:
            yield f"{row.label} is still above 1 at {top}, {highest}: where it stops paying is unknown"
        elif found.high_censored:
            yield f"the crossover of {row.label} may lie above {top}, {highest}"


def _shares(known: _Known) -> Iterator[str]:
    yield from _rows_that_say(
        known, DISAGREE_SHARES, "total and computed throughput imply different uncached shares"
    )


def _content(known: _Known) -> Iterator[str]:
    found = {str(cell.identity.get("validity")) for cell in known.sweep.results}
    if "synthetic" in found and any(row.synthetic for row in known.summary.rows):
        found.discard("synthetic")  # said with the arms' names
    yield from (text for validity, text in TEXTS.items() if validity in found)


def _invalid(known: _Known) -> Iterator[str]:
    rows = [f"{row.label} {row.at}" for row in known.summary.rows if row.verdict == INVALID]
    if rows:
        yield f"no valid pair, so no verdict: {some(rows)}"


def _undecided(known: _Known) -> Iterator[str]:
    rows = [row for row in known.rows if row.verdict == UNDECIDED]
    if rows and len(rows) < len(known.summary.rows):
        told = some(f"{row.label} {row.at}" for row in rows)
        yield f"undecided on {OBJECTIVES[known.summary.objective].title}: {told}"


def _sweep(known: _Known) -> Iterator[str]:
    """Pass on what the summary says of the sweep, but for what the rules above say better."""
    told = [words for _, words in BANNERS.values()]
    yield from (
        caveat
        for caveat in known.summary.caveats
        if not caveat.startswith("one block:") and caveat not in told
    )


def _row_caveats(known: _Known) -> Iterator[str]:
    said = (DISAGREE_WINDOW, DISAGREE_SHARES)
    # one that differs in its figures alone is told once, with the first row's
    alike: dict[str, tuple[str, list[str]]] = {}
    for row in known.rows:
        for caveat in row.caveats:
            if not caveat.startswith(said):
                _, places = alike.setdefault(_FIGURE.sub("#", caveat), (caveat, []))
                places.append(f"{row.label} {row.at}")
    yield from (f"{caveat} ({some(dict.fromkeys(places))})" for caveat, places in alike.values())


def _rows_that_say(known: _Known, beginning: str, told: str) -> Iterator[str]:
    found = [(row, caveat) for row in known.rows for caveat in row.caveats if caveat.startswith(beginning)]
    if len(found) == 1:
        row, caveat = found[0]
        yield f"{row.label} {row.at}: {caveat}"
    elif found:
        yield f"{told} at {len(found)} places: {some(f'{row.label} {row.at}' for row, _ in found)}"


RULES: tuple[Callable[[_Known], Iterator[str]], ...] = (
    _lost_cells,
    _provisional,
    _ties,
    _spread,
    _one_block,
    _windows,
    _emulated,
    _synthetic,
    _oversubscribed,
    _beyond,
    _shares,
    _content,
    _invalid,
    _undecided,
    _sweep,
    _row_caveats,
)
"""Strongest first."""
