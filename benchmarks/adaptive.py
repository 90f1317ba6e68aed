"""What an adaptive search of a crossover costs against the full grid, for the same width of the interval.

    python benchmarks/adaptive.py [--seeds 40] [--jobs 2]

Sweeps of known truth (`truth.py`, whose process is not the analysis's model): one arm, an engine start of
120 s, a cell of 180 s. The full grid is 8 levels x 6 blocks; the width that its interval reaches is the width
the search is told to reach on the same truth, from a coarse grid of 4 levels x 2 blocks on. A round is what
`analysis.adaptive.next_level` says, judged by the same analysis as a sweep of the product. Where the search
takes more than the full grid it stops, and counts as it stands.

Also shown: how often the interval at the end holds the true crossover. Levels that were chosen by what was
seen, and a search that stops when its interval is narrow, could make it hold less often than 95 %.

The last line is JSON; `gpu_time_share` is the median over all truths, noises and seeds.
"""

import argparse
import itertools
import json
import math
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from coverage import holds, seed_of
from truth import Curve, Nature, falling, first_fall, flat, humped, roofline, simulate

from analysis.adaptive import OPEN, Search, SearchState, choose, search_states
from analysis.objectives import OBJECTIVES
from analysis.searches import CROSSOVER
from jobs.result import CLOSING, MEASURED, OPENING, PLANNED, SEARCH, TREATMENT

