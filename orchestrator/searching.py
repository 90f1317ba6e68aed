"""A search of levels as rounds of a sweep: from what the analysis asks for to blocks, and at what cost."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from analysis.adaptive import CROSSOVER, SEARCHES, SLO, Search, SearchState, choose, search_states
from analysis.bundles import LARGEST
from analysis.frame import cells_frame
from analysis.objectives import CROSSOVERS
from engines.digest import seed_of
from engines.nearest import did_you_mean
from jobs.result import SEARCH, CellResult
from orchestrator.blocks import schedule
from orchestrator.confirming import Proposal
from orchestrator.errors import ConfigError
from orchestrator.levels import ascending, level_at
from orchestrator.plan import Arm, Block, Plan
from orchestrator.rounds import Round
from orchestrator.search_plan import SearchPlan

LEAST_BLOCKS, LEAST_LEVELS = 2, 2


def search_plan(load: Mapping[str, Any], design: Mapping[str, Any]) -> SearchPlan | None:
    """Return the search that the groups `load` and `design` ask for; None where they ask for none.

    Raises:
        ConfigError: an unknown kind, or a design that it cannot go by; the message names the key.
    """
    kind = load["search"]
    if kind is None:
        return None
    if kind not in SEARCHES:
        guess = did_you_mean(kind, SEARCHES)
        message = (
            f"load.search is {kind!r}{guess}; choose {' or '.join(SEARCHES)}, or null for the levels as given"
        )
        raise ConfigError(message)
    if load["search_width"] <= 1.0 or load["search_rounds"] < 1:
        message = (
            f"load.search_width={load['search_width']:g} is the upper over the lower end of the interval at "
            f"which a search ends: choose more than 1, such as 1.25; load.search_rounds="
            f"{load['search_rounds']} counts its rounds: choose 1 or more"
        )
        raise ConfigError(message)
    if design["blocks"] < LEAST_BLOCKS:
        message = (
            f"load.search={kind} places levels by the noise between blocks, and design.blocks is "
            f"{design['blocks']}: choose {LEAST_BLOCKS} or more"
        )
        raise ConfigError(message)
    if kind == CROSSOVER and design["objective"] not in CROSSOVERS:
        message = (
            f"load.search=crossover looks for the crossover of design.objective, and "
            f"{design['objective']} has none: choose one of {', '.join(CROSSOVERS)}"
        )
        raise ConfigError(message)
    if kind == SLO and not any(limit is not None for limit in design["slo"].values()):
        message = (
            "load.search=slo looks for the largest level within design.slo, which has no limit: set one, for "
            "instance design.slo.ttft_ms=500"
        )
        raise ConfigError(message)
    return SearchPlan(kind=kind, width=float(load["search_width"]), rounds=load["search_rounds"])


def check_range(search: SearchPlan | None, arms: Iterable[Arm]) -> None:
    """Refuse a search without a range to search in.

    Raises:
        ConfigError: names the arm.
    """
    for arm in arms if search is not None else ():
        if len(arm.levels) < LEAST_LEVELS:
            message = (
                f"load.search looks between the lowest and the highest level given, and {arm.label} has one "
                f"({arm.levels[0].label}): give a coarse list of them, such as load.concurrency=[1,8,64]"
            )
            raise ConfigError(message)


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
    blocks = _blocks(plan, asked.arms, number=len(rounds) + 1)
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


def worst_round(plan: Plan) -> tuple[Block, ...]:
    """Return the largest round that a search may ask for; nothing where the plan has none."""
    if plan.search is None:
        return ()
    levels = {
        arm.digest: tuple(level.value for level in arm.levels[-LARGEST:])
        for arm in plan.arms
        if not arm.config.counterfactual and not arm.is_baseline
    }
    if plan.search.kind == SLO:
        levels |= {
            arm.digest: tuple(level.value for level in arm.levels[-LARGEST:])
            for arm in plan.arms
            if arm.is_baseline
        }
    return _blocks(plan, levels, number=1)


def _blocks(plan: Plan, levels: Mapping[str, Sequence[float]], *, number: int) -> tuple[Block, ...]:
    """Return one block a slice; indices and round are given when they are appended."""
    slices: dict[frozenset[str], Block] = {}
    for block in plan.blocks:
        slices.setdefault(frozenset(run.arm for run in block.runs), block)
    found = []
    for there, planned in slices.items():
        own = [_at(plan.arm(arm), levels[arm]) for arm in sorted(there & levels.keys())]
        if not own:
            continue
        seed = seed_of(plan.seed, "search", number, planned.index)
        (block,) = schedule([*_baselines(plan, own), *_treatments(own)], blocks=1, seed=seed)
        found.append(replace(block, devices=planned.devices))
    return tuple(found)


def _at(arm: Arm, levels: Sequence[float]) -> Arm:
    return replace(arm, levels=ascending({level_at(arm.levels[0], level) for level in levels}))


def _treatments(arms: Sequence[Arm]) -> list[Arm]:
    return [arm for arm in arms if not arm.is_baseline]


def _baselines(plan: Plan, arms: Sequence[Arm]) -> list[Arm]:
    """Return the baseline of every pair, at all levels of its arms."""
    pairs = {arm.pair_key: arm for arm in plan.arms if arm.is_baseline}
    wanted: dict[str, set[Any]] = {}
    for arm in arms:
        wanted.setdefault(arm.pair_key, set()).update(arm.levels)
    return [replace(pairs[pair], levels=ascending(levels)) for pair, levels in wanted.items()]
