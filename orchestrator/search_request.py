"""A search of levels as `load.search` asks for it: checked when the sweep is planned."""

from collections.abc import Iterable, Mapping
from typing import Any

from analysis.objectives import CROSSOVERS
from analysis.searches import CROSSOVER, SEARCHES, SLO
from engines.nearest import did_you_mean
from orchestrator.errors import ConfigError
from orchestrator.plan import Arm
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
