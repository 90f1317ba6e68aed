"""Measured acceptance lengths of a YAML file: one mean length per draft length K, turned into rates.

```
MODEL:
  ROW:
    1: 1.79     # K: mean acceptance length in tokens a step, the verifier's own included
    2: 2.27
```
What position i adds to the mean length is the chance that it is accepted: rate(i) = L(i) - L(i - 1), with
L(0) = 1. Rates cannot rise with the position; measured lengths are noisy, so their rates are fitted.
"""

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from engines.acceptance import Acceptance, Source
from engines.nearest import did_you_mean
from orchestrator.errors import ConfigError

_KEY = "drafter.acceptance"
_NOTHING = 5e-4
"""Tokens a step below which a fit is not worth a word: the files have two decimals."""


def file_acceptance(path: str, *, row: str | None) -> Acceptance:
    """Return the acceptance that one row of the file at `path` has, by position up to its largest K.

    Args:
        path: YAML file.
        row: `MODEL/ROW`, or the last part of it; None where the file has one row.

    Raises:
        ConfigError: the file cannot be read, has no such row, or has lengths that nothing can have.
    """
    file = Path(path).expanduser()
    try:
        content = file.read_bytes()
        data = yaml.safe_load(content)
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        message = f"{_KEY}.file={path} cannot be read as YAML: {reason}"
        raise ConfigError(message) from error
    rows = dict(_rows(data, ()))
    name = _chosen(rows, row, path)
    lengths = rows[name]
    try:
        rates = rates_of(lengths)
    except ValueError as error:
        message = f"{_KEY}.file={path}, row {name}: {error}"
        raise ConfigError(message) from error
    return Acceptance(
        positions=rates,
        source=Source(
            kind="file",
            name=f"{file.name} {name}",
            digest=hashlib.sha256(content).hexdigest(),
            note=_moved(lengths, rates),
        ),
    )


def rates_of(lengths: Mapping[int, float]) -> tuple[float, ...]:
    """Return the unconditional rates by position that fit mean acceptance lengths by draft length best.

    Increments of the lengths, made non-increasing by isotonic regression (least squares, equal weights) and
    kept within 0 and 1. An increment over several K is spread evenly over them. All lengths stay as they are
    where their increments already fall.

    Raises:
        ValueError: a length outside 1 to K + 1, or no draft length at all.
    """
    if not lengths or min(lengths) < 1:
        message = "draft lengths are whole numbers from 1, each with its mean acceptance length"
        raise ValueError(message)
    for k, length in lengths.items():
        if not 1.0 <= length <= k + 1:
            message = f"a mean acceptance length of {length:g} at K={k} cannot be: it lies in 1 to {k + 1}"
            raise ValueError(message)
    known = [(0, 1.0), *sorted(lengths.items())]
    increments: list[float] = []
    for (before, low), (after, high) in itertools.pairwise(known):
        increments += [(high - low) / (after - before)] * (after - before)
    return tuple(min(1.0, max(0.0, rate)) for rate in non_increasing(increments))


def non_increasing(values: Sequence[float]) -> tuple[float, ...]:
    """Return the non-increasing sequence nearest to `values` in least squares (pool adjacent violators)."""
    pools: list[tuple[float, int]] = []  # (mean, members)
    for value in values:
        mean, count = value, 1
        while pools and pools[-1][0] < mean:
            other, members = pools.pop()
            mean = (mean * count + other * members) / (count + members)
            count += members
        pools.append((mean, count))
    return tuple(mean for mean, count in pools for _ in range(count))


def _moved(lengths: Mapping[int, float], rates: Sequence[float]) -> str:
    totals = list(itertools.accumulate(rates, initial=1.0))
    moves = {k: abs(totals[k] - length) for k, length in sorted(lengths.items())}
    told = [f"{lengths[k]:g} to {totals[k]:.3f} at K={k}" for k, move in moves.items() if move >= _NOTHING]
    if not told:
        return ""
    return (
        "its lengths imply rates that rise with the position; isotonic regression moved them by up to "
        f"{max(moves.values()):.3f}: {', '.join(told)}"
    )


def _rows(data: Any, path: tuple[str, ...]) -> Iterator[tuple[str, dict[int, float]]]:
    if not isinstance(data, Mapping):
        return
    lengths = {
        key: float(value) for key, value in data.items() if type(key) is int and type(value) in (int, float)
    }
    if lengths and len(lengths) == len(data):
        yield "/".join(path) or "lengths", lengths
        return
    for key, value in data.items():
        yield from _rows(value, (*path, str(key)))


def _chosen(rows: Mapping[str, Any], row: str | None, path: str) -> str:
    found = [name for name in rows if row is None or name == row or name.endswith(f"/{row}")]
    if len(found) == 1:
        return found[0]
    if not rows:
        message = f"{_KEY}.file={path} has no row of mean acceptance lengths by draft length (1: 1.79)"
    elif found:
        message = f"{_KEY}.file={path} has the rows {', '.join(found)}; choose one with {_KEY}.row"
    else:
        message = f"{_KEY}.row={row} is no row of {path}{did_you_mean(row, rows)}; it has {', '.join(rows)}"
    raise ConfigError(message)
