"""Reports of GuideLLM: `benchmarks.json`, one run a benchmark in it.

Counting, by its source (0.3, 0.5 and 0.8 have the same metrics) and by runs of 0.8: token rates are averages
over the measured window, requests that failed or were cut off included; tokens are the server's where its
usage tells them; a prompt, cached or not, counts when its first token comes; "time per output token" divides
the *whole* latency by all tokens, so it is not this program's TPOT: its "inter token latency" is, (last -
first) / (n - 1) of a request, each request weighing n - 1 in mean and percentiles. Their mean is then the
pooled decode time of a token, and its inverse the user speed. Percentiles are steps of the cumulative
distribution.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.others.requests import FIRST_IS_ONE, few
from analysis.others.run import OtherRun, Reading
from analysis.others.values import inner, known, number, positive

TOOL = "GuideLLM"
NAMES = ("benchmarks.json",)
WINDOW = "over the tool's window, requests that failed or were cut off included"
BY_TOKEN = f"percentile over tokens, not over requests; {FIRST_IS_ONE}"
STEPS = "a step of the cumulative distribution, not interpolated"


def matches(document: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a report of this tool."""
    found = document.get("benchmarks")
    if not isinstance(found, list) or not found:
        return False
    return all(inner(entry, "metrics", "output_tokens_per_second") is not None for entry in found)


def read(document: Mapping[str, Any], source: str, path: Path) -> Reading:
    """Return the runs of one report."""
    runs, notes = [], []
    version = str(inner(document, "metadata", "guidellm_version") or "")
    for place, entry in enumerate(document["benchmarks"]):
        name = f"{source} benchmark {place}"
        strategy = inner(entry, "config", "strategy") or inner(entry, "args", "strategy") or {}
        level = _level(strategy)
        if level is None:
            kind = strategy.get("type_", "unknown")
            notes.append(
                f"{name} left out: its strategy is {kind!r}, which is no load level; levels are concurrent "
                "streams and constant or poisson rates"
            )
            continue
        runs.append(_run(entry, name, level, start=str(path), version=version))
    return Reading(runs=tuple(runs), notes=tuple(notes))


def _run(
    entry: Mapping[str, Any], source: str, level: tuple[str, float], *, start: str, version: str
) -> OtherRun:
    totals = inner(entry, "metrics", "request_totals") or entry.get("request_totals") or {}
    answered, failed = (int(number(totals.get(name)) or 0) for name in ("successful", "errored"))
    metrics = _summary(entry, _cached(entry, answered))
    return OtherRun(
        tool=TOOL,
        version=version,
        source=source,
        axis=level[0],
        level=level[1],
        metrics=metrics,
        definitions=_definitions(metrics),
        start=start,
        model=str(
            inner(entry, "config", "backend", "model") or inner(entry, "worker", "backend_model") or ""
        ),
        requests=answered + failed,
        failed=failed,
        failure="" if answered else "every request failed",
        caveats=(*few(*level, answered), *_warnings(entry)),
    )


def _level(strategy: Mapping[str, Any]) -> tuple[str, float] | None:
    kind = strategy.get("type_")
    if kind == "synchronous":
        return "concurrency", 1.0
    if kind in ("concurrent", "throughput"):
        streams = positive(strategy.get("streams" if kind == "concurrent" else "max_concurrency"))
        return None if streams is None else ("concurrency", streams)
    rate = positive(strategy.get("rate")) if kind in ("constant", "poisson") else None
    return None if rate is None else ("rate", rate)


def _cached(entry: Mapping[str, Any], answered: int) -> float | None:
    """Return the cached prompt tokens of all answered requests; None where they are not told or not of all.

    They are told of single requests, so it takes a report that keeps all of them, of a window that is the
    whole run.
    """
    if number(entry.get("warmup_duration")) or number(entry.get("cooldown_duration")):
        return None
    kept = inner(entry, "requests", "successful")
    told = [number(inner(request, "input_metrics", "cached_tokens")) for request in kept or ()]
    cached = [tokens for tokens in told if tokens is not None]
    return sum(cached) if answered and len(cached) == len(told) == answered else None


def _summary(entry: Mapping[str, Any], cached: float | None) -> dict[str, float]:
    def figure(name: str, status: str, *keys: str) -> float | None:
        return positive(inner(entry, "metrics", name, status, *keys))

    gap = figure("inter_token_latency_ms", "successful", "mean")
    total, seconds = figure("tokens_per_second", "total", "mean"), positive(entry.get("duration"))
    metrics: dict[str, float | None] = {
        "throughput/total_tok_s": total,
        "throughput/computed_tok_s": (
            total - cached / seconds if total and seconds and cached is not None else None
        ),
        "throughput/output_tok_s": figure("output_tokens_per_second", "total", "mean"),
        "window/seconds": seconds,
        "user/speed_tok_s": None if gap is None else 1e3 / gap,
        "tokens/client_prompt": figure("prompt_token_count", "successful", "total_sum"),
        "tokens/client_output": figure("output_token_count", "successful", "total_sum"),
        "cache/client_cached_tokens": cached,
        "slo/goodput_req_s": number(inner(entry, "metrics", "request_goodput", "successful", "mean")),
    }
    for share in ("p50", "p95", "p99"):
        place = ("percentiles", share)
        metrics[f"latency/ttft_{share}_ms"] = figure("time_to_first_token_ms", "successful", *place)
        if share != "p99":
            seconds = figure("request_latency", "successful", *place)
            metrics[f"latency/e2el_{share}_ms"] = None if seconds is None else 1e3 * seconds
            metrics[f"latency/tpot_{share}_ms"] = figure("inter_token_latency_ms", "successful", *place)
    return known(metrics)


def _definitions(metrics: Mapping[str, float]) -> dict[str, str]:
    told = {
        "throughput/total_tok_s": f"{WINDOW}; cached prompts count",
        "throughput/computed_tok_s": f"{WINDOW}; total less the cached prompt tokens of usage",
        "throughput/output_tok_s": WINDOW,
        "user/speed_tok_s": FIRST_IS_ONE,
        "latency/tpot_p50_ms": BY_TOKEN,
        "latency/tpot_p95_ms": BY_TOKEN,
        "latency/ttft_p95_ms": STEPS,
        "latency/e2el_p95_ms": STEPS,
        "slo/goodput_req_s": "limits of the run's own objectives",
    }
    return {name: words for name, words in told.items() if name in metrics}


def _warnings(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the tool itself has to say of a run."""
    warnings = entry.get("warnings")
    found = [inner(warning, "message") for warning in warnings] if isinstance(warnings, list) else []
    return tuple(f"GuideLLM warns: {words}" for words in found if words)
