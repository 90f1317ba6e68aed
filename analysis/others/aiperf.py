"""Exports of AIPerf: `profile_export_aiperf.json`, with the requests of `profile_export.jsonl` beside it.

Counting, by its source and by runs of 0.13 (files of 0.3 have the same metrics): "benchmark duration" is
first dispatch to last response, and is what is divided by here; its own rates divide by the whole phase,
which is longer. Tokens are the client's, cached or not, unless the server told its own (`aiperf_tokens`);
"inter token latency" is a request's (latency - TTFT) / (n - n_first), what this program calls TPOT, n_first
being the server's per-chunk usage where asked for and else 1; gaps between chunks are "inter chunk latency";
percentiles interpolate linearly.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.others.aiperf_requests import MILLISECONDS, requests_beside
from analysis.others.aiperf_tokens import Tokens, draft_length, speculation, tokens_of
from analysis.others.requests import few, pooled
from analysis.others.run import OtherResultsError, OtherRun, Reading
from analysis.others.values import inner, known, number, positive

TOOL = "AIPerf"
NAMES = ("profile_export_aiperf.json",)
PHASES = "phases"
"""Folder beside an export, with an export of the same name for each phase: parts of the same run."""
WHOLE_RUN = "first dispatch to last response, ramp and drain included"
SERVED = "tokens by the server's usage"
COUNTED = "tokens by the client's tokenizer"
OF_MEANS = "1000 / mean inter token latency: a mean over requests (profile_export.jsonl gives the pooled)"
FIRST_TOLD = "tokens of the first chunk by --per-chunk-usage, else one"


def matches(document: Mapping[str, Any]) -> bool:
    """Whether a JSON object is an export of this tool."""
    return "input_config" in document and isinstance(inner(document, "request_throughput", "unit"), str)


def part_of(path: Path) -> Path | None:
    """Return the export of the whole run of which a file holds one phase; None where it is no such part."""
    if path.parent.parent.name != PHASES:
        return None
    whole = path.parent.parent.with_name(path.name)
    return whole if whole.is_file() else None


def read(document: Mapping[str, Any], source: str, path: Path) -> Reading:
    """Return the run of one export.

    Raises:
        OtherResultsError: a damaged file of requests, or an unknown unit.
    """
    whole = part_of(path)
    if whole is not None:
        return Reading(notes=(f"{source} left out: it is a phase of the run that {whole} tells of",))
    level = _level(document)
    if level is None:
        told = (
            f"{source} left out: its input_config tells neither a concurrency nor one constant request rate; "
            "run it with --concurrency or --request-rate"
        )
        return Reading(notes=(told,))
    tokens = tokens_of(document)
    detail = requests_beside(path, usual=NAMES, served=tokens.served)
    metrics = _summary(document, tokens, source) | (pooled(detail) if detail else {})
    answered = int(_average(document, "request_count") or 0)
    failed = int(_average(document, "error_request_count") or 0)
    info = document.get("run_info")
    return Reading(
        runs=(
            OtherRun(
                tool=TOOL,
                version=str(document.get("aiperf_version") or ""),
                source=source,
                axis=level[0],
                level=level[1],
                metrics=metrics,
                definitions=_definitions(metrics, served=tokens.served, detailed=bool(detail)),
                # trials of one plan run against whatever serves: the tool starts no server of its own
                start=str(inner(info, "sweep_id") or source),
                model=_model(document),
                k=draft_length(document),
                drafts=_average(document, "total_spec_decode_steps"),
                requests=answered + failed,
                failed=failed,
                failure=_failure(document, answered),
                caveats=(*few(*level, answered), *tokens.caveats),
            ),
        )
    )


def _level(document: Mapping[str, Any]) -> tuple[str, float] | None:
    """Return the load of the profiling phase, in the shape of any version."""
    config = document.get("input_config")
    older = inner(config, "loadgen")
    if isinstance(older, Mapping):
        rate, concurrency = positive(older.get("request_rate")), positive(older.get("concurrency"))
        if rate is not None:
            return "rate", rate
        return None if concurrency is None else ("concurrency", concurrency)
    phases = inner(config, "phases")
    found = [phase for phase in _phases(phases) if phase.get("kind", phase.get("name")) == "profiling"]
    if len(found) != 1 or found[0].get("rate_series") or found[0].get("rate_ramp"):
        return None
    rate = positive(found[0].get("rate"))
    if rate is not None:
        return "rate", rate
    if found[0].get("type", "concurrency") != "concurrency":
        return None
    return "concurrency", positive(found[0].get("concurrency")) or 1.0  # its own default is left out


def _phases(phases: Any) -> list[Mapping[str, Any]]:
    if isinstance(phases, Mapping):
        return [{"name": name, **phase} for name, phase in phases.items() if isinstance(phase, Mapping)]
    return [phase for phase in phases if isinstance(phase, Mapping)] if isinstance(phases, list) else []


def _average(document: Mapping[str, Any], name: str) -> float | None:
    return number(inner(document, name, "avg"))


def _summary(document: Mapping[str, Any], tokens: Tokens, source: str) -> dict[str, float]:
    def latency(name: str, share: str) -> float | None:
        value, unit = positive(inner(document, name, share)), inner(document, name, "unit")
        if value is None:
            return None
        if unit not in MILLISECONDS:
            message = (
                f"{source} has {name} in {unit!r}, which is no unit of time known here "
                f"({', '.join(MILLISECONDS)})"
            )
            raise OtherResultsError(message)
        return value * MILLISECONDS[unit]

    duration = latency("benchmark_duration", "avg")

    def rate(count: float | None, name: str = "") -> float | None:
        """Return a count a second; without count or duration the tool's own figure."""
        if count is None or duration is None:
            return _average(document, name)
        return count / (duration / 1e3)

    fresh = None if tokens.total is None or tokens.cached is None else tokens.total - tokens.cached
    gap = latency("inter_token_latency", "avg")
    metrics: dict[str, float | None] = {
        "throughput/total_tok_s": rate(tokens.total, "total_token_throughput"),
        "throughput/computed_tok_s": rate(fresh),
        "throughput/output_tok_s": rate(tokens.output, "output_token_throughput"),
        "fixed_work/total_tok_s": rate(tokens.counted_total, "total_token_throughput"),
        "fixed_work/output_tok_s": rate(tokens.counted_output, "output_token_throughput"),
        "fixed_work/seconds": None if duration is None else duration / 1e3,
        "user/speed_tok_s": None if gap is None else 1e3 / gap,
        "cache/client_cached_tokens": tokens.cached,
        "slo/goodput_req_s": _average(document, "goodput"),
        "tokens/client_prompt": tokens.prompt,
        "tokens/client_output": tokens.output,
    }
    for name, tag in (
        ("ttft", "time_to_first_token"),
        ("tpot", "inter_token_latency"),
        ("icl", "inter_chunk_latency"),
        ("e2el", "request_latency"),
    ):
        metrics |= {f"latency/{name}_{share}_ms": latency(tag, share) for share in ("p50", "p95", "p99")}
    return known(metrics | speculation(document))


