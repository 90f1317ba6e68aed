"""Traces as torch's profiler writes them, made step by step, for the tests of their readers."""

import gzip
import json
from pathlib import Path
from typing import Any

SCOPES = (("preprocess", 100.0), ("forward", 1000.0), ("postprocess", 200.0))
"""Parts inside the forward's call, with microseconds."""
AFTER = (("sample", 60.0), ("bookkeep", 40.0), ("draft", 300.0), ("ModelRunnerOutput", 10.0))
"""Parts of the call that samples."""


def span(
    name: str, start: float, duration: float, category: str = "user_annotation", **args: Any
) -> dict[str, Any]:
    """One complete event of the main thread."""
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": 1,
        "tid": 1,
        "ts": start,
        "dur": duration,
        "args": args,
    }


def host_step(start: float, *, name: str = "execute_context_0(0)_generation_4(16)") -> list[dict[str, Any]]:
    """One step of a worker on the host: 1400 us in the forward's call, a pause of 200, 460 us in the other's.

    Of both, 50 us each belong to no part. Attention takes 2 x 150 us of the forward, and 80 of the drafter.
    """
    events = [span(name, start, 1400.0)]
    at = start + 50.0
    for part, duration in SCOPES:
        events.append(span(f"gpu_model_runner: {part}", at, duration))
        if part == "forward":
            for layer in (100.0, 500.0):
                events.append(span("vllm::unified_attention_with_output", at + layer, 150.0, "cpu_op"))
                events.append(span("_C::cpu_attention_with_kv_cache", at + layer + 20, 110.0, "cpu_op"))
                events.append(span("_C::onednn_mm", at + layer + 200, 150.0, "cpu_op"))
        at += duration
    at = start + 1600.0
    for part, duration in AFTER:
        events.append(span(f"gpu_model_runner: {part}", at, duration))
        if part == "draft":
            events.append(span("vllm::unified_attention_with_output", at + 20, 80.0, "cpu_op"))
            at += 50.0  # the worker's own, between two parts
        at += duration
    return events


def host_trace(steps: int = 10, *, period: float = 2500.0) -> list[dict[str, Any]]:
    """A trace of so many steps, one every `period` microseconds."""
    return [event for number in range(steps) for event in host_step(1000.0 + number * period)]


def device_step(start: float, number: int, *, scopes: bool = True) -> list[dict[str, Any]]:
    """One step on a GPU: launches within 600 us on the host, kernels for 900 us from 500 us on.

    Kernels: 400 us of matrices, 100 of attention, 100 of logits, 50 verification, 200 the drafter, 100 of it
    attention, and 50 of a copy that runs beside the drafter's matrices on another stream.
    """
    launches = (
        ("forward", 100.0, "nvjet_tst_128x64", 500.0, 400.0, 7, "kernel"),
        ("forward", 110.0, "flash_fwd_splitkv_kernel", 900.0, 100.0, 7, "kernel"),
        ("postprocess", 210.0, "cutlass_gemm_logits", 1000.0, 100.0, 7, "kernel"),
        ("sample", 310.0, "rejection_greedy_sample_kernel", 1100.0, 50.0, 7, "kernel"),
        ("draft", 420.0, "triton_red_fused", 1150.0, 100.0, 7, "kernel"),
        ("bookkeep", 405.0, "Memcpy DtoH", 1175.0, 50.0, 8, "gpu_memcpy"),
        ("draft", 430.0, "kernel_unified_attention_2d", 1250.0, 100.0, 7, "kernel"),
    )
    events = [span("execute_context_0(0)_generation_4(16)", start, 300.0)]
    if scopes:
        places = {"forward": (90, 100), "postprocess": (200, 80), "sample": (300, 80), "bookkeep": (400, 10)}
        places["draft"] = (410, 150)
        events += [
            span(f"gpu_model_runner: {name}", start + at, length) for name, (at, length) in places.items()
        ]
    for index, (_, launched, name, began, took, stream, category) in enumerate(launches):
        number_of_launch = number * 100 + index + 1
        events.append(
            span("cudaLaunchKernel", start + launched, 3.0, "cuda_runtime", correlation=number_of_launch)
        )
        event = span(name, start + began, took, category, correlation=number_of_launch)
        events.append({**event, "pid": 0, "tid": stream})
    return events


def device_trace(steps: int = 10, *, period: float = 1200.0, scopes: bool = True) -> list[dict[str, Any]]:
    """A trace of so many steps on a GPU, one every `period` microseconds."""
    return [
        event
        for number in range(steps)
        for event in device_step(1000.0 + number * period, number, scopes=scopes)
    ]


def write(path: Path, events: list[dict[str, Any]]) -> Path:
    """Write a trace, gzipped where the name says so."""
    metadata = {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": 'python "[traceEvents]"'}}
    text = json.dumps({"schemaVersion": 1, "traceEvents": [metadata, *events], "traceName": "x"}, indent=1)
    path.write_bytes(gzip.compress(text.encode(), 1) if path.suffix == ".gz" else text.encode())
    return path
