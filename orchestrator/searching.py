"""A search of levels as rounds of a sweep: from what the analysis asks for to blocks, and what it came to."""

from collections.abc import Sequence

from analysis.adaptive import Search, SearchState, choose, search_states
from analysis.frame import cells_frame
from jobs.result import SEARCH, CellResult
from orchestrator.confirming import Proposal
from orchestrator.plan import Plan
from orchestrator.rounds import Round
from orchestrator.search_blocks import round_blocks


def states(plan: Plan, results: Sequence[CellResult]) -> list[SearchState]:
    """Return how far the search of a plan is, arm by arm; nothing where it has none."""
    if plan.search is None or not results:
        return []
    search = Search(
        kind=plan.search.kind, width=plan.search.width, objective=plan.objective, limits=plan.slo.limits
    )
    return search_states(cells_frame(results), search)


def search_round(plan: Plan, rounds: Sequence[Round], results: Sequence[CellResult]) -> Proposal | None:
    """Return the round that the search asks for; None where it has ended, or its rounds are used up.

    One block of every slice that has an arm still open, with the baselines of its own around it.
    """
    if plan.search is None or sum(each.kind == SEARCH for each in rounds) >= plan.search.rounds:
        return None
    asked = choose(states(plan, results))
    if asked is None:
        return None
    blocks = round_blocks(plan, asked.arms, number=len(rounds) + 1)
    return Proposal(reason=f"searches. {asked.reason}", blocks=blocks)


def search_words(plan: Plan, rounds: Sequence[Round], results: Sequence[CellResult]) -> list[str]:
    """Return what a search came to, a sentence an arm, and why it went no further."""
    found = states(plan, results)
    told = [state.text for state in found]
    if plan.search is not None and any(state.bundle is not None for state in found):
        done = sum(each.kind == SEARCH for each in rounds)
        if done >= plan.search.rounds:
            told.append(
                f"load.search_rounds={plan.search.rounds} are used up; the same words with more of them go on"
            )
    return told
