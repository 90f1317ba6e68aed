"""The command line: exit codes, one paragraph an error, and what each command prints."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from engines.errors import EngineDiedError, EngineEnvironmentError
from jobs.errors import WorkloadError
from orchestrator import cli
from orchestrator.commands import ui
from orchestrator.errors import ConfigError, LedgerError, PlacementError, SweepFailedError, TrackingError
from orchestrator.pending import pending
from orchestrator.plan import Plan
from tests.orchestrator.conftest import outcomes

SPECLOAD = Path(sys.executable).with_name("specload")

PRINTS_NO_RESULTS = ("logs", "ui", "workload")
"""What somebody else prints (`workload` has commands of its own)."""


def test_help_lists_every_command_with_an_example(capsys):
    assert cli.main(["--help"]) == 0
    out = capsys.readouterr().out
    for command in cli.COMMANDS:
        assert f"  {command.name:<10} {command.help}" in out
        assert command.example in out


def test_no_command_is_an_error(capsys):
    assert cli.main([]) == 2
    assert "usage" in capsys.readouterr().err


def test_an_unknown_command_names_the_others(capsys):
    assert cli.main(["swep"]) == 2
    told = capsys.readouterr().err
    assert "no command 'swep' (did you mean sweep?); commands are plan, rules, sweep," in told


@pytest.mark.parametrize("command", [command.name for command in cli.COMMANDS])
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as left:
        cli.main([command, "--help"])
    assert left.value.code == 0
    out = capsys.readouterr().out
    assert f"usage: specload {command}" in out
    (example,) = [known.example for known in cli.COMMANDS if known.name == command]
    assert out.count("example:") == 1
    assert ("--json" in out) == (command not in PRINTS_NO_RESULTS)
    assert out.endswith(f"example:\n  {example}\n")


def test_help_documents_the_exit_codes(capsys):
    assert cli.main(["--help"]) == 0
    out = capsys.readouterr().out
    for code, meaning in cli.EXIT_CODES.items():
        assert f"  {code:<10} {meaning}" in out


def printed(capsys):
    """Return what a command printed, which is JSON and nothing else."""
    return json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


def test_what_needs_no_sweep_is_printed_as_json(capsys, tmp_path):
    assert cli.main(["rules", "vllm", "--json"]) == 0
    rules = printed(capsys)["rules"]
    assert {rule["engine"] for rule in rules} == {"every engine", "vllm"}
    assert cli.main(["doctor", "--json", "--results", str(tmp_path / "results")]) == 0
    assert {"ok"} < {finding["state"] for finding in printed(capsys)["findings"]} | {"note", "missing"}
    assert cli.main(["plan", "--json", "-m", "drafter=eagle3", "design.blocks=1"]) == 0
    found = printed(capsys)
    assert found["estimate"]["cells"] > 0
    assert Plan.from_dict(found["plan"]).sweep == found["sweep"]


@pytest.fixture
def made(tmp_path, small_plan):
    """A sweep's folder with a cell."""
    sweep = tmp_path / "results" / small_plan.sweep
    cell = next(cell for segment in pending(small_plan, []) for cell in outcomes(small_plan, segment))
    folder = sweep / "cells" / cell.cell
    folder.mkdir(parents=True)
    (sweep / "plan.json").write_text(json.dumps(small_plan.to_dict()))
    (folder / "result.json").write_text(json.dumps(cell.to_dict()))
    return sweep


@pytest.mark.parametrize(
    ("command", "key"), [("report", "rows"), ("capacity", "memory_costs"), ("acceptance", "acceptance")]
)
def test_what_a_sweep_says_is_printed_as_json(command, key, made, capsys):
    more = ["--no-pictures"] if command == "report" else []
    assert cli.main([command, str(made), "--json", *more]) == 0
    assert key in printed(capsys)


@pytest.mark.parametrize("command", cli.ON_SWEEPS)
@pytest.mark.parametrize("damage", ["missing", "file", "empty", "plan"])
def test_a_wrong_folder_is_a_sentence(command, damage, made, capsys):
    place = {
        "missing": made.with_name("absent"),
        "file": made / "cells.txt",
        "empty": made.with_name("empty"),
        "plan": made,
    }[damage]
    (made / "cells.txt").write_text("no folder")
    made.with_name("empty").mkdir()
    (made / "plan.json").write_text('{"schema": ')
    (made / "status.json").write_text("[")
    more = {"target": ["--speedup", "1.5"], "compare": [str(place)]}
    words = [str(place), *more.get(command, [])]
    if command == "status" and damage == "missing":
        words += ["--address", "http://127.0.0.1:9"]  # what is no folder is looked for on a cluster
    assert cli.main([command, *words]) == 2
    err = capsys.readouterr().err
    assert err.startswith("specload: ")
    assert err.count("\n") == 1
    assert "defect" not in err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), 2),
        (PlacementError("x"), 2),
        (LedgerError("x"), 2),
        (TrackingError("x"), 2),
        (SweepFailedError("x"), 1),
        (EngineEnvironmentError("x"), 2),
        (EngineDiedError("x"), 1),
        (WorkloadError("x"), 2),
        (ValueError("of a library"), 1),
        (PermissionError(13, "Permission denied", "/x"), 2),
        (OSError("of a library"), 1),
        (RuntimeError("x"), 1),
    ],
)
def test_exit_codes(error, code):
    assert cli.exit_code(error) == code


