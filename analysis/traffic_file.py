"""A fleet's running requests over time, read from a Prometheus export or a CSV file.

Prometheus: the JSON of a range query (`{"data": {"resultType": "matrix", ...}}`). Series that differ in the
label `engine` alone are the data-parallel ranks of one server, and are summed; every other series is a server
of its own. CSV: a column of times and one column a server, in any of the usual names; times in seconds or
milliseconds since 1970, or as ISO 8601.
"""

import csv
import json
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from analysis.errors import ResultsError
from jobs.nouns import counted

_TIME = {"time", "timestamp", "ts", "date", "datetime"}
_MILLISECONDS = 1e11
"""Numbers above it are milliseconds since 1970: in seconds it would be the year 5138."""
_RANK = "engine"
"""Label of a data-parallel rank on vLLM's page."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Series:
    """One server's running requests."""

    name: str
    time: np.ndarray
    """Seconds since 1970, ascending."""
    running: np.ndarray
    """Requests."""


def read_traffic(path: Path) -> tuple[Series, ...]:
    """Return the series of a file.

    Raises:
        ResultsError: no such file, or one that is no export of either form; names file and line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        message = f"{path} cannot be read ({error}); give a Prometheus range query as JSON, or a CSV file"
        raise ResultsError(message) from error
    return _prometheus(path, text) if text.lstrip()[:1] in ("{", "[") else _csv(path, text)


def _prometheus(path: Path, text: str) -> tuple[Series, ...]:
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        message = f"{path}, line {error.lineno}: this is no JSON ({error.msg})"
        raise ResultsError(message) from error
    data = content.get("data", content) if isinstance(content, dict) else {}
    if not isinstance(data, dict) or data.get("resultType") != "matrix" or not data.get("result"):
        message = (
            f"{path} is no range query of Prometheus: it needs resultType matrix and at least one series, as "
            "/api/v1/query_range?query=vllm:num_requests_running gives it"
        )
        raise ResultsError(message)
    servers: dict[str, dict[float, float]] = {}
    for number, series in enumerate(data["result"], start=1):
        labels = dict(series.get("metric", {}))
        labels.pop(_RANK, None)
        name = ", ".join(f"{key}={value}" for key, value in sorted(labels.items()) if key != "__name__")
        summed = servers.setdefault(name, {})
        for place, pair in enumerate(series.get("values", ()), start=1):
            time, value = _pair(path, number, place, pair)
            if math.isfinite(value):
                summed[time] = summed.get(time, 0.0) + value
    return tuple(_series(path, name or "all", list(summed.items())) for name, summed in servers.items())


def _pair(path: Path, series: int, place: int, pair: Any) -> tuple[float, float]:
    try:
        time, value = pair
        found = float(time), float(value)
    except (TypeError, ValueError) as error:
        message = f"{path}, series {series}, value {place}: {pair!r} is no [time, value]"
        raise ResultsError(message) from error
    if found[1] < 0:
        message = f"{path}, series {series}, value {place}: {found[1]:g} running requests is less than none"
        raise ResultsError(message)
    return found


def _csv(path: Path, text: str) -> tuple[Series, ...]:
    lines = text.splitlines()
    first = next((number for number, line in enumerate(lines) if line.strip()), None)
    if first is None:
        message = f"{path} is empty; it needs a line `time,running` and a line a sample"
        raise ResultsError(message)
    delimiter = max(",;\t", key=lines[first].count)
    header = [name.strip().strip('"') for name in next(csv.reader([lines[first]], delimiter=delimiter))]
    times = [place for place, name in enumerate(header) if name.lower() in _TIME]
    if len(times) != 1 or len(header) < 2:
        message = (
            f"{path}, line {first + 1}: the header is {lines[first]!r}; it needs one column of times "
            f"({', '.join(sorted(_TIME))}) and a column of running requests for each server"
        )
        raise ResultsError(message)
    columns: dict[int, list[tuple[float, float]]] = {
        place: [] for place in range(len(header)) if place != times[0]
    }
    for number, row in enumerate(csv.reader(lines[first + 1 :], delimiter=delimiter), start=first + 2):
        if not any(part.strip() for part in row):
            continue
        if len(row) != len(header):
            message = f"{path}, line {number}: {len(row)} columns, and the header has {len(header)}"
            raise ResultsError(message)
        when = _time(path, number, row[times[0]].strip())
        for place, samples in columns.items():
            value = _number(path, number, row[place].strip())
            if value is not None:
                samples.append((when, value))
    return tuple(_series(path, header[place], samples) for place, samples in columns.items())


def _time(path: Path, number: int, text: str) -> float:
    try:
        value = float(text)
        return value / 1000.0 if value > _MILLISECONDS else value
    except ValueError:
        pass
    try:
        found = datetime.fromisoformat(re.sub(r"\s+", "T", text, count=1))
    except ValueError as error:
        message = f"{path}, line {number}: {text!r} is no time; use seconds since 1970 or ISO 8601"
        raise ResultsError(message) from error
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _number(path: Path, number: int, text: str) -> float | None:
    """Return a count; None for an empty field, which is a gap."""
    if text.lower() in ("", "nan", "null"):
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0.0):
        message = f"{path}, line {number}: {text!r} is no number of running requests"
        raise ResultsError(message)
    return value


def _series(path: Path, name: str, samples: list[tuple[float, float]]) -> Series:
    if len(samples) < 2:
        message = (
            f"{path}: {name} has {counted(len(samples), 'sample')}; two are needed to know how long one holds"
        )
        raise ResultsError(message)
    samples = sorted(samples)
    time = np.array([when for when, _ in samples])
    if not np.all(np.diff(time) > 0.0):
        message = f"{path}: {name} has two samples at {time[:-1][np.diff(time) <= 0.0][0]:.3f} s; keep one"
        raise ResultsError(message)
    return Series(name=name, time=time, running=np.array([value for _, value in samples]))
