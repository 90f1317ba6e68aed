"""Which draft length pays: what K does to the tokens of a step, to its cost, and to their quotient."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.arms import arm_facts
from analysis.axis import Axis
from analysis.decision_words import words_again
from analysis.figures.chosen import ranked_arms
from analysis.figures.draft_panels import draw_panels
from analysis.figures.draft_ratios import ratios_by_length
from analysis.figures.figure import Figure
from analysis.figures.words import joined, with_interval
from analysis.frame import Sweep
from analysis.ksweep import MISSING, DrafterLevel, axis_of, drafter_levels
from analysis.length_model import LengthModel, length_model
from analysis.summary import Summary

TITLE = "Which draft length pays"
SECTIONS = ("k_sweep", "step_cost", "best_k")
MOST = 3
"""Drafters with figures of their own; the tables have all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One drafter over its K."""

    name: str
    shown: DrafterLevel
    """The level that is drawn."""
    others: tuple[DrafterLevel, ...]
    """All other levels measured under the same condition, ascending."""
    model: LengthModel | None
    """Of the level shown."""

    @property
    def levels(self) -> list[DrafterLevel]:
        """All levels, ascending."""
        return sorted((self.shown, *self.others), key=lambda item: item.level)


def draft_length(sweep: Sweep, summary: Summary) -> tuple[Figure, ...]:
    """Return one or two figures for each drafter of two draft lengths or more, the most relevant first."""
    items: dict[str, list[DrafterLevel]] = {}
    for item in drafter_levels(sweep):
        items.setdefault(item.family, []).append(item)
    if not items:
        return (Figure(name="draft-length", title=f"{TITLE}?", missing=MISSING, sections=SECTIONS),)
    facts = arm_facts(sweep.cells, sweep.plan)
    order = list(dict.fromkeys(facts[arm].family for arm in ranked_arms(sweep, summary) if arm in facts))
    families = [family for name in order if name in items and (family := _family(name, items[name]))]
    if not families:
        return (_single(sweep, order[0] if order else next(iter(items)), items),)
    axis = axis_of(sweep)
    left = [family.name for family in families[MOST:]]
    found: list[Figure] = []
    for place, family in enumerate(families[:MOST], start=1):
        found.append(_figure(family, summary, axis, place, left))
        found += ratios_by_length(family.levels, summary, axis, f"draft-length-{place}-loads")
    return tuple(found)


def _family(name: str, items: Sequence[DrafterLevel]) -> Family | None:
    """Return a drafter with the level that tells most: of most K, and of these where they differ most."""
    several = [item for item in items if len(item.arms) > 1]
    alone = [item for item in several if not item.oversubscribed] or several
    if not alone:
        return None
    shown = max(alone, key=lambda item: (len(item.arms), _spread(item), item.level))
    others = tuple(item for item in alone if item is not shown)
    return Family(name=name, shown=shown, others=others, model=length_model(shown))


def _spread(item: DrafterLevel) -> float:
    """Return how far the logs of the quotients of all K lie apart; of the users' clock without step times."""
    for figure in ("quotient", "user_speed"):
        means = [item.fits[figure].mean(arm) for arm in item.arms.values()]
        known = [mean for mean in means if math.isfinite(mean)]
        if len(known) > 1:
            return max(known) - min(known)
    return 0.0


def _single(sweep: Sweep, name: str, items: dict[str, list[DrafterLevel]]) -> Figure:
    ks = sorted({k for item in items[name] for k in item.arms})
    others = " or ".join(str(k) for k in (1, 3, 5, 7) if k not in ks)
    command = words_again(sweep.plan, "drafter.k=1,3,5,7")
    return Figure(
        name="draft-length",
        title=f"{TITLE}?",
        missing=f"{name} was measured at K={ks[0]} alone, so nothing tells whether K={others} would pay "
        f"more: `{command}` measures them",
        sections=SECTIONS,
    )


def _figure(family: Family, summary: Summary, axis: Axis, place: int, left: Sequence[str]) -> Figure:
    shown = family.shown
    return Figure(
        name=f"draft-length-{place}",
        title=f"{TITLE} for {family.name}?",
        plot=draw_panels(shown, family.others, family.model, summary, axis),
        finding=_finding(family, axis),
        reading=_reading(family, axis)
        + (f" Not drawn: {joined(left)}; the tables have all." if left else ""),
        sections=SECTIONS if place == 1 else (),
    )


def _finding(family: Family, axis: Axis) -> str:
    shown, model = family.shown, family.model
    forced = " (forced acceptance)" if all(fact.synthetic for fact in shown.facts.values()) else ""
    at = axis.at(shown.level)
    name = "quotient" if _known(shown, "quotient") else "user_speed"
    ratios = {k: shown.fits[name].ratio(arm) for k, arm in shown.arms.items()}
    ratios = {k: ratio for k, ratio in ratios.items() if math.isfinite(ratio[0])}
    if not ratios:
        return f"At {at} no K of {family.name}{forced} has a speed beside a baseline's."
    best = max(ratios, key=lambda k: (ratios[k][0], -k))
    yields = "yields most tokens for its step" if name == "quotient" else "gives users most speed"
    tried = joined([str(k) for k in ratios])
    measured = f"Of K={tried} measured, K={best} {yields}, {with_interval(*ratios[best])} of the baseline's"
    if model is None:
        return f"{measured} at {at} by {family.name}{forced}."
    s, low, high = (100.0 * value for value in (model.steps.value, model.steps.low, model.steps.high))
    peak = model.best()
    return (
        f"At {at} one more draft token of {family.name}{forced} costs "
        f"{with_interval(s, low, high, digits=1)} % of a plain step. {measured}; the fitted lines peak at "
        f"K={peak}{'' if peak else ', no drafter'}."
    )


def _known(item: DrafterLevel, name: str) -> bool:
    return any(item.fits[name].has(arm) for arm in item.arms.values())


def _reading(family: Family, axis: Axis) -> str:
    at = axis.at(family.shown.level)
    told = [f"Points are measured at {at}, where K matters most, with 95 % intervals of one comparison."]
    if family.others:
        told.append("Thin grey lines join what was measured at other loads.")
    model = family.model
    if model is None:
        told.append("There are no fitted lines and no slider: the engine tells no step time or acceptance.")
    else:
        source = (
            f"one alpha, {model.alpha.value:.3f} ({model.alpha.word})"
            if model.formula
            else "the shares by position that the lengths imply, as no one alpha fits them"
        )
        zero = ", c taken as 0" if model.steps.fixed_is_zero else f", c = {model.steps.fixed:.3f}"
        told.append(
            f"Fitted: the length of {source}; the step's cost 1 + c + s K, s = {model.steps.value:.4f}{zero} "
            f"({model.steps.word}); the quotient of both, times {model.share:.3f} (tokens a decode step over "
            "the acceptance length). The slider sets s: what if a draft token cost less or more? The ring is "
            "the best K."
        )
    if family.shown.oversubscribed:
        told.append("Client and engine shared a core: an indication only.")
    return " ".join(told)
