"""The single requests of an AIPerf run: `profile_export.jsonl`, one JSON object a request."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from analysis.others.requests import Request
from analysis.others.run import OtherResultsError
from analysis.others.values import inner, number

MILLISECONDS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "sec": 1e3, "s": 1e3, "seconds": 1e3}
"""Unit of a duration -> milliseconds."""


def requests_beside(export: Path, *, usual: tuple[str, ...], served: bool) -> list[Request]:
    """Return the answered requests of the run that an export tells of; empty where their file is absent.

    Args:
        export: file of the run.
        usual: names that exports have unless their user chose another.
        served: whether tokens are those of the server's usage; else those of the client's tokenizer.

    Raises:
        OtherResultsError: a damaged line.
    """
    name = "profile_export.jsonl" if export.name in usual else f"{export.stem}.jsonl"
    path = export.with_name(name)
    if not path.is_file():
        return []
    found = (_request(record, served=served) for record in _records(path))
    return [request for request in found if request is not None]


def _records(path: Path) -> Iterator[Mapping[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for place, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                yield json.loads(line)
            except ValueError as error:
                message = f"{path} line {place} is no JSON ({error}); remove the file, or export it again"
                raise OtherResultsError(message) from error


def _request(record: Mapping[str, Any], *, served: bool) -> Request | None:
    """Return an answered request of the profiling phase; None for any other."""
    metadata = record.get("metadata") or {}
    if record.get("error") or "warmup" in (metadata.get("benchmark_phase"), metadata.get("phase_kind")):
        return None

    def milliseconds(name: str) -> float | None:
        value, unit = inner(record, "metrics", name, "value"), inner(record, "metrics", name, "unit")
        found = number(value)
        return None if found is None or unit not in MILLISECONDS else found * MILLISECONDS[unit]

    ttft, whole = milliseconds("time_to_first_token"), milliseconds("request_latency")
    counted = number(inner(record, "metrics", "output_sequence_length", "value"))
    if ttft is None or whole is None or counted is None:
        return None
    gap = milliseconds("inter_token_latency")
    first = counted - (whole - ttft) / gap if gap else 1.0
    told = number(inner(record, "metrics", "usage_completion_tokens", "value"))
    tokens = told if served and told is not None else counted
    return Request(ttft_s=ttft / 1e3, e2el_s=whole / 1e3, tokens=tokens, first_tokens=first)
