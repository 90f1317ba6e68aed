"""A sweep's folder with as many cells as wanted, written with the product's own writers.

Layouts of different size share slices of 4 devices. Throughput, user speed, acceptance, step times and the
other metrics follow from a simple model of a decode step, so that curves cross and every section has its say;
blocks, engine starts and cells have noise.
"""

import itertools
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jobs.metric_names import METRICS
from jobs.replay.data import ReplayData
from jobs.replay.job import ReplaySummary, RequestRecord, Speculation
from jobs.result import CLOSING, MEASURED, OPENING, TREATMENT, CellResult, Gate
from jobs.rows import requests_parquet
from orchestrator.durable import to_json

SLICE = 4
LAYOUTS = ("tp1", "tp2", "tp4", "dp2", "tp2-dp2")
TREATMENTS = tuple((drafter, k) for drafter in ("eagle3", "ngram") for k in (1, 3, 5, 7))
LEVELS = (1, 2, 4, 8, 16, 32, 64, 128)
ALPHA = {"eagle3": 0.78, "ngram": 0.60}
REPLAYS = 4
"""Different files of requests a level and K."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much of each there is; every block has all arms at all levels."""

    layouts: int
    treatments: int
    """Of each layout, beside its baseline."""
    levels: int
    blocks: int

    @property
    def cells(self) -> int:
        """Cells of the sweep: a baseline is measured twice a block."""
        return self.layouts * (2 + self.treatments) * self.levels * self.blocks


SMALL = Size(layouts=5, treatments=3, levels=5, blocks=8)
"""1,000 cells."""
LARGE = Size(layouts=5, treatments=8, levels=8, blocks=25)
"""10,000 cells."""


def write_sweep(root: Path, size: Size, *, requests: int = 100, noise: float = 0.01, seed: int = 0) -> Path:
    """Write `plan.json` and all cells under `root`, `requests` rows each; return the folder."""
    generator = np.random.default_rng(seed)
    root.mkdir(parents=True)
    plan = {"sweep": root.name, "name": root.name, "threshold": 0.02, "objective": "total"}
    plan |= {
        "slo": {"ttft_ms": 400.0, "tpot_ms": None, "e2el_ms": None},
        "gpu_hour_price": 2.5,
        "currency": "USD",
    }
    (root / "plan.json").write_bytes(to_json(plan | {"arms": [], "blocks": []}))
    replays: dict[tuple[int, int, int], bytes] = {}
    for block in range(size.blocks):
        shift = float(generator.normal(0.0, 0.1))
        for run, (layout, drafter, k, role) in enumerate(_runs(size)):
            start = float(generator.normal(0.0, noise / 2))
            for level in LEVELS[: size.levels]:
                luck = shift + start + float(generator.normal(0.0, noise))
                cell = _cell(layout, drafter, k, role, level, block, luck)
                folder = root / "cells" / cell.cell
                folder.mkdir(parents=True)
                (folder / "result.json").write_bytes(to_json(cell.to_dict()))
                variant = (level, k, run % REPLAYS)
                if variant not in replays:
                    replays[variant] = requests_parquet(_replay(cell, requests, generator))
                (folder / "requests.parquet").write_bytes(replays[variant])
    return root


def _runs(size: Size) -> list[tuple[str, str, int, str]]:
    layouts = LAYOUTS[: size.layouts]
    treatments = list(itertools.product(layouts, TREATMENTS[: size.treatments]))
    return [
        *((layout, "none", 0, OPENING) for layout in layouts),
        *((layout, drafter, k, TREATMENT) for layout, (drafter, k) in treatments),
        *((layout, "none", 0, CLOSING) for layout in layouts),
    ]


def _cell(layout: str, drafter: str, k: int, role: str, level: int, block: int, luck: float) -> CellResult:
    label = f"{layout}/none" if k == 0 else f"{layout}/{drafter}-k{k}"
    pair = layout.ljust(64, "0")
    gates = tuple(
        Gate(name=name, passed=True, message=f"0 of {level} is within what is allowed", value=0.0, limit=0.1)
        for name in (
            "request_errors",
            "occupancy",
            "loop_lag",
            "cold_cache",
            "identity",
            "equal_work",
            "tokens",
        )
    )
    return CellResult(
        cell=f"b{block}-s0-{role}-{label.replace('/', '-')}-c{level}",
        arm=label.replace("/", "-").ljust(64, "0"),
        arm_label=label,
        layout=layout,
        drafter=drafter,
        k=k,
        concurrency=level,
        block=block,
        segment=0,
        role=role,
        outcome=MEASURED,
        emulated=False,
        devices=SLICE,
        replicas=SLICE // math.prod(int(part[2:]) for part in layout.split("-")),
        factors={"layout": layout, "drafter": drafter, "drafter.k": str(k)},
        metrics=_metrics(layout, drafter, k, level, luck),
        gates=gates,
        identity={
            "pair_key": pair,
            "model": "made-up",
            "engine_version": "0",
            "host": "node",
            "validity": "recorded",
        },
        seconds=180.0,
        start_seconds=120.0 if level == 1 else None,
    )


