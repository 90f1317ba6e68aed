"""What a cell's requests and samples left behind, as one tidy frame over the cells of a sweep.

Cells are read file by file and only the columns that are asked for, so memory is that of the answer: about
8 bytes a row and figure, 1 to 4 a word (words are categories), and up to twice of that while it is made. A
sweep of a million requests with every column takes some 250 MiB; ask for the columns you need.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.errors import ResultsError
from jobs.nouns import some
from jobs.result import MEASURED

JOINED = ("cell", "arm", "label", "layout", "drafter", "k", "block", "segment", "kind", "role", "level")
"""Columns of `cells_frame` that every row of a request or sample carries, too."""

REQUEST_COLUMNS: dict[str, str] = {
    "conversation": "id of the conversation, alike in all arms",
    "epoch": "repetition of the conversation under a fresh salt, from 0",
    "turn": "turn of the conversation, from 0",
    "user": "simulated user that sent it; of an open loop the conversation's place in the order of arrival",
    "replica": "engine that answered, from 0",
    "rank": "data-parallel rank that was asked for; missing where the engine chose",
    "scheduled_s": "when it was due: s since the cell's first dispatch",
    "dispatched_s": "when it was sent: s since the cell's first dispatch",
    "first_s": "first token: s since the cell's first dispatch",
    "last_s": "last token: s since the cell's first dispatch",
    "ended_s": "end of the stream: s since the cell's first dispatch",
    "send_lag_ms": "from the decision to send to the last byte in the socket, ms",
    "prompt_tokens": "tokens of the prompt, cached ones included",
    "cached_tokens": "of those found in the prefix cache; missing where the engine does not tell",
    "completion_tokens": "tokens of the answer",
    "first_tokens": "tokens of the answer's first chunk",
    "expected_prompt_tokens": "prompt tokens that the workload gave it",
    "expected_tokens": "answer tokens that it was asked for",
    "chunks": "chunks that carried tokens",
    "decode_tokens": "tokens after the first chunk; missing for answers in one chunk, which have no speed",
    "decode_s": "first to last token, s; missing for answers in one chunk",
    "finish_reason": "why the engine ended the answer",
    "error": "stable word of the failure; missing where it was answered",
    "error_detail": "the failure in the words of who raised it",
    "ttft_ms": "time to first token, ms, from dispatch (open loop: from when it was due)",
    "tpot_ms": "time per output token after the first chunk, ms; missing for answers in one chunk",
    "e2el_ms": "end-to-end latency, ms, from dispatch (open loop: from when it was due)",
    "in_window": "whether the steady window holds its dispatch",
    "steps": "verification steps of this request; missing where the engine does not tell",
    "drafted": "draft tokens of this request; missing where the engine does not tell",
    "accepted": "accepted draft tokens of this request; missing where the engine does not tell",
}
"""Column of `Sweep.requests` -> its unit and definition."""

GAUGE_COLUMNS: dict[str, str] = {
    "time_s": "when the engine was asked: s since the cell's first sample",
    "sampled_s": "when host and GPUs were read: s since the cell's first sample",
    "replica": "engine, from 0",
    "running": "requests that the engine works on",
    "waiting": "requests that wait for room",
    "kv_usage": "share of the KV cache in use, 0 to 1",
    "generation_tokens": "tokens generated since the engine started",
    "preemptions": "requests preempted since the engine started",
    "host_cpu": "share of the host's cores in use since the sample before, 0 to 1",
    "host_memory_gib": "memory of the host in use, GiB",
}
"""Column of `Sweep.gauges` -> its unit and definition. Besides, `gpu<i>_<reading>` of each GPU."""

_TIMES = {f"{name}_s": name for name in ("scheduled", "dispatched", "first", "last", "ended")}
_SPECULATION = ("steps", "drafted", "accepted")
_SAMPLE_TIMES = {"time_s": "time", "sampled_s": "sampled"}


def requests_frame(
    directory: Path, cells: pd.DataFrame, columns: Sequence[str] | None = None
) -> pd.DataFrame:
    """Return one row a request of these cells, in their order and within one in order of dispatch.

    Args:
        directory: of the sweep.
        cells: rows of its `cells_frame`; every one has to have been replayed.
        columns: of `REQUEST_COLUMNS`; all where None. Those of `JOINED` come with them.

    Raises:
        ValueError: an unknown column.
        ResultsError: cells whose file is missing or damaged; every one is named.
    """
    wanted = _wanted(columns, REQUEST_COLUMNS)
    needed = {_TIMES.get(name, name) for name in wanted}
    if needed & set(_TIMES.values()):
        needed |= {"dispatched"}
    if needed & set(_SPECULATION):
        needed = (needed - set(_SPECULATION)) | {"speculation"}
    if "send_lag_ms" in needed:
        needed = (needed - {"send_lag_ms"}) | {"send_lag"}
    if needed & {"decode_tokens", "decode_s"}:
        needed = (needed - {"decode_tokens", "decode_s"}) | {"tpot_ms", "completion_tokens", "first_tokens"}
    needed = needed or {"turn"}  # without a column a file would not tell how many rows it has

    def shape(table: pa.Table) -> dict[str, Any]:
        return _requests(table, wanted)

    return _read(directory, cells, "requests.parquet", needed=sorted(needed), shape=shape, wanted=wanted)


def gauges_frame(directory: Path, cells: pd.DataFrame, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return one row a sample and replica of these cells, in order of time within each.

    Args:
        directory: of the sweep.
        cells: rows of its `cells_frame`; every one has to have been replayed.
        columns: of `GAUGE_COLUMNS` or `gpu<i>_<reading>`; all that were recorded where None.

    Raises:
        ValueError: an unknown column.
        ResultsError: cells whose file is missing or damaged; every one is named.
    """
    named = [name for name in columns or () if not name.startswith("gpu")]
    wanted = _wanted(named if columns is not None else None, GAUGE_COLUMNS)
    asked = None if columns is None else [*wanted, *(name for name in columns if name.startswith("gpu"))]

    def shape(table: pa.Table) -> dict[str, Any]:
        return _gauges(table, asked)

    needed = None
    if asked is not None:
        needed = sorted({_SAMPLE_TIMES.get(name, name) for name in asked} | {"time"})
    made = wanted if asked is None else asked
    return _read(directory, cells, "gauges.parquet", needed=needed, shape=shape, wanted=made)


