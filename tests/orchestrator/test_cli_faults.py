"""Whatever a user points a command at: a sentence and exit code 2, never a traceback."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from orchestrator import cli
from orchestrator.pending import pending
from orchestrator.plan import Plan
from tests.orchestrator.conftest import outcomes

Damage = Callable[[Path], object]
READ_NO_CELLS = ("status", "ui")
MORE: Mapping[str, tuple[str, ...]] = {"target": ("--speedup", "1.5"), "report": ("--no-pictures",)}


def changed(file: Path, **changes: Any) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def folder_in_place(file: Path) -> None:
    file.unlink()
    file.mkdir()


PLANS: Mapping[str, Damage] = {
    "empty": lambda plan: plan.write_bytes(b""),
    "half": lambda plan: plan.write_bytes(plan.read_bytes()[:200]),
    "latin-1": lambda plan: plan.write_bytes(plan.read_bytes().replace(b"study", b"st\xfcdy")),
    "utf-16": lambda plan: plan.write_bytes(plan.read_text().encode("utf-16")),
    "list": lambda plan: plan.write_text("[]"),
    "number": lambda plan: plan.write_text("7"),
    "deep": lambda plan: plan.write_text("[" * 100_000),
    "folder": folder_in_place,
    "link to nothing": lambda plan: (plan.unlink(), plan.symlink_to("nowhere")),
    "another version": lambda plan: changed(plan, schema=999),
    "by hand": lambda plan: changed(plan, seed=99),
    "other type": lambda plan: changed(plan, threshold="much"),
    "no blocks": lambda plan: changed(plan, blocks=None),
}
CELLS: Mapping[str, Damage] = {
    "empty": lambda result: result.write_bytes(b""),
    "half": lambda result: result.write_bytes(result.read_bytes()[:100]),
    "latin-1": lambda result: result.write_bytes(
        result.read_bytes().replace(b"ngram", b"ngr\xe4m") + b"\xff"
    ),
    "list": lambda result: result.write_text("[]"),
    "null": lambda result: result.write_text("null"),
    "deep": lambda result: result.write_text("[" * 100_000),
    "folder": folder_in_place,
    "another version": lambda result: changed(result, schema=999),
    "field missing": lambda result: result.write_text('{"schema": 1}'),
    "field unknown": lambda result: changed(result, colour="red"),
    "metrics as text": lambda result: changed(result, metrics={"user/speed_tok_s": "fast"}),
    "metrics as list": lambda result: changed(result, metrics=[1.0]),
    "gates": lambda result: changed(result, gates=[7]),
    "block as text": lambda result: changed(result, block="first"),
    "unknown outcome": lambda result: changed(result, outcome="fine"),
    "unknown role": lambda result: changed(result, role="leading"),
    "no level": lambda result: changed(result, concurrency=None),
    "level as text": lambda result: changed(result, concurrency="16"),
    "level of nothing": lambda result: changed(result, concurrency=0),
    "another cell": lambda result: changed(result, cell="../../elsewhere"),
    "unknown identity": lambda result: changed(result, identity=None),
    "the same twice": lambda result: shutil.copytree(result.parent, result.parent.with_name("again")),
}


@pytest.fixture
def sweep(tmp_path: Path, small_plan: Plan) -> Path:
    """A sweep's folder with the cells of a block."""
    folder = tmp_path / "results" / small_plan.sweep
    for cell in outcomes(small_plan, pending(small_plan, [])[0]):
        (folder / "cells" / cell.cell).mkdir(parents=True)
        told = {**cell.to_dict(), "metrics": {"throughput/total_tok_s": 100.0 + cell.k + 9 * cell.level}}
        (folder / "cells" / cell.cell / "result.json").write_text(json.dumps(told))
    (folder / "plan.json").write_text(json.dumps(small_plan.to_dict()))
    return folder


def told(command: str, sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Hold that a command says one sentence about a folder and exits with 2."""
    places = [str(sweep)] * (2 if command == "compare" else 1)
    assert cli.main([command, *places, *MORE.get(command, ())]) == 2, command
    said = capsys.readouterr()
    assert said.err.startswith("specload: "), command
    assert said.err.count("\n") == 1, (command, said.err)
    assert "defect" not in said.err, (command, said.err)
    assert len(said.err) < 2000, command


@pytest.mark.parametrize("damage", PLANS)
def test_a_damaged_plan(damage: str, sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    PLANS[damage](sweep / "plan.json")
    for command in cli.ON_SWEEPS:
        if command != "status":  # it reads what the driver wrote last
            told(command, sweep, capsys)


@pytest.mark.parametrize("damage", CELLS)
def test_a_damaged_cell(damage: str, sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    CELLS[damage](next(sweep.glob("cells/*/result.json")))
    for command in cli.ON_SWEEPS:
        if command not in READ_NO_CELLS:
            told(command, sweep, capsys)
