"""The description of a sweep's run in MLflow: its verdicts as Markdown. Pure functions."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from analysis.axis import AXES, number
from analysis.objectives import OBJECTIVES
from analysis.untrusted import markdown
from orchestrator.plan import Plan

if TYPE_CHECKING:  # pandas and scipy take a second to load, and a sweep begins without them
    from analysis.rows import Ratio, VerdictRow
    from analysis.summary import Summary

LIMIT = 6000
"""Characters of a description: MLflow servers on MySQL or PostgreSQL keep 8000 of a tag."""


def sweep_note(plan: Plan, summary: "Summary | None" = None, chart: str = "") -> str:
    """Return the description of a sweep: what it found, what restricts that, and how it was asked for.

    Args:
        plan: the sweep.
        summary: what it says; None while it runs for the first time.
        chart: address of its chart in the same store.
    """
    parts = [f"[Chart: ratio against load by drafter]({chart})"] if chart else []
    if summary is None:
        parts.append("The verdicts stand here when the sweep has ended.")
    else:
        parts += _found(summary)
    asked = [*plan.notes, *plan.overrides]
    parts.append(_list("Asked for:", map(markdown, asked)))
    return shortened("\n\n".join(part for part in parts if part))


def shortened(text: str) -> str:
    """Return a description that a store keeps whole: a longer one ends at a line."""
    return text if len(text) <= LIMIT else f"{text[:LIMIT].rpartition(chr(10))[0]}\n\n... the report has all."


def _found(summary: "Summary") -> Iterable[str]:
    kinds = [name for name in ("emulated", "synthetic", "oversubscribed") if getattr(summary, name)]
    if kinds:
        yield f"**Some or all figures are {', '.join(kinds)}.**"
    axis = AXES[summary.axis]
    yield _list(f"Winners on {OBJECTIVES[summary.objective].title}:", _winners(summary)) or (
        f"No arm wins on {OBJECTIVES[summary.objective].title}."
    )
    where = [
        f"{markdown(row.label)}: {markdown(row.text)}"
        for row in summary.crossovers
        if row.objective == summary.objective
    ]
    yield _list(f"Crossover, the {axis.noun} where the ratio passes 1:", where)
    yield _list("Confirmation:", (markdown(found.text) for found in summary.confirmations))
    yield _list("Caveats:", map(markdown, summary.caveats))
    lines = [f"| arm | {axis.column} | ratio [95 %] | verdict |", "| --- | ---: | ---: | --- |"]
    for row in summary.rows:
        words = (markdown(row.label), number(row.level), _ratio(row.ratio(summary.objective)), row.verdict)
        lines.append(f"| {' | '.join(words)} |")
    if summary.rows:
        yield "\n".join(lines)


def _winners(summary: "Summary") -> Iterable[str]:
    """Say for each load level which arm is best of those that win and that somebody could serve with."""
    from analysis.verdict import WINS  # noqa: PLC0415 - scipy takes a second to load

    best: dict[float, tuple[float, VerdictRow]] = {}
    higher = OBJECTIVES[summary.objective].higher_is_better
    for row in summary.rows:
        ratio = row.ratio(summary.objective)
        if row.verdict != WINS or row.counterfactual or row.synthetic or ratio is None:
            continue
        gain = ratio.value if higher else 1.0 / ratio.value
        if row.level not in best or gain > best[row.level][0]:
            best[row.level] = (gain, row)
    for _, (_, row) in sorted(best.items()):
        yield f"{markdown(row.at)}: **{markdown(row.label)}**, {_ratio(row.ratio(summary.objective))}"


def _ratio(ratio: "Ratio | None") -> str:
    if ratio is None:
        return "-"
    if ratio.lo is None or ratio.hi is None:
        return f"{ratio.value:.2f}"
    return f"{ratio.value:.2f} \\[{ratio.lo:.2f}, {ratio.hi:.2f}\\]"


def _list(title: str, items: Iterable[str]) -> str:
    lines = [f"- {item}" for item in items]
    return "\n".join((title, "", *lines)) if lines else ""
