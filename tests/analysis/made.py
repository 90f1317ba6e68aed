"""Sweeps made by hand: cells whose step time, tokens a step and other time are known, and hang together."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from analysis.frame import Sweep, cells_frame
from jobs.metric_names import METRICS
from jobs.result import CLOSING, MEASURED, OPENING, TREATMENT, CellResult

TOKENS, PROMPT = 100.0, 1000.0
"""Output and prompt tokens of every request."""
REQUESTS = 50.0


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One arm whose figures over the baseline's are known; a number stands for every level."""

    label: str
    drafter: str = "eagle3"
    k: int = 3
    layout: str = "tp1"
    tokens: float | Mapping[float, float] = 1.0
    step: float | Mapping[float, float] = 1.0
    other: float | Mapping[float, float] = 1.0
    """h: time outside decode."""
    uncached: float = 1.0
    """Uncached prompt tokens."""
    figures: Mapping[float, Mapping[str, float | None]] = field(default_factory=dict)
    """Level -> figures that stand as they are instead of what follows from the others."""
    ratios: Mapping[float, Mapping[str, float]] = field(default_factory=dict)
    """Level -> figures that are so many times the baseline's, likewise."""
    synthetic: bool = False
    requested: float | None = None
    counterfactual: str = ""
    kv_of: str = ""
    mal: float | None = None
    """Tokens a step where None."""

    @property
    def digest(self) -> str:
        return self.label.ljust(64, ".")


def made_results(
    arms: Sequence[Arm],
    *,
    levels: Sequence[float] = (4,),
    blocks: int = 1,
    share: float = 0.8,
    noise: float = 0.0,
    seed: int = 0,
    **changes: Any,
) -> list[CellResult]:
    """Return the cells: in each block the baseline opens and closes, the arms between."""
    generator = np.random.default_rng(seed)
    results = []
    for block in range(blocks):
        shift = math.exp(generator.normal(0.0, 0.1))
        for layout in dict.fromkeys(arm.layout for arm in arms):
            base = Arm(label=f"{layout}/none", drafter="none", k=0, layout=layout)
            own = [arm for arm in arms if arm.layout == layout]
            for arm, role in [(base, OPENING), *((arm, TREATMENT) for arm in own), (base, CLOSING)]:
                for level in levels:
                    plain = (10.0 + level / 2.0) * shift
                    figures = _figures(arm, level, plain, share, generator, noise)
                    results.append(_cell(arm, level, block, role, figures, changes))
    return results


def made_sweep(arms: Sequence[Arm], *, plan: Mapping[str, Any] | None = None, **changes: Any) -> Sweep:
    """Return `made_results` as a sweep that no folder holds."""
    results = made_results(arms, **changes)
    return Sweep(
        directory=Path("results/made"), plan=dict(plan or {}), cells=cells_frame(results), results=results
    )


def _at(value: float | Mapping[float, float], level: float) -> float:
    return value[level] if isinstance(value, Mapping) else value


def _figures(
    arm: Arm, level: float, plain: float, share: float, generator: np.random.Generator, noise: float
) -> dict[str, float | None]:
    def shaken() -> float:
        return math.exp(generator.normal(0.0, noise)) if noise else 1.0

    tokens, step = _at(arm.tokens, level), plain * _at(arm.step, level) * shaken()
    speed = 1000.0 * tokens / step * shaken()
    decode = TOKENS / (1000.0 / plain)
    rest = decode * (1.0 - share) / share * _at(arm.other, level) * shaken()
    latency = TOKENS / speed + rest
    fresh = 0.5 * PROMPT * arm.uncached
    figures: dict[str, float | None] = dict.fromkeys(METRICS)
    figures |= {
        "throughput/total_tok_s": level * (PROMPT + TOKENS) / latency * shaken(),
        "throughput/computed_tok_s": level * (fresh + TOKENS) / latency,
        "throughput/output_tok_s": level * TOKENS / latency,
        "user/speed_tok_s": speed,
        "latency/decode_share": TOKENS / speed / latency,
        "step/mean_ms": step,
        "spec/tokens_per_step": tokens if arm.k else 1.0,
        "spec/mal": (arm.mal or tokens) if arm.k else 1.0,
        "spec/requested_mal": arm.requested,
        "tokens/client_prompt": PROMPT * REQUESTS,
        "tokens/client_output": TOKENS * REQUESTS,
        "cache/client_cached_tokens": (PROMPT - fresh) * REQUESTS,
    }
    if level in arm.ratios:
        base = Arm(label="", drafter="none", k=0)
        known = _figures(base, level, plain, share, generator, 0.0)
        figures |= {name: (known[name] or 0.0) * ratio for name, ratio in arm.ratios[level].items()}
    return figures | arm.figures.get(level, {})


def _cell(
    arm: Arm,
    level: float,
    block: int,
    role: str,
    figures: Mapping[str, float | None],
    changes: Mapping[str, Any],
) -> CellResult:
    values: dict[str, Any] = {
        "cell": f"b{block}-{role}-{arm.label}-{level:g}".replace("/", "-"),
        "arm": arm.digest,
        "arm_label": arm.label,
        "layout": arm.layout,
        "drafter": arm.drafter,
        "k": arm.k,
        "concurrency": int(level),
        "block": block,
        "segment": 0,
        "role": role,
        "outcome": MEASURED,
        "emulated": False,
        "synthetic": arm.synthetic,
        "counterfactual": arm.counterfactual,
        "metrics": figures,
        "identity": {"kv_of": arm.kv_of or None},
    }
    return CellResult(**(values | changes))