def replayed(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of cells that have a measurement that counts."""
    return cells[cells["outcome"] == MEASURED]


def chosen(cells: pd.DataFrame, ids: Iterable[str]) -> pd.DataFrame:
    """Return the rows of these cells, in the frame's order.

    Raises:
        ValueError: a cell that the sweep does not have.
    """
    names = set(ids)
    found = cells[cells["cell"].isin(names)]
    strangers = sorted(names - set(found["cell"]))
    if strangers:
        message = f"the sweep has no cell {', '.join(strangers[:6])}; `sweep.cells['cell']` lists them"
        raise ValueError(message)
    return found


def _wanted(columns: Sequence[str] | None, known: Mapping[str, str]) -> list[str]:
    if columns is None:
        return list(known)
    asked = [name for name in dict.fromkeys(columns) if name not in JOINED]
    strangers = [name for name in asked if name not in known]
    if strangers:
        message = f"no column {', '.join(strangers)}; choose of {', '.join((*JOINED, *known))}"
        raise ValueError(message)
    return asked


def _read(
    directory: Path,
    cells: pd.DataFrame,
    name: str,
    *,
    needed: Sequence[str] | None,
    shape: Callable[[pa.Table], dict[str, Any]],
    wanted: Sequence[str],
) -> pd.DataFrame:
    """Read a file of each cell, put the tables together, and give each row what is known of its cell."""
    paths = [directory / "cells" / str(cell) / name for cell in cells["cell"]]
    tables: list[pa.Table] = []
    damaged: list[str] = []
    # Many small files: threads of ours beat those of one file's columns.
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for path, table in zip(paths, pool.map(lambda path: _table(path, needed), paths), strict=True):
            if isinstance(table, str):
                damaged.append(f"{path.relative_to(directory)} ({table})")
            else:
                tables.append(table)
    if damaged:
        message = (
            f"{directory} lacks rows of cells: {some(damaged, 6, between='; ')}. Restore the files, run the "
            "sweep again (it measures such cells anew), or leave those cells out with cells=[...]"
        )
        raise ResultsError(message)
    if not tables:
        return pd.DataFrame(columns=[*JOINED, *wanted])
    rows = np.array([table.num_rows for table in tables])
    table = pa.concat_tables(tables, promote_options="default")
    tables.clear()
    starts = np.repeat(np.cumsum(rows) - rows, rows)
    table = table.append_column("start", pa.array(starts))
    place = np.repeat(np.arange(len(rows)), rows)
    joined = {column: _spread(cells[column], place) for column in JOINED}
    return pd.DataFrame({**joined, **shape(table)}, copy=False)


def _table(path: Path, needed: Sequence[str] | None) -> pa.Table | str:
    """Return the columns of a file, or why it cannot be read."""
    try:
        content = pa.BufferReader(path.read_bytes())
        with pq.ParquetFile(content, pre_buffer=False) as file:
            return file.read(columns=needed, use_threads=False)
    except FileNotFoundError:
        return "missing"
    except (OSError, ValueError) as error:
        return str(error).splitlines()[0]


def _spread(values: pd.Series, place: np.ndarray) -> Any:
    """Return a column of the cells on the rows of their requests; words as categories."""
    if values.dtype.kind == "f":
        return values.to_numpy()[place]
    if values.dtype.kind == "i":
        return values.to_numpy().astype(np.int32)[place]
    known = pd.Categorical(values)
    return pd.Categorical.from_codes(known.codes[place], dtype=known.dtype)


def _requests(table: pa.Table, wanted: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    began = _first_in_cell(table, "dispatched") if "dispatched" in table.column_names else np.zeros(0)
    for name in wanted:
        if name in _TIMES:
            found[name] = _seconds(table, _TIMES[name], began)
        elif name == "send_lag_ms":
            found[name] = _column(table, "send_lag") / 1e6
        elif name in _SPECULATION:
            found[name] = _speculation(table, name)
        elif name == "decode_tokens":
            tokens = _column(table, "completion_tokens") - _column(table, "first_tokens")
            found[name] = np.where(np.isfinite(_column(table, "tpot_ms")), tokens, np.nan)
        elif name == "decode_s":
            tokens = _column(table, "completion_tokens") - _column(table, "first_tokens")
            found[name] = _column(table, "tpot_ms") * tokens / 1e3
        else:
            found[name] = _column(table, name)
    return found


def _gauges(table: pa.Table, asked: Sequence[str] | None) -> dict[str, Any]:
    gpus = [name for name in table.column_names if name.startswith("gpu")]
    began = _first_in_cell(table, "time")
    return {
        name: _seconds(table, _SAMPLE_TIMES[name], began) if name in _SAMPLE_TIMES else _column(table, name)
        for name in (asked if asked is not None else [*GAUGE_COLUMNS, *gpus])
    }


def _first_in_cell(table: pa.Table, name: str) -> np.ndarray:
    """Return, for every row, the earliest time of its cell, ns."""
    times = table[name].to_numpy()
    starts = table["start"].to_numpy()
    begins, inverse = np.unique(starts, return_inverse=True)
    return np.minimum.reduceat(times, begins)[inverse] if len(times) else times


def _seconds(table: pa.Table, name: str, began: np.ndarray) -> np.ndarray:
    """Return a time as seconds since its cell began; nanoseconds are subtracted as whole numbers first."""
    if name not in table.column_names:
        return np.full(table.num_rows, np.nan)
    times = table[name]
    known = np.asarray(times.is_valid())
    whole = times.fill_null(0).to_numpy()
    return np.where(known, (whole - began) / 1e9, np.nan)


def _speculation(table: pa.Table, name: str) -> np.ndarray:
    if "speculation" not in table.column_names or pa.types.is_null(table["speculation"].type):
        return np.full(table.num_rows, np.nan)
    flat = table["speculation"].combine_chunks()
    values = flat.flatten()[flat.type.get_field_index(name)] if isinstance(flat, pa.StructArray) else None
    if values is None:
        return np.full(table.num_rows, np.nan)
    return np.asarray(values.cast(pa.float64()).to_numpy(zero_copy_only=False))


def _column(table: pa.Table, name: str) -> Any:
    """Return a column as pandas wants it: figures as numpy arrays (missing: NaN), words as categories."""
    if name not in table.column_names:
        return np.full(table.num_rows, np.nan)
    column = table[name]
    if pa.types.is_string(column.type):
        return column.combine_chunks().dictionary_encode().to_pandas()
    if pa.types.is_boolean(column.type) and not column.null_count:
        return column.combine_chunks().to_numpy(zero_copy_only=False)
    if pa.types.is_null(column.type):
        return np.full(table.num_rows, np.nan)
    return column.to_numpy()
