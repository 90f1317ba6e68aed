"""The example that ends each command's help is one that the command takes."""

import shlex
import shutil
from pathlib import Path

import pytest

from orchestrator import cli
from tests.orchestrator.test_cli_faults import sweep as sweep  # noqa: PLC0414 - a fixture

ELSEWHERE = "http://127.0.0.1:9"
"""Where no cluster is."""
ASKS_OTHERS = ("submit", "status", "logs", "stop", "fetch", "judge", "workload", "profile", "ui", "compare")
"""Commands that say what is missing here: a cluster, other files, a store."""
SLOW = ("doctor", "sync", "sweep")
"""Commands whose words are only parsed: `--help` behind them."""


def words_of(command: cli.Command, folder: Path) -> list[str]:
    words = shlex.split(command.example)
    assert words[:2] == ["specload", command.name]
    known = {"http://HEAD:8265": ELSEWHERE, "results/SWEEP": str(folder), "running.csv": "running.csv"}
    return [known.get(word, word) for word in words[1:]]


@pytest.mark.parametrize("command", cli.COMMANDS, ids=lambda command: command.name)
def test_an_example_is_taken(
    command: cli.Command,
    sweep: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAY_API_SERVER_ADDRESS", ELSEWHERE)
    Path("running.csv").write_text("time,running\n0,1\n60,2\n")
    for name in ("A", "B"):
        shutil.copytree(sweep, tmp_path / "results" / name)
    words = words_of(command, sweep)
    if command.name in SLOW:
        with pytest.raises(SystemExit) as left:
            cli.main([*words, "--help"])
        assert left.value.code == 0
        return
    code = cli.main([*words, *(["--no-pictures"] if command.name == "report" else [])])
    said = capsys.readouterr()
    if command.name in ASKS_OTHERS:
        assert code == 2
        assert said.err.startswith("specload: ")
        assert said.err.count("\n") == 1
        assert "defect" not in said.err
    else:
        assert (code, said.err) == (0, "")
        assert said.out
