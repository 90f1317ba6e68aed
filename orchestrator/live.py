"""A `Status` on a terminal: one view for the display of a running sweep and for `specload status`."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from analysis.objectives import OBJECTIVES
from jobs.nouns import counted
from jobs.result import FAILED, INVALID
from orchestrator.secrecy import redacted
from orchestrator.status import FINISHED, RUNNING, PairSoFar, RunningStep, Status
from orchestrator.tries import retry_words

Say = Callable[[str], None]
Show = Callable[[Status], None]


@contextmanager
def screen(console: Console) -> Iterator[tuple[Say, Show | None]]:
    """Give what prints a line and what shows a status; None for the latter where `console` is no terminal.

    Lines scroll by above the display, which is gone at the end: what follows is printed in its place.
    """

    def say(line: str) -> None:
        console.print(redacted(line), markup=False)

    if not console.is_terminal:
        yield say, None
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield say, lambda status: live.update(status_view(status), refresh=True)


def status_view(status: Status, *, go_on: str = "") -> RenderableType:
    """Return everything that `status` says.

    Args:
        status: a sweep at one moment.
        go_on: the command that goes on with it, for one that does not run.
    """
    parts: list[RenderableType] = [_head(status, go_on), _cells(status), *_again(status, go_on)]
    if status.devices_total:
        parts.append(_devices(status))
    if status.running:
        parts.append(_running(status))
    parts += [Text(f"pair {pair_words(pair)}") for pair in status.pairs]
    parts += [Text(f"note: {note}", style="yellow") for note in status.notes]
    return Group(*parts)


def span(seconds: float) -> str:
    """Return a duration for people: `42 s`, `3 min 20 s`, `1 h 12 min`, `2 d 3 h`."""
    whole = max(0, round(seconds))
    for large, small, size, part in (("d", "h", 86_400, 3600), ("h", "min", 3600, 60), ("min", "s", 60, 1)):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {large}" + (f" {rest} {small}" if rest else "")
    return f"{whole} s"


def pair_words(pair: PairSoFar) -> str:
    """Return what a finished pair says so far, in one line."""
    over = f"; {pair.mean:.2f} over {counted(pair.blocks, 'block')}" if pair.blocks > 1 else ""
    objective = OBJECTIVES[pair.objective]
    kind = "preliminary" if objective.higher_is_better else "less is better; preliminary"
    return (
        f"{pair.arm} {pair.load}: {pair.ratio:.2f} x the baseline's {objective.title} in block {pair.block}"
        f"{over} ({kind})"
    )


def _head(status: Status, go_on: str) -> Text:
    text = Text.assemble((status.sweep, "bold"), ": ")
    if status.state == RUNNING:
        rest = (
            "time left unknown" if status.seconds_left is None else f"about {span(status.seconds_left)} left"
        )
        return text.append(f"running for {span(status.seconds)}, {rest}")
    if status.state == FINISHED:
        return text.append("finished; every cell has its outcome", style="green")
    words = f"stopped; {counted(status.left, 'cell')} left"
    return text.append(f"{words}; go on with: {go_on}" if go_on else words, style="yellow")


def _again(status: Status, go_on: str) -> list[Text]:
    """Return how cells without a measurement that counts can be measured again."""
    words = retry_words({FAILED: status.failed, INVALID: status.invalid}, go_on)
    return [Text(words)] if go_on and words and status.state != RUNNING else []


def _cells(status: Status) -> Text:
    done = status.done
    text = Text(f"{done} of {counted(done + status.left, 'cell')}: {status.measured} measured")
    for count, word, style in (
        (status.invalid, "invalid", "yellow"),
        (status.failed, "failed", "red"),
        (status.infeasible, "infeasible", "yellow"),
    ):
        text.append(f", {count} {word}", style=style if count else "")
    text.append(f", {status.left} left")
    return text.append(_causes(status.causes))


def _causes(causes: Mapping[str, int]) -> str:
    return f" ({', '.join(f'{cause} {count}' for cause, count in causes.items())})" if causes else ""


def _devices(status: Status) -> Text:
    held = f", {status.devices_held} set aside" if status.devices_held else ""
    blocks = f"{counted(len(status.running), 'block')} running, {status.waiting} waiting"
    return Text(f"{status.devices_in_use} of {status.devices_total} {status.resource} in use{held}; {blocks}")


def _running(status: Status) -> Table:
    table = Table(show_edge=False)
    for name in ("block", "node", "devices", "arm", "level", "for"):
        table.add_column(name, justify="right" if name in ("block", "devices") else "left")
    for step in status.running:
        table.add_row(
            str(step.block), step.node, str(step.devices), Text(_arm(step)), _level(step), span(step.seconds)
        )
    return table


def _arm(step: RunningStep) -> str:
    return f"{step.arm} ({step.role})" if step.role not in ("", "treatment") else step.arm


def _level(step: RunningStep) -> str:
    if not step.arm:
        return "starts or stops"
    return step.load or "engine starts"
