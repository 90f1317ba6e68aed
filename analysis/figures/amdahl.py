"""What a faster decode is worth end to end: Amdahl's curves, with the decode shares of this sweep."""

from analysis.amdahl import MISSING
from analysis.arms import arm_facts
from analysis.figures.amdahl_numbers import Numbers
from analysis.figures.amdahl_plot import plot
from analysis.figures.chosen import chosen_arm
from analysis.figures.decode_share import shares_of
from analysis.figures.figure import Figure
from analysis.frame import Sweep
from analysis.ksweep import axis_of
from analysis.summary import Summary

READING = (
    "Bold, over a logarithmic axis: end-to-end speed-up G against decode speed-up x at the decode share "
    "measured without a drafter, its 95 % interval as a band, its cap 1/(1 - f) dotted; thin: other shares. "
    "All time but decode stays as it is here (`specload target` reckons with what each drafter did to it). "
    "The control marks what a target needs."
)


def amdahl(sweep: Sweep, summary: Summary) -> tuple[Figure, ...]:
    """Return the curves, for the chosen drafter's layout."""
    chosen = chosen_arm(sweep, summary)
    shares = shares_of(sweep, chosen)
    fact = None if chosen is None else arm_facts(sweep.cells, sweep.plan)[chosen]
    title = "How much faster end to end can a faster decode make it?"
    if not shares:
        return (Figure(name="amdahl", title=title, sections=("amdahl",), missing=MISSING),)
    numbers = Numbers(
        shares=tuple(shares),
        axis=axis_of(sweep),
        arm=fact.label if fact else "",
        k=fact.k if fact else 0,
        forced=fact is not None and fact.synthetic,
    )
    return (
        Figure(
            name="amdahl",
            title=title,
            plot=plot(numbers),
            finding=numbers.finding(),
            reading=READING + numbers.remarks(),
            sections=("amdahl",),
        ),
    )
