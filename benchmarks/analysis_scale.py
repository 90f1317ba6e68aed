"""Seconds and memory of the whole analysis of 10,000 cells with a million requests, and how both grow.

    python benchmarks/analysis_scale.py
    python benchmarks/analysis_scale.py --keep FOLDER      # keep what was made, and use it again

Each size is analysed in a fresh process: the folder is read, then verdicts and crossovers, then every section
(of which `conversations` reads the requests of all cells). That is the time that counts; what a notebook
takes to read all columns of all requests stands beside it, and in the peak of memory. The last line is one
line of JSON.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SIZES = ("small", "large")


def main() -> None:
    """Make the sweeps, analyse each in a process of its own, print a table and the JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", type=Path, help="folder for the sweeps; what is there is used again")
    parser.add_argument("--analyse", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.analyse:
        print(json.dumps(analyse(arguments.analyse)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        found = {name: measure((arguments.keep or Path(scratch)) / name, name) for name in SIZES}
    steps = list(found["large"]["steps"])
    print(f"{'step':<16}" + "".join(f"{found[name]['cells']:>10} cells" for name in SIZES))
    for step in steps:
        print(f"{step:<16}" + "".join(f"{found[name]['steps'].get(step, 0.0):>14.2f} s" for name in SIZES))
    for figure, unit in (("seconds", "s"), ("cpu_seconds", "s"), ("peak_gib", "GiB")):
        print(f"{figure:<16}" + "".join(f"{found[name][figure]:>14.2f} {unit}" for name in SIZES))
    print(
        json.dumps(
            {
                "seconds_10k_cells": round(found["large"]["seconds"], 2),
                "peak_gib": round(found["large"]["peak_gib"], 3),
                "growth_1k_to_10k": round(found["large"]["seconds"] / found["small"]["seconds"], 2),
                "cpu_seconds_10k_cells": round(found["large"]["cpu_seconds"], 2),
                "cells": found["large"]["cells"],
                "requests": found["large"]["requests"],
            }
        )
    )


def measure(folder: Path, size: str) -> dict[str, Any]:
    """Make a sweep if it is not there, and analyse it in a fresh process."""
    from made_sweep import LARGE, SMALL, write_sweep  # noqa: PLC0415 - what is measured imports less

    if not folder.exists():
        begun = time.monotonic()
        write_sweep(folder, {"small": SMALL, "large": LARGE}[size])
        print(f"made {folder.name} in {time.monotonic() - begun:.0f} s", flush=True)
    command = [sys.executable, __file__, "--analyse", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def analyse(folder: Path) -> dict[str, Any]:
    """Run the whole analysis of a folder; return seconds by step, the peak of memory and the sizes."""
    steps: dict[str, float] = {}

    @contextmanager
    def step(name: str) -> Iterator[None]:
        begun = time.monotonic()
        yield
        steps[name] = time.monotonic() - begun

    with step("import"):
        from analysis import load_sweep  # noqa: PLC0415 - measured
        from analysis.sections import SECTIONS  # noqa: PLC0415
        from analysis.summary import summarise  # noqa: PLC0415
    with step("load"):
        sweep = load_sweep(folder)
    with step("summary"):
        summary = summarise(sweep.results, threshold=0.02)
    sections: dict[str, Callable[..., Any]] = SECTIONS
    for name, make in sections.items():
        with step(name):
            make(sweep)
    total = sum(steps.values())
    spent = time.process_time()
    with step("(all columns)"):
        rows = len(sweep.requests())
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "cells": len(sweep.cells),
        "requests": rows,
        "verdicts": len(summary.rows),
        "steps": steps,
        "seconds": total,
        "cpu_seconds": spent,
        "peak_gib": usage.ru_maxrss / 2**20,
    }


if __name__ == "__main__":
    main()
