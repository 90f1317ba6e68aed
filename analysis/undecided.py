"""What a sweep leaves undecided, and the command that would decide the nearest of it."""

from analysis.decision_words import words_again
from analysis.frame import Sweep
from analysis.rows import VerdictRow
from analysis.summary import Summary
from analysis.verdict import UNDECIDED


def undecided_rows(summary: Summary) -> list[VerdictRow]:
    """Return the undecided rows of arms that could be served, those first that fewest blocks would decide."""
    rows = [
        row
        for row in summary.rows
        if row.verdict == UNDECIDED and not (row.synthetic or row.counterfactual or row.oversubscribed)
    ]
    return sorted(rows, key=lambda row: (row.more_blocks is None, row.more_blocks))


def deciding_words(sweep: Sweep, summary: Summary) -> str:
    """Return the command with as many blocks as would decide the nearest undecided row; empty without one."""
    more = next((row.more_blocks for row in undecided_rows(summary)), None)
    if more is None:
        return ""
    blocks = max(row.blocks for row in summary.rows) + more
    return words_again(sweep.plan, f"design.blocks={blocks}")