def _metrics(layout: str, drafter: str, k: int, level: int, luck: float) -> dict[str, float | None]:
    alpha = ALPHA.get(drafter, 0.0)
    lengths = [alpha**place for place in range(k + 1)]
    mal = sum(lengths)
    tp = {"tp1": 1.0, "tp2": 0.62, "tp4": 0.42}.get(layout, 0.75)
    busy = level / 24.0
    base = 8.0 * tp * (1.0 + 0.4 * busy)
    step = base * (1.0 + 0.03 * (k > 0) + k * (0.02 + 0.12 * busy / (1.0 + busy)))
    speed = 1000.0 * mal / step * math.exp(luck)
    output = speed * level * 0.8
    found: dict[str, float | None] = dict.fromkeys(METRICS, 1.0)
    for name, share in (("total", 6.0), ("computed", 2.0), ("output", 1.0)):
        found[f"throughput/{name}_tok_s"] = found[f"fixed_work/{name}_tok_s"] = output * share
    found |= {
        "throughput/total_tok_s_per_device": output * 6.0 / SLICE,
        "throughput/output_tok_s_per_device": output / SLICE,
        "user/speed_tok_s": speed,
        "step/mean_ms": step * math.exp(-luck),
        "latency/decode_share": 0.83,
        "spec/mal": mal,
        "spec/tokens_per_step": mal,
        "spec/drafts": 1e4 if k else 0.0,
        "spec/requested_mal": None,
        "kv/capacity_tokens": 4e5 / tp,
        "cache/hit_rate": 0.7,
        "slo/goodput_share": 0.9,
        "slo/goodput_req_s": output / 300.0,
        **{f"latency/{name}_p95_ms": 1e5 / speed for name in ("ttft", "tpot", "e2el")},
        **{f"spec/acceptance_pos_{place}": alpha**place for place in range(1, k + 1)},
        **{f"spec/conditional_pos_{place}": alpha for place in range(1, k + 1)},
        **{name: speed for name in METRICS if name.startswith(("context/speed", "turn/speed"))},
        **{name: mal for name in METRICS if name.startswith(("context/mal", "context/tokens"))},
    }
    return found


def _replay(cell: CellResult, count: int, generator: np.random.Generator) -> ReplayData:
    """Return the records of conversations of four turns that the users of a level take one after another."""
    step = int(1e6 * float(cell.metrics["step/mean_ms"] or 1.0))
    mal = float(cell.metrics["spec/mal"] or 1.0)
    records = []
    for number in range(count):
        tokens = int(generator.integers(100, 400))
        steps = math.ceil(tokens / mal)
        begun = number * steps * step // max(1, int(cell.level))
        first = begun + int(generator.lognormal(18.0, 0.3))
        last = first + int(steps * step * generator.lognormal(0.0, 0.05))
        drafted = Speculation(steps=steps, drafted=steps * cell.k, accepted=max(0, tokens - steps))
        records.append(
            RequestRecord(
                conversation=f"conversation-{number // 4:04d}",
                epoch=0,
                turn=number % 4,
                user=number % int(cell.level),
                replica=0,
                scheduled=begun,
                dispatched=begun,
                send_lag=200_000,
                first=first,
                last=last,
                ended=last,
                prompt_tokens=1000,
                cached_tokens=700,
                completion_tokens=tokens,
                first_tokens=1,
                expected_prompt_tokens=1000,
                expected_tokens=tokens,
                chunks=steps,
                chunk_offset=0,
                finish_reason="length",
                error=None,
                speculation=drafted if cell.k else None,
            )
        )
    ends = max(record.ended for record in records)
    summary = ReplaySummary(
        started=0,
        ended=ends,
        window_start=ends // 10,
        window_end=ends * 9 // 10,
        loop_lag_p99_ms=1.0,
        send_lag_p99_ms=1.0,
        cpu_seconds=1.0,
        cpu_share=0.1,
        peak_rss_mib=50.0,
        processes=1,
        cap_waits=0,
        requests=count,
        errors=0,
    )
    return ReplayData(
        summary=summary, requests=tuple(records), chunks=np.empty(0), concurrency=int(cell.level)
    )
