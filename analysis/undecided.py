"""What a sweep leaves undecided, and the commands that would decide it."""

import shlex

from analysis.decision_words import words_again
from analysis.frame import Sweep
from analysis.rows import VerdictRow
from analysis.summary import Summary
from analysis.verdict import INVALID, UNDECIDED
from jobs.result import FAILED
from jobs.result import INVALID as INVALID_CELL


def undecided_rows(summary: Summary) -> list[VerdictRow]:
    """Return the rows without a verdict of arms that could be served.

    First those that fewest blocks would decide, last those without a valid pair. Out of memory is a loss.
    """
    rows = [
        row
        for row in summary.rows
        if row.verdict in (UNDECIDED, INVALID)
        and not (row.synthetic or row.counterfactual or row.oversubscribed or row.capacity_failure)
    ]
    return sorted(
        rows, key=lambda row: (row.verdict == INVALID, row.more_blocks is None, row.more_blocks or 0)
    )


def deciding_words(sweep: Sweep, summary: Summary) -> str:
    """Return the command with as many blocks as would decide the nearest undecided row; empty without one."""
    more = next((row.more_blocks for row in undecided_rows(summary)), None)
    if more is None:
        return ""
    blocks = max(row.blocks for row in summary.rows) + more
    return words_again(sweep.plan, f"design.blocks={blocks}")


def retry_words(sweep: Sweep) -> str:
    """Return the command that measures failed and invalid cells again; empty where there are none."""
    found = {cell.outcome for cell in sweep.results}
    outcomes = [outcome for outcome in (FAILED, INVALID_CELL) if outcome in found]
    plan = shlex.quote(f"{sweep.directory}/plan.json")
    return f"specload sweep --from {plan} --retry {','.join(outcomes)}" if outcomes else ""
