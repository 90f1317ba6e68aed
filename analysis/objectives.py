"""What is compared between an arm and its baseline: name, metric, and which way is better."""

from dataclasses import dataclass

from engines.nearest import did_you_mean
from jobs.metric_names import METRICS


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """One quantity whose ratio to the baseline is formed."""

    name: str
    """Short name: the ratio is `ratio/<name>` wherever it is recorded."""
    metric: str
    """Name in `jobs.metric_names.METRICS`."""
    title: str
    """For tables and axes."""
    higher_is_better: bool = True
    optional: bool = False
    """Measured only where the sweep asks for it."""

    @property
    def definition(self) -> str:
        """Definition of the metric, with its unit."""
        return METRICS[self.metric]


OBJECTIVES: dict[str, Objective] = {
    objective.name: objective
    for objective in (
        Objective(name="total", metric="throughput/total_tok_s", title="total throughput"),
        Objective(name="computed", metric="throughput/computed_tok_s", title="computed throughput"),
        Objective(name="output", metric="throughput/output_tok_s", title="output throughput"),
        Objective(name="user_speed", metric="user/speed_tok_s", title="user speed"),
        Objective(name="goodput", metric="slo/goodput_req_s", title="goodput", optional=True),
        Objective(name="fixed_total", metric="fixed_work/total_tok_s", title="total throughput, fixed work"),
        Objective(name="ttft_p95", metric="latency/ttft_p95_ms", title="TTFT p95", higher_is_better=False),
        Objective(name="tpot_p95", metric="latency/tpot_p95_ms", title="TPOT p95", higher_is_better=False),
        Objective(name="e2el_p95", metric="latency/e2el_p95_ms", title="E2EL p95", higher_is_better=False),
    )
}
"""By name. The first is the default objective of the verdict."""

DEFAULT = "total"
CROSSOVERS = ("total", "computed", "output", "user_speed", "goodput")
"""Objectives whose crossover is looked for."""


def check_objective(name: str, *, error: type[ValueError] = ValueError) -> None:
    """Refuse a name that no objective has.

    Raises:
        ValueError: or `error`, of that family; names those that there are.
    """
    if name not in OBJECTIVES:
        guess = did_you_mean(name, OBJECTIVES)
        message = f"objective {name!r} is unknown{guess}; choose one of {', '.join(OBJECTIVES)}"
        raise error(message)