START, CELL = 120.0, 180.0
FULL, FULL_BLOCKS = (1, 2, 4, 8, 16, 32, 64, 128), 6
COARSE, COARSE_BLOCKS = (1, 5, 25, 128), 2
NOISE = (0.01, 0.02, 0.04)
NATURE = Nature(name="search", start=0.5, walk=0.5, tails=5.0)
TRUTHS: dict[str, Curve] = {
    "falling": falling(1.3, 0.85, 10.0),
    "steep": falling(1.3, 0.85, 12.0, 4.0),
    "late": falling(1.3, 0.85, 60.0),
    "roofline": roofline(2.0, 4, 0.1, 90.0),
    "up, then down": humped(0.85, 1.3, 8.0, 1.5),
    "never": flat(1.15),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One truth under one noise, searched once."""

    truth: str
    noise: float
    seed: int
    full_width: float = math.nan
    """Upper over lower end that the full grid reaches."""
    width: float = math.nan
    """That of the search."""
    share: float = math.nan
    """Its GPU time over the full grid's."""
    rounds: int = 0
    reached: bool = False
    """Whether the search ended by itself within the full grid's time."""
    holds: bool = False
    """Whether its interval holds the truth."""
    full_holds: bool = False


def main() -> int:
    """Run all, print the table and, last, one line of JSON."""
    parser = argparse.ArgumentParser(description="GPU time of an adaptive search against the full grid")
    parser.add_argument("--seeds", type=int, default=40, help="searches of each truth and noise")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    cases = [
        Run(truth=truth, noise=noise, seed=seed)
        for truth, noise, seed in itertools.product(TRUTHS, NOISE, range(options.seeds))
    ]
    with ProcessPoolExecutor(options.jobs) as pool:
        runs = list(pool.map(search, cases, chunksize=4))
    print(f"{'truth':16}{'noise':>7}{'full width':>12}{'width':>8}{'rounds':>8}{'reached':>9}"
          f"{'GPU time':>10}{'holds':>8}{'full holds':>12}")  # fmt: skip
    for truth, noise in itertools.product(TRUTHS, NOISE):
        own = [run for run in runs if (run.truth, run.noise) == (truth, noise)]
        print(
            f"{truth:16}{noise:7.1%}{middle([run.full_width for run in own]):12.2f}"
            f"{middle([run.width for run in own]):8.2f}{middle([run.rounds for run in own]):8.0f}"
            f"{np.mean([run.reached for run in own]):9.2f}{middle([run.share for run in own]):10.2f}"
            f"{np.mean([run.holds for run in own]):8.2f}{np.mean([run.full_holds for run in own]):12.2f}"
        )
    found = {
        "gpu_time_share": round(middle([run.share for run in runs]), 4),
        "reached": round(float(np.mean([run.reached for run in runs])), 4),
        "coverage": round(float(np.mean([run.holds for run in runs])), 4),
        "full_coverage": round(float(np.mean([run.full_holds for run in runs])), 4),
        "searches": len(runs),
    }
    print(json.dumps(found))
    return int(found["gpu_time_share"] >= 0.4 or found["coverage"] < 0.9)


def search(case: Run) -> Run:
    """Measure the full grid once, and search for the crossover to the width that it reached."""
    curve, nature = TRUTHS[case.truth], replace(NATURE, noise=case.noise)
    truth = first_fall(curve, COARSE[0], COARSE[-1])
    level = COARSE[-1] * 2.0 if truth is None else truth
    seed = seed_of("adaptive", case.truth, case.noise, case.seed)
    full = cells_of(nature, curve, FULL, range(FULL_BLOCKS), seed)
    whole = state(full, width=1.0001)
    goal = max(1.02, whole.width)
    cells = cells_of(nature, curve, COARSE, range(COARSE_BLOCKS), seed + 1)
    rounds = 0
    found = state(cells, width=goal)
    while (asked := choose([found])) is not None and seconds(cells) < seconds(full):
        rounds += 1
        block = COARSE_BLOCKS + rounds - 1
        fresh = cells_of(nature, curve, asked.levels, [block], seed + 1 + rounds, kind=SEARCH)
        cells = pd.concat([cells, fresh], ignore_index=True)
        found = state(cells, width=goal)
    return replace(
        case,
        full_width=whole.width,
        width=found.width,
        share=seconds(cells) / seconds(full),
        rounds=rounds,
        reached=found.status != OPEN and found.width <= goal * 1.0001,
        holds=holds(found.crossover, level, found.curve.levels),
        full_holds=holds(whole.crossover, level, FULL),
    )


def state(cells: pd.DataFrame, width: float) -> SearchState:
    """Return how far the search is: what the product would say of these cells."""
    (found,) = search_states(cells, Search(kind=CROSSOVER, width=width))
    return found


def seconds(cells: pd.DataFrame) -> float:
    """Return the time of all engine starts and cells."""
    return float(cells["seconds"].sum() + cells["start_seconds"].sum())


def cells_of(
    nature: Nature,
    curve: Curve,
    levels: Sequence[float],
    blocks: Sequence[int],
    seed: int,
    kind: str = PLANNED,
) -> pd.DataFrame:
    """Return simulated blocks as the columns of `cells_frame` that the analysis reads."""
    grid = sorted({1.0, *levels})  # the noise of a level counts from the lowest, measured here or not
    draws = simulate(nature, [curve], grid, len(blocks), 1, seed)
    rows = []
    for run, (arm, block) in enumerate(zip(draws.arms, draws.blocks, strict=True)):
        role = TREATMENT if arm >= 0 else CLOSING if draws.closing[run] else OPENING
        for place, level in enumerate(sorted(float(own) for own in levels)):
            rows.append(
                {
                    "cell": f"{block}-{run}-{level:g}",
                    "arm": "arm" if arm >= 0 else "base",
                    "label": "tp1/arm" if arm >= 0 else "tp1/none",
                    "pair": "pair",
                    "axis": "concurrency",
                    "level": level,
                    "block": blocks[int(block)],
                    "segment": 0,
                    "kind": kind,
                    "role": role,
                    "outcome": MEASURED,
                    "cause": None,
                    "counterfactual": "",
                    "oversubscribed": False,
                    "seconds": CELL,
                    "start_seconds": START if place == 0 else math.nan,
                    OBJECTIVES["total"].metric: math.exp(draws.logs[run, grid.index(level), 0]),
                }
            )
    empty = {objective.metric: math.nan for objective in OBJECTIVES.values() if objective.name != "total"}
    return pd.DataFrame(rows).assign(**empty)


def middle(values: Sequence[float]) -> float:
    """Return the median."""
    return float(np.median(values))


if __name__ == "__main__":
    sys.exit(main())
