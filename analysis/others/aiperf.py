"""Exports of AIPerf: `profile_export_aiperf.json`, with the requests of `profile_export.jsonl` beside it.

Counting, by its source (0.13; files of 0.3 have the same metrics): throughputs are tokens of the answered
requests over first dispatch to last response, warm-up left out; input tokens are the client's, cached or not;
"inter token latency" is a request's (latency - TTFT) / (n - n_first), what this program calls TPOT, n_first
being the server's per-chunk usage where asked for and else 1; gaps between chunks are "inter chunk latency";
percentiles interpolate linearly.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from analysis.others.requests import Request, few, pooled
from analysis.others.run import OtherResultsError, OtherRun, Reading
from analysis.others.values import inner, known, number, positive

TOOL = "AIPerf"
NAMES = ("profile_export_aiperf.json",)
WHOLE_RUN = "first dispatch to last response, ramp and drain included"
OF_MEANS = "1000 / mean inter token latency: a mean over requests (profile_export.jsonl gives the pooled)"
FIRST_TOLD = "tokens of the first chunk by --per-chunk-usage, else one"
_MS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "sec": 1e3, "s": 1e3, "seconds": 1e3}
"""Unit of a duration -> milliseconds."""


def matches(document: Mapping[str, Any]) -> bool:
    """Whether a JSON object is an export of this tool."""
    return "input_config" in document and isinstance(inner(document, "request_throughput", "unit"), str)


def read(document: Mapping[str, Any], source: str, path: Path) -> Reading:
    """Return the run of one export.

    Raises:
        OtherResultsError: a damaged file of requests, or an unknown unit.
    """
    level = _level(document)
    if level is None:
        told = (
            f"{source} left out: its input_config tells neither a concurrency nor one constant request rate; "
            "run it with --concurrency or --request-rate"
        )
        return Reading(notes=(told,))
    records = _records_beside(path)
    detail = list(_requests(records)) if records is not None else []
    metrics = _summary(document, source) | (pooled(detail) if detail else {})
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
                definitions=_definitions(metrics, detailed=bool(detail)),
                # trials of one plan run against whatever serves: the tool starts no server of its own
                start=str(inner(info, "sweep_id") or source),
                model=_model(document),
                drafts=_average(document, "total_spec_decode_steps"),
                requests=answered + failed,
                failed=failed,
                failure=_failure(document, answered),
                caveats=few(*level, answered),
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


def _summary(document: Mapping[str, Any], source: str) -> dict[str, float]:
    def latency(name: str, share: str) -> float | None:
        value, unit = positive(inner(document, name, share)), inner(document, name, "unit")
        if value is None:
            return None
        if unit not in _MS:
            message = (
                f"{source} has {name} in {unit!r}, which is no unit of time known here ({', '.join(_MS)})"
            )
            raise OtherResultsError(message)
        return value * _MS[unit]

    duration = latency("benchmark_duration", "avg")
    seconds = None if duration is None else duration / 1e3
    total, output = (_average(document, f"{name}_token_throughput") for name in ("total", "output"))
    prompt, answer = _average(document, "total_isl"), _average(document, "total_osl")
    if total is None and seconds and prompt is not None and answer is not None:
        total = (prompt + answer) / seconds
    cached = _average(document, "total_usage_prompt_cache_read_tokens")
    computed = total - cached / seconds if total is not None and cached is not None and seconds else None
    tpot = latency("inter_token_latency", "avg")
    metrics: dict[str, float | None] = {
        "throughput/total_tok_s": total,
        "throughput/computed_tok_s": computed,
        "throughput/output_tok_s": output,
        "fixed_work/total_tok_s": total,
        "fixed_work/computed_tok_s": computed,
        "fixed_work/output_tok_s": output,
        "fixed_work/seconds": seconds,
        "user/speed_tok_s": None if tpot is None else 1e3 / tpot,
        "spec/mal": positive(inner(document, "spec_decode_token_weighted_acceptance_length", "avg")),
        "spec/drafts": positive(inner(document, "total_spec_decode_steps", "avg")),
        "cache/client_cached_tokens": cached,
        "slo/goodput_req_s": _average(document, "goodput"),
        "tokens/client_prompt": prompt,
        "tokens/client_output": answer,
    }
    for name, tag in (
        ("ttft", "time_to_first_token"),
        ("tpot", "inter_token_latency"),
        ("icl", "inter_chunk_latency"),
        ("e2el", "request_latency"),
    ):
        metrics |= {f"latency/{name}_{share}_ms": latency(tag, share) for share in ("p50", "p95", "p99")}
    return known(metrics)


def _records_beside(path: Path) -> Path | None:
    """Return the file of single requests that belongs to an export, if it is there."""
    name = "profile_export.jsonl" if path.name in NAMES else f"{path.stem}.jsonl"
    found = path.with_name(name)
    return found if found.is_file() else None


def _requests(path: Path) -> Iterator[Request]:
    with path.open(encoding="utf-8") as lines:
        for place, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except ValueError as error:
                message = f"{path} line {place} is no JSON ({error}); remove the file, or export it again"
                raise OtherResultsError(message) from error
            request = _request(record)
            if request is not None:
                yield request


def _request(record: Mapping[str, Any]) -> Request | None:
    """Return an answered request of the profiling phase; None for any other."""
    metadata = record.get("metadata") or {}
    if record.get("error") or "warmup" in (metadata.get("benchmark_phase"), metadata.get("phase_kind")):
        return None

    def milliseconds(name: str) -> float | None:
        value, unit = inner(record, "metrics", name, "value"), inner(record, "metrics", name, "unit")
        found = number(value)
        return None if found is None or unit not in _MS else found * _MS[unit]

    ttft, whole = milliseconds("time_to_first_token"), milliseconds("request_latency")
    tokens = number(inner(record, "metrics", "output_sequence_length", "value"))
    if ttft is None or whole is None or tokens is None:
        return None
    gap = milliseconds("inter_token_latency")
    first = tokens - (whole - ttft) / gap if gap else 1.0
    return Request(ttft_s=ttft / 1e3, e2el_s=whole / 1e3, tokens=tokens, first_tokens=first)


def _definitions(metrics: Mapping[str, float], *, detailed: bool) -> dict[str, str]:
    told = {
        "throughput/total_tok_s": f"{WHOLE_RUN}; cached prompts count",
        "throughput/computed_tok_s": f"{WHOLE_RUN}; total less the cached prompt tokens of usage",
        "throughput/output_tok_s": WHOLE_RUN,
        "user/speed_tok_s": FIRST_TOLD if detailed else f"{OF_MEANS}; {FIRST_TOLD}",
        "latency/tpot_p50_ms": FIRST_TOLD,
        "latency/tpot_p95_ms": FIRST_TOLD,
        "slo/goodput_req_s": "limits of the run's own --goodput",
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
