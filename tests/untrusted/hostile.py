"""Text as nobody should have to trust it, and a sweep that has it in every field."""

import dataclasses
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.untrusted import plain
from jobs.result import FAILED, INVALID, MEASURED, TREATMENT, CellResult, Gate
from tests.analysis.made import Arm, made_results

MARKUP = (
    "</script></style></title></textarea><script>alert(1)</script><img src=x onerror=alert(2)>"
    '<svg/onload=alert(3)>" onmouseover="alert(4)" x=\' autofocus onfocus=\'alert(5)--><!--'
)
FORMULA = '=HYPERLINK("http://e.example") @SUM(1+1) $\\frac{$ %{x} %{customdata[0]} {{ 7 * 7 }} {% raw %}'
MARKDOWN = (
    "| a | `c` ``` [x](javascript:alert(6)) ![i](http://e.example/i.png) **b** <http://e.example> "
    "http://e.example www.e.example \n# heading\n\n- item\n1. one\n***\n```\n[red]rich[/red] :smile: "
)
STEERING = "\x1b]0;title\x07\x1b[31mred\x1b[0m\x9b31m\x1b]8;;http://e.example\x1b\\link\x1b]8;;\x1b\\\r\0\x08\x7f\x85"
TURNING = "\u202etxt.exe\u2066\u200f\u061c\u200b\ufeff\u2028\u2029\ud800"
HOSTILE = f" w{MARKUP}{FORMULA}{MARKDOWN}{STEERING}{TURNING}"
HARMLESS = re.sub(r"[^a-z ]", "x", plain(HOSTILE))
"""As long, and with the place of `HOSTILE` in every order."""
LONG = "w" * 10_000
FORMULAS = (
    "=1+1",
    "+1+1",
    "-1+x",
    "@SUM(A1)",
    "\t=1+1",
    "\r=1+1",
    " =1+1",
    "\uff1d1+1",
    "=cmd|' /C calc'!A0",
)

_FIXED = ("outcome", "role", "kind", "counterfactual", "started")
"""Words of our own in a result, from a fixed set each, which `CellResult.from_dict` holds them to."""
_OWN = ("run", "drafter.k")
"""Keys whose value is ours: the name of a folder, a number."""


def tainted(value: Any, tail: str) -> Any:
    """Return plain data with `tail` after every text in it, keys of open maps included."""
    if isinstance(value, str):
        return value + tail
    if isinstance(value, Mapping):
        return {key: entry if key in _OWN else tainted(entry, tail) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(tainted(entry, tail) for entry in value)
    return value


def tainted_cell(cell: CellResult, tail: str) -> CellResult:
    """Return a result with `tail` in every text that is free."""
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(CellResult):
        value = getattr(cell, field.name)
        if field.name in _FIXED or (field.name == "drafter" and value == "none"):
            continue
        if field.name == "factors":
            free = {key: text for key, text in value.items() if key not in _OWN}
            changes[field.name] = {**value, **{key + tail: text + tail for key, text in free.items()}}
        elif field.name == "gates":
            changes[field.name] = tuple(
                dataclasses.replace(gate, name=gate.name + tail, message=gate.message + tail)
                for gate in value
            )
        elif field.name != "metrics":
            changes[field.name] = tainted(value, tail)
    return dataclasses.replace(cell, **changes)


def cells(tail: str) -> list[CellResult]:
    """Return a sweep's results: two layouts, K sweeps, forced acceptance, and each kind of trouble."""
    arms = [
        Arm(label="tp1/eagle3-k3", tokens={1: 2.4, 16: 2.4}, step={1: 1.2, 16: 3.0}),
        Arm(label="tp1/eagle3-k7", k=7, tokens={1: 3.0, 16: 3.0}, step={1: 1.4, 16: 4.0}),
        Arm(label="tp1/synthetic-k3", tokens=3.0, step=1.2, synthetic=True, requested=3.0),
        Arm(label="tp2/ngram-k3", layout="tp2", drafter="ngram", tokens=1.5, step=1.1),
    ]
    results = made_results(arms, levels=(1, 16), blocks=2, noise=0.01)
    found = []
    for number, cell in enumerate(results):
        identity = {
            **cell.identity,
            **dict.fromkeys(("engine", "engine_version", "model", "validity", "host", "workload"), "fact"),
            "run": f"run-{cell.layout}-{cell.k}",
        }
        made = dataclasses.replace(
            cell,
            identity=identity,
            emulated=True,
            factors={"drafter.k": str(cell.k), "flag": "on"},
            caveats=("mind that",),
        )
        if cell.role == TREATMENT and cell.block == 1 and number % 3 == 0:
            gate = Gate(name="occupancy", passed=False, message="3 of 4", value=0.75, limit=0.95)
            told = {"cause": "occupancy", "reason": "too few", "log_tail": "last line"}
            outcome = FAILED if number % 2 else INVALID
            made = dataclasses.replace(made, outcome=outcome, gates=(gate,), **told)
            made = dataclasses.replace(made, metrics={}) if outcome == FAILED else made
        assert made.outcome != MEASURED or made.metrics
        found.append(CellResult.from_dict(tainted_cell(made, tail).to_dict()))
    return found


def plan(tail: str) -> dict[str, Any]:
    """Return what the analysis reads of a plan, with `tail` in every text that is free."""
    config = {
        "engine": "vllm", "version": "0", "device": "gpu", "model": {"name": "m", "path": "p"},
        "drafter": {"method": "mtp", "k": 3, "model": "d"}, "layout": {"tp": 4}, "flags": {"a": "b"},
    }  # fmt: skip
    free = {
        "name": "study", "sweep": "study-0123456789", "digest": "f" * 64, "currency": "USD",
        "overrides": ["drafter=ngram", "name=x"], "notes": ["12 conversations are repeated"],
        "workload": {
            "name": "builtin", "format": "builtin", "paths": ["a/b"], "digest": "e" * 64, "conversations": 24,
            "turns": 70, "dropped": [["c9", "longer than the context"]], "options": {"fit": "drop"},
            "validity": "recorded",
        },
        "refused": [{"arm": {"config": config}, "rule": "devices", "reason": "4 are needed and 2 are there"}],
        "arms": [{"digest": "0" * 64, "config": config, "levels": []}],
    }  # fmt: skip
    fixed = {
        "objective": "total",
        "threshold": 0.02,
        "seed": 7,
        "gpu_hour_price": 2.5,
        "slo": {"ttft_ms": 400.0},
    }
    return {**tainted(free, tail), **fixed}


def write_extras(folder: Path, tail: str, results: list[CellResult]) -> None:
    """Write what a sweep's folder has beside its cells: provenance, configurations, command lines."""
    folder.mkdir(parents=True)
    runs = [{"git": f"abc{tail}", f"key{tail}": [f"value{tail}"]}]
    (folder / "provenance.json").write_text(json.dumps({"runs": runs, f"host{tail}": f"node{tail}"}))
    for cell in {str(cell.identity["run"]): cell for cell in results}.values():
        own = folder / "engines" / str(cell.identity["run"])
        own.mkdir(parents=True)
        resolved = {f"spec.k{tail}": cell.k, "model": f"m{tail}", f"kv{cell.k}": f"auto{tail}"}
        (own / "resolved.json").write_text(json.dumps(resolved))
        (own / "r0-command.json").write_text(json.dumps({"argv": ["serve", f"--model=m{tail}"]}))