def _definitions(metrics: Mapping[str, float], *, served: bool, detailed: bool) -> dict[str, str]:
    by = SERVED if served else COUNTED
    speed = f"{FIRST_TOLD}; {by if detailed else COUNTED}"
    told = {
        "throughput/total_tok_s": f"{WHOLE_RUN}; {by}; cached prompts count",
        "throughput/computed_tok_s": f"{WHOLE_RUN}; {by}; total less the cached prompt tokens of usage",
        "throughput/output_tok_s": f"{WHOLE_RUN}; {by}",
        "user/speed_tok_s": speed if detailed else f"{OF_MEANS}; {speed}",
        "latency/tpot_p50_ms": speed,
        "latency/tpot_p95_ms": speed,
        "slo/goodput_req_s": "limits of the run's own --goodput",
        "tokens/client_output": by,
        "tokens/client_prompt": by,
    }
    return {name: words for name, words in told.items() if name in metrics}


def _model(document: Mapping[str, Any]) -> str:
    config = document.get("input_config")
    names = inner(config, "endpoint", "model_names") or inner(config, "models", "items") or ()
    told = [item.get("name") if isinstance(item, Mapping) else item for item in names]
    return ", ".join(str(name) for name in told if name)


def _failure(document: Mapping[str, Any], answered: int) -> str:
    if not answered:
        return "every request failed"
    if document.get("was_cancelled"):
        return "the run was cancelled"
    if document.get("is_complete") is False:
        return f"the run is incomplete: {document.get('incomplete_reason') or 'no reason told'}"
    return ""
