"""The report as Markdown: what `report.html` says, in the same order, for wikis, pull requests and terminals.

Text that others wrote goes through `markdown` (a line), `prose` (a sentence that may have code in it), `code`
and `fenced`, so the only HTML in it is its own.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping

from analysis.decision import Card
from analysis.figures import Figure
from analysis.report.context import STRONGEST, Chapter, Page
from analysis.report.format import ABSENT, percent, text
from analysis.report.markdown_outcomes import outcome_lines
from analysis.report.markdown_table import folded, section_lines, table
from analysis.report.markdown_text import code, prose
from analysis.report.methods import METHODS
from analysis.report.page.tables import arm_marks
from analysis.untrusted import fenced, markdown
from jobs.nouns import counted

SHORT = 12
"""Rows of a list of keys that stands open."""
CARD_HEADS = ("load", "serve", "over the baseline", "over the runner-up", "status", "the range")
PLAN_KEYS = ("name", "sweep", "digest", "seed", "threshold", "overrides")


def render_markdown(page: Page, pictures: Mapping[str, str]) -> str:
    """Return the report as Markdown.

    Args:
        page: what the report shows.
        pictures: name of a figure -> its picture, relative to the report; figures without one are named.
    """
    lines = [*_head(page)]
    sweep, marks = shlex.quote(str(page.directory)), arm_marks(page.sweep.cells)
    for chapter in page.chapters:
        lines += _chapter(chapter, pictures)
        for section in chapter.boxes:
            lines += section_lines(section, marks, sweep=sweep, level=3)
        if chapter.elsewhere:
            named = "; ".join(section.title for section in chapter.elsewhere)
            lines += (f"Tables of other chapters that belong here: {markdown(named)}.", "")
    if page.rest:
        lines += ("## More of the analysis", "")
    for section in page.rest:
        lines += section_lines(section, marks, sweep=sweep, level=3)
    lines += outcome_lines(page)
    lines += _configuration(page)
    lines += _methods(page)
    lines += _provenance(page)
    return "\n".join(lines).rstrip() + "\n"


def _head(page: Page) -> Iterator[str]:
    yield from (f"# {markdown(page.title)}", "")
    for name, told in page.banners:
        yield from (f"> **{markdown(name)}**: {markdown(told)}.", "")
    found = page.decision
    yield from ("## Decision", "", f"**{markdown(found.sentence)}**", "")
    if found.cards:
        yield from (*table(CARD_HEADS, map(_card, found.cards)), "")
    if found.instead:
        yield from ("What it shows all the same:", "")
        yield from _items(found.instead)
    if found.command:
        yield from (f"Next: {code(found.command)}{f' ({prose(found.why)})' if found.why else ''}.", "")
    if page.caveats:
        yield from ("**Strongest caveats**", "")
        yield from _items(page.caveats[:STRONGEST])
        if page.caveats[STRONGEST:]:
            yield from folded("Further caveats", [*_items(page.caveats[STRONGEST:])])
    if page.summary.confirmations:
        yield from ("### Confirmation", "")
        told = (
            "Winners measured again with their baselines in fresh blocks, which are judged by themselves and "
            "count in no table or figure."
        )
        yield from (told, "")
        yield from _items(entry.text for entry in page.summary.confirmations)
    counts = [(name, count) for name, count in page.summary.outcomes.items() if count]
    cells = ", ".join(f"{count:,} {markdown(name)}" for name, count in counts) or "none"
    threshold, objective = percent(page.summary.threshold), markdown(page.objective.title)
    yield from (f"Cells: {cells}. Practical threshold: {threshold}. Objective: {objective}.", "")


def _card(card: Card) -> list[str]:
    place = f"{card.loads} ({card.group}, {counted(card.devices, 'device')})"
    words = (place, card.serve, card.advantage, card.margin, card.status, "; ".join(card.ends))
    return [markdown(word) or ABSENT for word in words]


def _items(sentences: Iterable[str]) -> Iterator[str]:
    lines = [f"- {prose(sentence)}" for sentence in sentences]
    if lines:
        yield from (*lines, "")


def _chapter(chapter: Chapter, pictures: Mapping[str, str]) -> Iterator[str]:
    yield from (f"## {chapter.number}. {markdown(chapter.heading)}", "")
    for figure in chapter.figures:
        yield from _figure(figure, pictures.get(figure.name))


def _figure(figure: Figure, picture: str | None) -> Iterator[str]:
    yield from (f"### {markdown(figure.title)}", "")
    if figure.plot is None:
        yield from (f"**Not measured**: {prose(figure.missing)}", "")
        return
    yield from (f"**{markdown(figure.finding)}**", "")
    if picture is not None:
        yield from (f"![{markdown(figure.title)}]({picture})", "")
    for words in filter(None, (figure.reading, figure.missing)):
        yield from (prose(words), "")


def _configuration(page: Page) -> Iterator[str]:
    if page.differences:
        yield from ("## Configuration differences", "")
        told = (
            "What the engine itself resolved differently in an arm and in its baseline. Anything that does "
            "not follow from the drafter makes the pair invalid."
        )
        yield from (told, "")
    for label, keys in page.differences:
        yield from (f"### {markdown(label)}", "")
        rows = [(code(key), code(text(base)), code(text(own))) for key, base, own in keys]
        lines = table(("key", "baseline", "arm"), rows) if rows else ["None was reported."]
        yield from folded(counted(len(rows), "key"), lines) if len(rows) > SHORT else (*lines, "")


def _methods(page: Page) -> Iterator[str]:
    yield from ("## Methods", "")
    yield from (*(f"- **{markdown(term)}.** {prose(told)}" for term, told in METHODS), "")
    told = [f"- {code(name)}: {prose(meaning)}" for name, meaning in page.metrics.items()]
    yield from folded("Definitions of all metrics", told)


def _provenance(page: Page) -> Iterator[str]:
    yield from ("## Provenance", "")
    plan = page.plan
    yield from (f"- plan, {key}: {code(text(plan[key]))}" for key in PLAN_KEYS if key in plan)
    for key, values in page.facts:
        yield f"- {markdown(key)}: {', '.join(code(text(value)) for value in values)}"
    yield from (f"- {markdown(key)}: {code(text(value))}" for key, value in page.provenance)
    yield ""
    if plan.get("notes"):
        yield from ("### What planning changed or found", "")
        yield from _items(map(str, plan["notes"]))
    if page.command_lines:
        shown = [
            part for label, line in page.command_lines for part in (markdown(label), "", fenced(line), "")
        ]
        yield from folded("Command lines of the engines", shown)
