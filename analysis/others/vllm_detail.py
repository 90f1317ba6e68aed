"""What follows from the single requests of a `vllm bench serve` result, and how it is counted.

With `--save-detailed` there are lists of TTFTs, chunk gaps, lengths and start times; without it newer
versions (0.32) still keep the latencies.
"""

from collections.abc import Mapping
from typing import Any

from analysis.others.requests import FIRST_IS_ONE, Request, pooled
from analysis.others.values import known, number, percentile, positive
from analysis.others.window import Stream, steady

WINDOW = "in the steady window: every slot has ended a request, to the first slot without work"
CACHED = "cached prompts count"
OF_SUMS = f"all answers' tokens over all their decode time, single-chunk ones too; {FIRST_IS_ONE}"


def more_figures(
    document: Mapping[str, Any], level: tuple[str, float], *, answered: int, failed: int
) -> tuple[dict[str, float], dict[str, str]]:
    """Return the figures that single requests give, with the definitions that are not this program's.

    Args:
        document: result of a run.
        level: its axis and number.
        answered: requests that were answered.
        failed: requests that failed; with any, there is no window, as what they did to it is not told.
    """
    streams = _streams(document)
    if not streams:
        metrics = {} if failed else _sums(document, answered)
        return metrics, {"user/speed_tok_s": OF_SUMS} if "user/speed_tok_s" in metrics else {}
    latencies = [stream.end_s - stream.start_s for stream in streams]
    metrics = pooled(
        [
            Request(ttft_s=stream.ttft_s, e2el_s=latency, tokens=stream.tokens)
            for stream, latency in zip(streams, latencies, strict=True)
        ]
    )
    window = steady(streams, int(level[1])) if level[0] == "concurrency" and not failed else {}
    told = {
        "user/speed_tok_s": FIRST_IS_ONE,
        "latency/tpot_p50_ms": FIRST_IS_ONE,
        "latency/tpot_p95_ms": FIRST_IS_ONE,
    }
    if window:
        told |= {"throughput/total_tok_s": f"{WINDOW}; {CACHED}", "throughput/output_tok_s": WINDOW}
    return metrics | window, {name: words for name, words in told.items() if name in metrics | window}


def _streams(document: Mapping[str, Any]) -> list[Stream]:
    """Return the answered requests of a detailed result; empty where it keeps none."""
    names = ("start_times", "input_lens", "output_lens", "ttfts", "itls")
    lists = [document.get(name) for name in names]
    if not all(isinstance(values, list) for values in lists):
        return []
    found = []
    for start, prompt, tokens, ttft, gaps in zip(*(values or () for values in lists), strict=False):
        if positive(tokens) is None or positive(ttft) is None or number(start) is None:
            continue  # it failed, and its place is filled with zeros
        found.append(
            Stream(
                start_s=float(start),
                ttft_s=float(ttft),
                gaps_s=[float(gap) for gap in gaps],
                prompt_tokens=number(prompt) or 0.0,
                tokens=float(tokens),
            )
        )
    return found


def _sums(document: Mapping[str, Any], answered: int) -> dict[str, float]:
    """Return what follows from the latencies and the sums of the summary, where no request failed."""
    latencies, ttft = document.get("latencies"), positive(document.get("mean_ttft_ms"))
    tokens = number(document.get("total_output_tokens"))
    if not isinstance(latencies, list) or not latencies or len(latencies) != answered:
        return {}
    whole = sum(latencies)
    decode = None if ttft is None else whole - answered * ttft / 1e3
    ends = [1e3 * latency for latency in latencies]
    found: dict[str, float | None] = {
        "latency/e2el_p50_ms": percentile(ends, 50),
        "latency/e2el_p95_ms": percentile(ends, 95),
    }
    if decode and decode > 0.0 and tokens is not None and tokens > answered:
        found |= {"user/speed_tok_s": (tokens - answered) / decode, "latency/decode_share": decode / whole}
    return known(found)
