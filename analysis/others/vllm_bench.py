"""Results of `vllm bench serve`: a JSON object a run, several in a file with `--append-result`.

Counting, by its source (0.32): throughputs are tokens of the answered requests over the whole duration, from
the first dispatch to the last end; prompts count whether cached or not; output tokens come from the server's
usage, else from a tokenizer; TPOT is (E2EL - TTFT) / (n - 1); an ITL is a gap between chunks, whatever number
of tokens a chunk carries; percentiles interpolate linearly; failed requests stay out of all of these.
"""

import math
from collections.abc import Mapping
from typing import Any

from analysis.others.requests import FIRST_IS_ONE, few
from analysis.others.run import OtherResultsError, OtherRun, Reading
from analysis.others.server import server_facts
from analysis.others.values import inner, known, number, positive
from analysis.others.vllm_detail import CACHED, more_figures

TOOL = "vllm bench serve"
WHOLE_RUN = "over the whole run, ramp and drain included"
OF_MEANS = "1000 / mean TPOT: a mean over requests, long and short ones alike"
KEYS = frozenset({"duration", "completed", "total_token_throughput", "request_throughput"})


def matches(document: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a result of this tool."""
    return document.keys() >= KEYS


def read(document: Mapping[str, Any], source: str, *, start: str = "", server: str = "") -> Reading:
    """Return the run of one JSON object.

    Args:
        document: as saved.
        source: name of the run in messages.
        start: which start of the server it used; its own where empty.
        server: settings that the server was started with, as `key=value`s with dashes between.

    Raises:
        OtherResultsError: no generation benchmark, or a rate that was ramped.
    """
    if "total_output_tokens" not in document:
        message = f"{source} has no output tokens: it is a pooling benchmark; there is no decoding to judge"
        raise OtherResultsError(message)
    if document.get("ramp_up_strategy"):
        message = (
            f"{source} ramped its request rate ({document['ramp_up_strategy']}), so it is not of one load "
            "level; give runs at constant rates or at a --max-concurrency"
        )
        raise OtherResultsError(message)
    level = _level(document)
    if level is None:
        told = (
            f"{source} left out: all {document.get('num_prompts', '?')} prompts were sent at once, which is "
            "no load level; run it with --max-concurrency or a finite --request-rate"
        )
        return Reading(notes=(told,))
    completed = int(number(document.get("completed")) or 0)
    failed = _failed(document)
    facts = server_facts(document, server)
    summary = _summary(document)
    metrics, definitions = more_figures(document, level, answered=completed, failed=failed)
    caveats = _caveats(document, level, completed)
    return Reading(
        runs=(
            OtherRun(
                tool=TOOL,
                source=source,
                axis=level[0],
                level=level[1],
                metrics=summary | metrics,
                definitions=_definitions(summary) | definitions,
                start=start or source,
                model=str(document.get("model_id") or ""),
                drafter=facts.drafter,
                k=facts.k or len(document.get("spec_decode_per_position_acceptance_rates") or ()),
                layout=facts.layout,
                flags=facts.flags,
                drafts=number(document.get("spec_decode_num_drafts")),
                requests=completed + failed,
                failed=failed,
                failure="" if completed else "every request failed",
                caveats=caveats,
            ),
        )
    )


def _level(document: Mapping[str, Any]) -> tuple[str, float] | None:
    rate = document.get("request_rate")
    finite = positive(rate if not isinstance(rate, str) else _float(rate))
    if finite is not None:
        return "rate", finite
    concurrency = positive(document.get("max_concurrency"))
    return None if concurrency is None else ("concurrency", concurrency)


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _failed(document: Mapping[str, Any]) -> int:
    """Return the failed requests; files before the key `failed` tell them by what is missing."""
    told = number(document.get("failed"))
    if told is not None:
        return int(told)
    return max(0, int((number(document.get("num_prompts")) or 0) - (number(document.get("completed")) or 0)))


def _summary(document: Mapping[str, Any]) -> dict[str, float]:
    tpot = positive(document.get("mean_tpot_ms"))
    total, output = (positive(document.get(f"{name}_throughput")) for name in ("total_token", "output"))
    metrics: dict[str, float | None] = {
        "throughput/total_tok_s": total,
        "throughput/output_tok_s": output,
        "fixed_work/total_tok_s": total,
        "fixed_work/output_tok_s": output,
        "fixed_work/seconds": positive(document.get("duration")),
        "user/speed_tok_s": None if tpot is None else 1e3 / tpot,
        "spec/mal": positive(document.get("spec_decode_acceptance_length")),
        "spec/drafts": positive(document.get("spec_decode_num_drafts")),
        "slo/goodput_req_s": number(document.get("request_goodput")),
        "tokens/client_output": number(document.get("total_output_tokens")),
        "tokens/client_prompt": number(document.get("total_input_tokens")),
    }
    rate = number(document.get("spec_decode_acceptance_rate"))
    metrics["spec/acceptance_rate"] = None if rate is None else rate / 100.0
    for name in ("ttft", "tpot", "e2el"):
        for share, word in (("p50", "median"), ("p95", "p95"), ("p99", "p99")):
            metrics[f"latency/{name}_{share}_ms"] = positive(document.get(f"{word}_{name}_ms"))
    for share, word in (("p50", "median"), ("p99", "p99")):
        metrics[f"latency/icl_{share}_ms"] = positive(document.get(f"{word}_itl_ms"))
    rates = document.get("spec_decode_per_position_acceptance_rates") or ()
    metrics |= {f"spec/acceptance_pos_{place}": number(value) for place, value in enumerate(rates, start=1)}
    return known(metrics)


def _definitions(metrics: Mapping[str, float]) -> dict[str, str]:
    told = {
        "throughput/total_tok_s": f"{WHOLE_RUN}; {CACHED}",
        "throughput/output_tok_s": WHOLE_RUN,
        "user/speed_tok_s": OF_MEANS,
        "latency/tpot_p50_ms": FIRST_IS_ONE,
        "latency/tpot_p95_ms": FIRST_IS_ONE,
        "slo/goodput_req_s": "limits of the run's own --goodput",
    }
    return {name: words for name, words in told.items() if name in metrics}


def _caveats(document: Mapping[str, Any], level: tuple[str, float], completed: int) -> tuple[str, ...]:
    found = list(few(*level, completed))
    if level[0] == "rate" and positive(document.get("max_concurrency")) is not None:
        found.append(
            f"arrivals were held at {document['max_concurrency']} in flight, and latencies leave out the wait"
        )
    if inner(document, "mean_ttft_ms") == 0:
        found.append("no time to first token: the endpoint did not stream, so there is no user speed")
    return tuple(found)