def test_an_error_is_one_paragraph_without_a_traceback(capsys):
    assert cli.main(["plan", "drafter=nope"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("specload: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_debug_shows_the_traceback(capsys, monkeypatch):
    assert cli.main(["plan", "drafter=nope", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err
    monkeypatch.setenv("SPECLOAD_DEBUG", "1")
    assert cli.main(["plan", "drafter=nope"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_plan_prints_arms_blocks_and_size(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["plan", "-m", "drafter=none,eagle3", "layout=tp1,tp2", "design.blocks=2"]
    assert cli.main(words) == 0
    out = capsys.readouterr().out
    for label in ("tp1/none", "tp1/eagle3-k3", "tp2/eagle3-k3"):
        assert label in out
    # 2 blocks x (1 + 1 + 1 runs of each layout; tp1 fills the slice of 2 with two engines) = 2 x (6 + 3)
    assert "18 engine starts, 48 cells, device time unknown" in out
    assert list(tmp_path.iterdir()) == []


def test_plan_prints_what_is_refused(capsys):
    assert cli.main(["plan", "-m", "drafter=eagle3", "layout=tp1,tp4", "cluster.slots=2"]) == 0
    assert "needs 4 devices and this machine offers 2" in capsys.readouterr().out


def test_cfg_prints_and_does_nothing_else(capsys):
    assert cli.main(["sweep", "--cfg", "job", "drafter=mtp"]) == 0
    assert "method: mtp" in capsys.readouterr().out


def test_from_takes_no_words(capsys, tmp_path):
    assert cli.main(["sweep", "--from", str(tmp_path / "plan.json"), "drafter=mtp"]) == 2
    assert "leave out drafter=mtp" in capsys.readouterr().err
    assert cli.main(["sweep", "--from", str(tmp_path / "plan.json")]) == 2
    assert "cannot be read" in capsys.readouterr().err
    assert cli.main(["sweep", "--results", str(tmp_path)]) == 2
    assert "--results goes with --from" in capsys.readouterr().err


def test_doctor_never_fails(capsys, tmp_path):
    assert cli.main(["doctor", "--results", str(tmp_path / "absent" / "results")]) == 0
    out = capsys.readouterr().out
    for what in ("Python", "ray", "host", "GPUs", "engine=emulator", "disk", "MLflow store"):
        assert what in out


def test_report_of_a_folder_that_is_no_sweep(capsys, tmp_path):
    assert cli.main(["report", str(tmp_path)]) == 2
    assert "plan.json" in capsys.readouterr().err


def test_ui_serves_this_machine_only(tmp_path, small_plan):
    sweep = tmp_path / small_plan.sweep
    sweep.mkdir()
    (sweep / "plan.json").write_text(json.dumps(small_plan.to_dict()))
    with pytest.raises(TrackingError, match="no MLflow store"):
        ui.command(sweep, 5000)
    (tmp_path / "mlflow.db").touch()
    argv = ui.command(sweep, 5001)
    assert argv[argv.index("--host") + 1] == "127.0.0.1"
    assert argv[argv.index("--port") + 1] == "5001"
    assert argv[argv.index("--backend-store-uri") + 1] == f"sqlite:///{tmp_path / 'mlflow.db'}"
    assert ui.command(tmp_path, 5001) == argv


@pytest.mark.parametrize(
    ("uri", "message"), [("disabled", "tracking disabled"), ("http://127.0.0.1:5000", "open http")]
)
def test_ui_without_a_store_of_its_own(tmp_path, small_plan, uri, message):
    plan = replace(small_plan, tracking={"uri": uri, "experiment": None})
    (tmp_path / "plan.json").write_text(json.dumps(plan.to_dict()))
    with pytest.raises(ConfigError, match=message):
        ui.command(tmp_path, 5000)


def complete(line):
    done = subprocess.run(
        [str(SPECLOAD), "-sc", "query=bash"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={"COMP_LINE": line, "COMP_POINT": str(len(line)), "PATH": "/usr/bin:/bin"},
    )
    return done.stdout.split()


def test_completion_of_commands_and_of_words():
    assert complete("specload swe") == ["sweep"]
    assert "drafter=eagle3" in complete("specload sweep drafter=")
    assert complete("specload doctor x") == []


def test_completion_of_options_and_of_sweeps(made, monkeypatch, capsys):
    def completed(line):
        monkeypatch.setenv("COMP_LINE", line)
        assert cli.main(["-sc", "query=bash"]) == 0
        return capsys.readouterr().out.split()

    assert completed("specload report --") == ["--debug", "--help", "--json", "--no-pictures", "--threshold"]
    assert "--retry" in completed("specload sweep drafter=eagle3 --re")
    monkeypatch.chdir(made.parent.parent)
    assert completed("specload report ") == [f"results/{made.name}"]
    assert completed("specload report res") == ["results/"]
    assert completed("specload report results/") == [f"results/{made.name}"]
    assert completed("specload report nothing") == []
    assert completed("specload nocommand --") == []


def test_the_console_script_works_anywhere(tmp_path):
    done = subprocess.run(
        [str(SPECLOAD), "plan", "nope=1"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("specload: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["--help"], ["recommend", "--help"], ["rules", "vllm"]])
def test_a_reader_that_leaves_early_is_no_error(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [str(SPECLOAD), *words], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
