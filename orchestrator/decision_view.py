"""A decision for a terminal: a few short lines a range of loads, which fit where a table would not."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from analysis.decision import Card, Decision
from analysis.recommendation import BY_DEFAULT, CONFIRMED, PROVISIONAL
from jobs.nouns import counted

_STYLES = {CONFIRMED: "bold green", PROVISIONAL: "yellow", BY_DEFAULT: "yellow"}
"""Status of a range -> how it is written."""


def decision_view(found: Decision, notes: Sequence[str], *, explain: bool = False) -> list[RenderableType]:
    """Return the decision in lines.

    Args:
        found: what was decided.
        notes: what has to be said with it.
        explain: also say how well each range's ends are known, why its arm was chosen, and what is undecided.
    """
    groups = {(card.group, card.devices) for card in found.cards}
    parts: list[RenderableType] = [Text("What to serve with, by load", style="bold"), Text(found.sentence)]
    parts += [Padding(Text(line), (0, 0, 0, 2), expand=False) for line in found.instead]
    for card in found.cards:
        parts += [Text(""), *_card(card, grouped=len(groups) > 1, explain=explain)]
    parts += [Text(""), *(Text(note) for note in notes)]
    if found.command and not found.cards:
        parts += [Text(f"What {found.why}:"), line_to_copy(found.command)]
    if explain:
        parts += _undecided(found)
    return parts


def line_to_copy(text: str) -> Text:
    """Return a line to copy: it is not broken, and the console must not crop it."""
    return Text(f"  {text}", no_wrap=True, overflow="ignore")


def _card(card: Card, *, grouped: bool, explain: bool) -> Iterator[RenderableType]:
    where = f" ({card.group}, {counted(card.devices, 'device')})" if grouped else ""
    head = Text(f"{card.loads[:1].upper()}{card.loads[1:]}{where}: ")
    head.append(card.label or card.serve, style="bold")
    if card.status:
        places = ", ".join(card.again)
        won = f" at {places}" if card.status == CONFIRMED else f", won again at {places}"
        again = won if card.again else ""
        head.append(f"  {card.status}{again}", style=_STYLES.get(card.status, ""))
    yield head
    told = {
        "over the baseline": card.advantage,
        "over the runner-up": card.margin,
        "undecided": "; ".join(card.undecided),
    }
    if explain:
        told |= {"range": "; ".join(card.ends), "why": card.reason}
    lines = Table.grid(padding=(0, 2))
    for name, words in told.items():
        if words:
            lines.add_row(name, Text(words))
    yield Padding(lines, (0, 0, 0, 2), expand=False)


def _undecided(found: Decision) -> Iterator[RenderableType]:
    if not found.undecided:
        yield Text("Every arm that could be served has a verdict at each of its levels.")
    else:
        yield Text("Undecided:")
    yield from (Padding(Text(line), (0, 0, 0, 2), expand=False) for line in found.undecided)
    for words, command in (
        ("To decide the nearest of it", found.deciding),
        ("To measure failed and invalid cells again", found.retry),
    ):
        if command:
            yield Text(f"{words}:")
            yield line_to_copy(command)
