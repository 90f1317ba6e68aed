"""What else differs between two sweeps: engine, model, settings, hardware, program, day.

Facts come from the plan (what was asked for), the cells (what they ran on), `provenance.json` (machine and
program) and the engines' own resolved configuration. *Factors* are those that could explain a change of a
ratio; where more than one differs, the change cannot be laid to one of them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis.compare.identity import Matched
from analysis.compare.side import Side
from analysis.section import Section

ENGINE, MODEL, DRAFTER, SETTINGS = "engine", "model", "drafter", "settings"
HARDWARE, PROGRAM, MEASURING, DAY = "hardware", "program", "measuring", "day"
RESOLVED = "resolved by the engine"
FACTORS = (ENGINE, MODEL, DRAFTER, SETTINGS, HARDWARE, PROGRAM, MEASURING)
"""Kinds of differences that could explain a change; the day is in every comparison, and resolved values
follow from the rest or stand for something that nobody wrote down."""
ABSENT = "-"
_GROUPS = {"engine": ENGINE, "version": ENGINE, "device": HARDWARE, "model": MODEL, "drafter": DRAFTER}
"""First part of a configuration key -> kind; all others are settings."""
_PACKAGES = 6
"""So many packages are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that is not alike."""

    kind: str
    """One of the words above."""
    key: str
    a: str
    b: str
    arms: str
    """Arms it holds for; empty for all."""

    @property
    def factor(self) -> bool:
        """Whether it could explain a change of a ratio."""
        return self.kind in FACTORS


def find_differences(pairs: Sequence[Matched], a: Side, b: Side) -> tuple[Difference, ...]:
    """Return all that differs, by kind."""
    found = [
        *_configurations(pairs),
        *_hardware(a, b),
        *_program(a, b),
        *_measuring(a, b),
        *_days(a, b),
        *_resolved(pairs, a, b),
    ]
    order = (*FACTORS, DAY, RESOLVED)
    return tuple(sorted(found, key=lambda item: order.index(item.kind)))


def _configurations(pairs: Sequence[Matched]) -> Iterator[Difference]:
    yield from _merged(
        (pair.label, _differing(pair.a.config, pair.b.config))
        for pair in pairs
        if pair.a.config and pair.b.config
    )


def _merged(
    found: Iterable[tuple[str, Mapping[str, tuple[str, str]]]], kind: str = ""
) -> Iterator[Difference]:
    """Yield each difference once, with the arms that have it where not all do."""
    arms: dict[tuple[str, str, str], list[str]] = {}
    every = []
    for label, own in found:
        every.append(label)
        for key, (mine, theirs) in own.items():
            arms.setdefault((key, mine, theirs), []).append(label)
    for (key, mine, theirs), labels in arms.items():
        yield Difference(
            kind=kind or _GROUPS.get(key.partition(".")[0], SETTINGS),
            key=key,
            a=mine,
            b=theirs,
            arms="" if len(labels) == len(every) else ", ".join(labels),
        )


def _differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    keys = sorted({*a, *b})
    return {key: (_text(a, key), _text(b, key)) for key in keys if a.get(key) != b.get(key)}


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key)
    if value is None:
        return ABSENT
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


def _hardware(a: Side, b: Side) -> Iterator[Difference]:
    mine, theirs = _machine(a), _machine(b)
    for key, (one, other) in _differing(mine, theirs).items():
        yield Difference(kind=HARDWARE, key=key, a=one, b=other, arms="")


def _machine(side: Side) -> dict[str, str | None]:
    runs = _provenance(side)
    hosts = [run["host"] for run in runs if isinstance(run.get("host"), dict)]
    gpus = [gpu for run in runs for gpu in run.get("gpus") or () if isinstance(gpu, dict)]
    told = sorted({str(cell.identity["host"]) for cell in side.sweep.results if cell.identity.get("host")})
    facts = {key: _all(host.get(key) for host in hosts) for key in ("processor", "machine", "kernel")}
    return {
        **facts,
        "cores": _all(host.get("usable_cores") for host in hosts),
        "memory_gib": _all(host.get("memory_gib") for host in hosts),
        "GPUs": _all(gpu.get("name") for gpu in gpus),
        "GPU driver": _all(gpu.get("driver") for gpu in gpus),
        "host": ", ".join(told) or None,
    }


def _program(a: Side, b: Side) -> Iterator[Difference]:
    runs = [_provenance(side) for side in (a, b)]
    for key in ("specload", "commit", "python"):
        values = [_all(_program_fact(run, key) for run in own) for own in runs]
        if values[0] != values[1]:
            yield Difference(kind=PROGRAM, key=key, a=values[0] or ABSENT, b=values[1] or ABSENT, arms="")
    packages = [dict(own[-1].get("packages") or {}) if own else {} for own in runs]
    changed = sorted(
        key for key in packages[0].keys() & packages[1].keys() if packages[0][key] != packages[1][key]
    )
    if changed:
        more = f", and {len(changed) - _PACKAGES} more" if len(changed) > _PACKAGES else ""
        texts = [", ".join(f"{key} {own[key]}" for key in changed[:_PACKAGES]) + more for own in packages]
        yield Difference(kind=PROGRAM, key="packages of the driver", a=texts[0], b=texts[1], arms="")


def _program_fact(run: Mapping[str, Any], key: str) -> object:
    if key != "commit":
        value = run.get(key)
        return value.get("version") if isinstance(value, dict) else value
    checkout = run.get("checkout")
    if not isinstance(checkout, dict) or not checkout.get("commit"):
        return None
    return f"{str(checkout['commit'])[:10]}{' (changed)' if checkout.get('modified') else ''}"


def _measuring(a: Side, b: Side) -> Iterator[Difference]:
    keys = ("seed", "warmup_requests", "warmup_rounds_max", "slo")
    mine, theirs = ({key: side.sweep.plan.get(key) for key in keys} for side in (a, b))
    for key, (one, other) in _differing(mine, theirs).items():
        yield Difference(kind=MEASURING, key=key, a=one, b=other, arms="")


def _days(a: Side, b: Side) -> Iterator[Difference]:
    values = [sorted(cell.started[:16] for cell in side.sweep.results if cell.started) for side in (a, b)]
    texts = [f"{own[0]} to {own[-1]} UTC" if own else ABSENT for own in values]
    if texts[0] != texts[1]:
        yield Difference(kind=DAY, key="measured", a=texts[0], b=texts[1], arms="")


def _resolved(pairs: Sequence[Matched], a: Side, b: Side) -> Iterator[Difference]:
    found = []
    for pair in pairs:
        mine, theirs = _dump(a, pair.a.arm), _dump(b, pair.b.arm)
        if mine and theirs:
            found.append((pair.label, _differing(mine, theirs)))
    yield from _merged(found, RESOLVED)


def _dump(side: Side, arm: str) -> Mapping[str, Any]:
    """Return what the first engine of an arm that told it resolved; empty where none did."""
    runs = dict.fromkeys(
        str(cell.identity["run"])
        for cell in side.sweep.results
        if cell.arm == arm and cell.identity.get("run")
    )
    for run in runs:
        content = _read(side, "engines", run, "resolved.json")
        if isinstance(content, dict) and content:
            return content
    return {}


def _provenance(side: Side) -> list[Mapping[str, Any]]:
    content = _read(side, "provenance.json")
    runs = content.get("runs") if isinstance(content, dict) else None
    return [run for run in runs if isinstance(run, dict)] if isinstance(runs, list) else []


def _read(side: Side, *parts: str) -> Any:
    try:
        return json.loads(side.sweep.directory.joinpath(*parts).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # what nobody kept, or damaged, cannot be compared; the figures can


def _all(values: Iterable[object]) -> str | None:
    told = sorted({f"{value}" for value in values if value is not None})
    return ", ".join(told) or None


def differences_section(found: Sequence[Difference]) -> Section:
    """Return the differences as a table."""
    rows = [
        {
            "kind": item.kind,
            "key": item.key,
            "a": item.a,
            "b": item.b,
            "arms": item.arms,
            "factor": item.factor,
        }
        for item in found
    ]
    return Section(
        name="differences",
        title="What else differs between A and B",
        frame=pd.DataFrame(rows),
        columns=COLUMNS if rows else {},
        missing="" if rows else "nothing that either sweep keeps a record of",
    )


COLUMNS = {
    "kind": "engine, model, drafter, settings (flags, environment, cache, decode), hardware, program, "
    "measuring, day; `resolved by the engine`: its own configuration, which follows from the others",
    "key": "what, as the plan or the record calls it",
    "a": "value in A",
    "b": "value in B",
    "arms": "arms it holds for; empty for all",
    "factor": "whether it could explain a change of a ratio",
}
