"""A generator of cell results with known truth: block effects, arm effects by level, noise."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from jobs.metric_names import METRICS
from jobs.result import CLOSING, MEASURED, OPENING, TREATMENT, CellResult


@dataclass(frozen=True, kw_only=True)
class TrueArm:
    """An arm whose true ratio to the baseline is known at every level."""

    label: str = "tp1/ngram-k3"
    layout: str = "tp1"
    drafter: str = "ngram"
    k: int = 3
    ratios: Mapping[int, float] = field(default_factory=lambda: {1: 1.5, 4: 1.2, 16: 0.8})
    speed: Mapping[int, float] = field(default_factory=dict)
    """True user-speed ratios; the throughput ratio where absent."""
    computed: Mapping[int, float] = field(default_factory=dict)
    mal: float = 2.4


def cell(**changes: Any) -> CellResult:
    """One cell with sensible defaults."""
    values: dict[str, Any] = {
        "arm": "a" * 64,
        "arm_label": "tp1/ngram-k3",
        "layout": "tp1",
        "drafter": "ngram",
        "k": 3,
        "concurrency": 4,
        "block": 0,
        "segment": 0,
        "role": TREATMENT,
        "outcome": MEASURED,
        "emulated": False,
        "metrics": metrics(100.0),
    }
    values |= changes
    values["level"] = values["concurrency"] if values["concurrency"] is not None else values["rate"]
    place = [values[key] for key in ("arm_label", "level", "block", "segment", "role")]
    del values["level"]
    values.setdefault("cell", "-".join(str(part).replace("/", "-") for part in place))
    return CellResult(**values)


def metrics(total: float, **changes: float | None) -> dict[str, float | None]:
    """All metrics, in proportion to the total throughput where that makes sense."""
    values: dict[str, float | None] = dict.fromkeys(METRICS, 1.0)
    for name in METRICS:
        if name.startswith(("throughput/", "fixed_work/")) and "seconds" not in name:
            values[name] = total
    values |= {name: None for name in METRICS if name.startswith("slo/")}  # without limits
    values["user/speed_tok_s"] = total / 10.0
    for name in ("ttft_p95", "tpot_p95", "e2el_p95"):
        values[f"latency/{name}_ms"] = 1e5 / total
    values["spec/mal"] = 1.0
    return values | changes


def sweep(
    arms: Sequence[TrueArm] = (TrueArm(),),
    *,
    levels: Sequence[int] = (1, 4, 16),
    axis: str = "concurrency",
    blocks: int = 3,
    noise: float = 0.0,
    start: float = 0.0,
    block_effect: float = 0.1,
    closing: bool = True,
    seed: int = 1,
    **changes: Any,
) -> list[CellResult]:
    """A whole sweep: every layout's baseline opens and closes each block.

    Standard deviations of log throughput: `noise` of a cell, `start` of an engine start (common to its
    levels), `block_effect` of a block.
    """
    generator = np.random.default_rng(seed)
    results = []
    for block in range(blocks):
        shift = generator.normal(0.0, block_effect)
        runs: list[tuple[str, TrueArm | None, str]] = []
        layouts = list(dict.fromkeys(arm.layout for arm in arms)) or ["tp1"]
        runs += [(layout, None, OPENING) for layout in layouts]
        runs += [(arm.layout, arm, TREATMENT) for arm in arms]
        runs += [(layout, None, CLOSING) for layout in layouts] if closing else []
        for layout, arm, role in runs:
            begun = generator.normal(0.0, start)
            for level in levels:
                base = 1000.0 * level**0.7 * math.exp(shift + begun + generator.normal(0.0, noise))
                ratio = arm.ratios[level] if arm else 1.0
                speed = arm.speed.get(level, ratio) if arm else 1.0
                computed = arm.computed.get(level, ratio) if arm else 1.0
                figures = metrics(
                    base * ratio,
                    **{
                        "user/speed_tok_s": base * speed / 10.0,
                        "throughput/computed_tok_s": base * computed,
                        "spec/mal": arm.mal if arm else 1.0,
                    },
                )
                results.append(
                    cell(
                        arm=f"{arm.label if arm else layout + '/none'}".ljust(64, "0"),
                        arm_label=arm.label if arm else f"{layout}/none",
                        layout=layout,
                        drafter=arm.drafter if arm else "none",
                        k=arm.k if arm else 0,
                        block=block,
                        role=role,
                        metrics=figures,
                        **{"concurrency": None, axis: level},
                        **changes,
                    )
                )
    return results


@pytest.fixture(scope="session")
def make_sweep() -> Callable[..., list[CellResult]]:
    return sweep


@pytest.fixture(scope="session")
def make_cell() -> Callable[..., CellResult]:
    return cell


@pytest.fixture(scope="session")
def true_arm() -> type[TrueArm]:
    return TrueArm
