"""The folder that `vllm bench sweep serve` writes: a result a run, under the names of its overrides.

    EXPERIMENT/SERVE--<server's overrides>-BENCH--<benchmark's overrides>/run=<n>.json
                                                                         /run=<n>.failure.json
                                                                         /warmup.json, summary.json

One server serves all runs of one set of its overrides, so runs beside each other are no replicates: how far
another start of the server would move them is not in them.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.others.run import OtherRun, Reading
from analysis.others.server import server_facts
from analysis.others.values import positive

TOOL = "vllm bench serve"
RUNS = ("run=*.json",)
"""Files of a folder that are runs; failures are among them."""
FAILURE_KEYS = frozenset({"run_number", "error_type", "error", "serve_overrides", "bench_overrides"})
_FOLDER = re.compile(r"SERVE--(?P<server>.*?)(?:-BENCH--.*)?$")


def place(path: Path) -> tuple[str, str]:
    """Return which start of a server a file's run used, and the name of the server's overrides.

    Both are empty where the file lies in no such folder.
    """
    if not path.name.startswith(("run=", "summary.json")):
        return "", ""
    found = _FOLDER.match(path.parent.name)
    if found:
        return str(path.parent.parent / found["server"]), found["server"]
    if path.parent.name.startswith("BENCH--"):
        return str(path.parent.parent), ""
    return "", ""


def matches(document: Mapping[str, Any]) -> bool:
    """Whether a JSON object tells of a run that failed."""
    return document.keys() >= FAILURE_KEYS


def read(document: Mapping[str, Any], source: str, path: Path) -> Reading:
    """Return the run that failed, at its load level where the overrides tell it."""
    server, bench = document["serve_overrides"], document["bench_overrides"]
    words = f"{document['error_type']}: {document['error']}"
    concurrency = positive(bench.get("max_concurrency", bench.get("max-concurrency")))
    rate = positive(bench.get("request_rate", bench.get("request-rate")))
    if concurrency is None and rate is None:
        return Reading(notes=(f"{source} left out: it failed ({words}), and does not tell at which load",))
    start, name = place(path)
    facts = server_facts({**server}, name or "-".join(f"{key}={value}" for key, value in server.items()))
    run = OtherRun(
        tool=TOOL,
        source=source,
        axis="rate" if rate is not None else "concurrency",
        level=rate if rate is not None else concurrency or 0.0,
        metrics={},
        start=start or source,
        drafter=facts.drafter,
        k=facts.k,
        layout=facts.layout,
        flags=facts.flags,
        requests=0,
        failed=0,
        failure=words,
    )
    return Reading(runs=(run,))
