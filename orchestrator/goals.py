"""What a sweep is to find: the objective of its verdicts, latencies to keep, the price of a GPU-hour."""

from collections.abc import Mapping
from typing import Any

from analysis.objectives import OBJECTIVES
from engines.nearest import did_you_mean
from jobs.slo import Slo
from orchestrator.errors import ConfigError


def slo_of(limits: Mapping[str, Any]) -> Slo:
    """Return the limits of `design.slo`.

    Raises:
        ConfigError: a limit that no latency can be held to.
    """
    try:
        return Slo(**limits)
    except ValueError as error:
        message = f"design.{error}"
        raise ConfigError(message) from error


def check_objective(name: str, slo: Slo) -> None:
    """Refuse an objective that is none, or that the design measures nothing of.

    Raises:
        ConfigError: the message names what can be chosen.
    """
    if name not in OBJECTIVES:
        guess = did_you_mean(name, OBJECTIVES)
        message = f"design.objective is {name!r}{guess}; choose one of {', '.join(OBJECTIVES)}"
        raise ConfigError(message)
    if OBJECTIVES[name].metric.startswith("slo/") and not slo.limits:
        message = (
            f"design.objective is {name}, which counts the requests within limits, and design.slo has none: "
            "set one, for instance design.slo.ttft_ms=500"
        )
        raise ConfigError(message)


def check_price(price: float | None) -> None:
    """Refuse a price that is not positive.

    Raises:
        ConfigError: names the key.
    """
    if price is not None and price <= 0:
        message = (
            f"design.gpu_hour_price is {price:g}; it is what a GPU-hour costs in design.currency: choose "
            "more than 0, or null to leave costs out"
        )
        raise ConfigError(message)


def check_confirm(blocks: int) -> None:
    """Refuse a number of fresh blocks that confirms nothing.

    Raises:
        ConfigError: names the key.
    """
    if blocks < 0 or blocks == 1:
        message = (
            f"design.confirm is {blocks}; it counts fresh blocks for the winner: choose 2 or more (one has "
            "no interval), or 0 for none"
        )
        raise ConfigError(message)
