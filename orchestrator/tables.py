"""Tables for the terminal: the verdicts of a sweep, its crossovers, and whether its winner won again."""

from collections.abc import Iterable
from typing import IO, TYPE_CHECKING

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from analysis.axis import AXES, number
from analysis.banners import banners
from analysis.objectives import OBJECTIVES
from analysis.untrusted import plain
from jobs.nouns import counted

if TYPE_CHECKING:  # scipy and pandas take seconds to load
    from analysis.rows import Ratio, VerdictRow
    from analysis.summary import Summary

_PIPE_WIDTH = 190
_STYLES = {"wins": "bold green", "loses": "bold red", "invalid": "yellow"}


class PlainConsole(Console):
    """A console that shows text of others as text: no markup, no emoji, nothing that steers a terminal."""

    def __init__(
        self, *, file: IO[str] | None = None, width: int | None = None, stderr: bool = False
    ) -> None:
        super().__init__(file=file, width=width, stderr=stderr, highlight=False, markup=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render anything, its text made plain; what rich itself sends to the terminal stays."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=plain(segment.text, lines=True))

    def on_broken_pipe(self) -> None:
        """Leave it to the command line, for which a reader that left is no error (rich would exit with 1)."""
        raise BrokenPipeError


def console(*, stderr: bool = False, width: int = _PIPE_WIDTH) -> PlainConsole:
    """Return the console of a command; wide in a file or a pipe, so that no cell of a table is folded."""
    found = PlainConsole(stderr=stderr)
    return found if found.is_terminal else PlainConsole(width=width, stderr=stderr)


def verdict_table(summary: "Summary") -> RenderableType:
    """Return one row per arm and load level, under a banner of what the figures are."""
    shared = "the same layout" if summary.unpaired else "the same layout and block"
    table = Table(
        title=f"Ratio to the baseline of {shared}; verdict on {OBJECTIVES[summary.objective].title}"
    )
    for name in (
        "arm",
        AXES[summary.axis].column,
        "total",
        "computed",
        "output",
        "user speed",
        "TTFT p95",
        "E2EL p95",
        "MAL",
        "verdict",
    ):
        table.add_column(name, justify="left" if name in ("arm", "verdict") else "right")
    last = ""
    for row in summary.rows:
        if last and row.label != last:
            table.add_section()
        last = row.label
        ratios = (row.total, row.computed, row.output, row.user_speed, row.ttft_p95, row.e2el_p95)
        table.add_row(
            Text(row.label),
            number(row.level),
            *(ratio_text(ratio) for ratio in ratios),
            "-" if row.mal is None else f"{row.mal:.2f}",
            _verdict(row),
        )
    parts: list[RenderableType] = [*_banners(summary)]
    parts.append(table if summary.rows else Text("No treatment has a result yet."))
    parts += [*_reasons(summary), *_confirmations(summary), *_outcomes(summary)]
    return Group(*parts)


def crossover_lines(summary: "Summary") -> RenderableType:
    """Return where each arm's total, computed and output throughput and user speed pass 1."""
    table = Table(title=f"Crossover: the {AXES[summary.axis].noun} where the ratio passes 1", show_edge=False)
    for name in ("arm", "of", "where"):
        table.add_column(name)
    for row in summary.crossovers:
        table.add_row(Text(row.label), row.objective.replace("_", " "), Text(row.text))
    return table


def ratio_text(ratio: "Ratio | None") -> str:
    """Return `1.53 [1.48, 1.59]`, without an interval where there is none."""
    if ratio is None:
        return "-"
    if ratio.lo is None or ratio.hi is None:
        return f"{ratio.value:.2f}"
    return f"{ratio.value:.2f} [{ratio.lo:.2f}, {ratio.hi:.2f}]"


def _verdict(row: "VerdictRow") -> Text:
    words = row.verdict
    if row.more_blocks:
        unit = "run" if row.unpaired else "block"
        words += f" ({counted(row.more_blocks, f'more {unit}')})"
    text = Text(words, style=_STYLES.get(row.verdict, ""))
    if row.oversubscribed:
        text.append(" oversubscribed", style="yellow")
    return text


def _reasons(summary: "Summary") -> list[Text]:
    """Return why each invalid row is so, a line each: in the table they would squeeze the figures."""
    return [
        Text(f"{row.label} {row.at}: {row.reason}")
        for row in summary.rows
        if row.verdict == "invalid" or (row.unpaired and row.verdict == "undecided" and not row.more_blocks)
    ]


def _confirmations(summary: "Summary") -> list[Text]:
    """Return what the fresh blocks of each winner say: they decide, as they did not pick it."""
    return [
        Text(found.text, style=_STYLES["wins" if found.confirmed else "invalid"])
        for found in summary.confirmations
    ]


def _banners(summary: "Summary") -> list[Text]:
    return [Text(f"{name}: {told}.", style="bold yellow") for name, told in banners(summary)]


def _outcomes(summary: "Summary") -> list[Text]:
    counts = ", ".join(f"{count} {outcome}" for outcome, count in summary.outcomes.items() if count)
    return [Text(f"cells: {counts or 'none'}"), *(Text(f"caveat: {caveat}") for caveat in summary.caveats)]
