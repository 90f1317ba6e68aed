"""Size of the report of 2,000 cells, seconds to build it, and seconds until a browser has it open.

    python benchmarks/report_size.py
    python benchmarks/report_size.py --keep FOLDER      # keep the sweep and its report, and use them again
    python benchmarks/report_size.py --profile          # print also where the time of building goes

The sweep has layouts, drafters, draft lengths, load levels and blocks. It is read and its report is built in
a fresh process, imports included, as `specload report --no-pictures` does it. Headless Chromium then opens
the file: `open` ends when the load event is over and the figures on the first screen are drawn, `all drawn`
when every figure is, which the page does by and by. The last line is one line of JSON.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import BrowserType

LAYOUTS, TREATMENTS, LEVELS, BLOCKS = 4, 8, 5, 10
OPENINGS = 3
"""Times that the report is opened; the middle one counts."""
_READY = """() => performance.getEntriesByType('navigation')[0].loadEventEnd > 0
    && [...document.querySelectorAll('.plot')].every(graph => {
        const box = graph.getBoundingClientRect();
        const away = box.top > innerHeight || box.bottom < 0 || box.width === 0;
        return away || graph.querySelector('svg.main-svg');
    })"""
_DRAWN = """() => [...document.querySelectorAll('.plot')]
    .every(graph => graph.querySelector('svg.main-svg'))"""
_FACTS = """() => ({
    figures: document.querySelectorAll('.plot').length,
    elements: document.querySelectorAll('*').length,
    load_seconds: performance.getEntriesByType('navigation')[0].loadEventEnd / 1e3,
    paint_seconds: Math.max(0, ...performance.getEntriesByType('paint').map(entry => entry.startTime)) / 1e3,
})"""


def main() -> None:
    """Make the sweep, build its report, open it, print a table and the JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", type=Path, help="folder for the sweep; what is there is used again")
    parser.add_argument("--profile", action="store_true", help="print where the time of building goes")
    parser.add_argument("--build", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.build:
        print(json.dumps(build(arguments.build, profile=arguments.profile)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = (arguments.keep or Path(scratch)) / "report-of-2000"
        found = measure(folder, profile=arguments.profile)
    for name, value in found.items():
        print(f"{name:<16}{value:>12}")
    print(json.dumps({name: found[name] for name in ("report_mb", "open_seconds", "build_seconds")}))


def measure(folder: Path, *, profile: bool) -> dict[str, Any]:
    """Make the sweep if it is not there, build its report in a fresh process, and open it."""
    from made_sweep import Size, write_sweep  # noqa: PLC0415 - what is measured imports less

    if not folder.exists():
        size = Size(layouts=LAYOUTS, treatments=TREATMENTS, levels=LEVELS, blocks=BLOCKS)
        write_sweep(folder, size, requests=20)
    begun = time.monotonic()
    words = [sys.executable, __file__, "--build", str(folder), *(["--profile"] if profile else [])]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    built = time.monotonic() - begun
    *lines, last = done.stdout.splitlines()
    print("\n".join(lines))
    steps = json.loads(last)
    page = folder / "report.html"
    return {
        "cells": LAYOUTS * (2 + TREATMENTS) * LEVELS * BLOCKS,
        "report_mb": round(page.stat().st_size / 1e6, 2),
        "build_seconds": round(built, 2),
        **steps,
        **opened(page),
    }


def build(folder: Path, *, profile: bool) -> dict[str, float]:
    """Read the sweep and write its report; return the seconds of each step."""
    import cProfile  # noqa: PLC0415 - only where it is asked for, and measured like the rest
    import pstats  # noqa: PLC0415

    watch = cProfile.Profile()
    begun = time.monotonic()
    if profile:
        watch.enable()
    from analysis.frame import load_sweep  # noqa: PLC0415 - measured
    from analysis.report import write_report  # noqa: PLC0415
    from analysis.summary import summarise  # noqa: PLC0415

    imported = time.monotonic()
    sweep = load_sweep(folder)
    loaded = time.monotonic()
    summary = summarise(sweep.results, threshold=sweep.threshold)
    judged = time.monotonic()
    write_report(folder, plan=sweep.plan, results=sweep.results, summary=summary)
    written = time.monotonic()
    if profile:
        watch.disable()
        pstats.Stats(watch).sort_stats("cumulative").print_stats(70)
    return {
        "import_s": round(imported - begun, 2),
        "load_s": round(loaded - imported, 2),
        "summary_s": round(judged - loaded, 2),
        "report_s": round(written - judged, 2),
    }


def opened(page: Path) -> dict[str, Any]:
    """Open the report some times in a browser of its own each; return what the middle one took."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - the development extra

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as started:
        found = [_opened_once(page, started.chromium, chromium) for _ in range(OPENINGS)]
    return sorted(found, key=lambda entry: float(entry["open_seconds"]))[len(found) // 2]


def _opened_once(page: Path, browsers: "BrowserType", chromium: str | None) -> dict[str, Any]:
    """Open the report in a browser of its own and return what it took."""
    browser = browsers.launch(executable_path=chromium, args=["--no-sandbox"])
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    wrong: list[str] = []
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    begun = time.monotonic()
    tab.goto(page.absolute().as_uri(), wait_until="load")
    tab.wait_for_function(_READY)
    open_seconds = time.monotonic() - begun
    facts = tab.evaluate(_FACTS)
    tab.wait_for_function(_DRAWN)
    drawn = time.monotonic() - begun
    session = tab.context.new_cdp_session(tab)
    session.send("Performance.enable")
    figures = session.send("Performance.getMetrics")["metrics"]
    heap = next(entry["value"] for entry in figures if entry["name"] == "JSHeapUsedSize")
    assert not wrong, wrong
    browser.close()
    return {
        "open_seconds": round(open_seconds, 2),
        "load_event_s": round(facts["load_seconds"], 2),
        "paint_s": round(facts["paint_seconds"], 2),
        "all_drawn_s": round(drawn, 2),
        "heap_mb": round(heap / 1e6, 1),
        "figures": facts["figures"],
        "elements": facts["elements"],
    }


if __name__ == "__main__":
    main()
