"""What a user calls a sweep, and what is said where that is none."""

import os
from pathlib import Path

import pytest

from orchestrator import cli
from orchestrator.errors import ConfigError
from orchestrator.sweep_folder import newest, sweep_folder


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Seven sweeps, the higher number the newer one, though the oldest has run last."""
    monkeypatch.chdir(tmp_path)
    for number in range(7):
        folder = tmp_path / "results" / f"study-{number}"
        folder.mkdir(parents=True)
        (folder / "plan.json").write_text("{}")
        os.utime(folder / "plan.json", (1000.0 + number, 1000.0 + number))
    (tmp_path / "results" / "study-0" / "status.json").write_text("{}")
    (tmp_path / "results" / "no-sweep").mkdir()
    return Path("results")


def test_a_path_or_the_name_alone_is_a_sweep(results: Path) -> None:
    assert sweep_folder(results / "study-3") == results / "study-3"
    assert sweep_folder(Path("study-3")) == results / "study-3"
    assert sweep_folder((results / "study-3").resolve()).is_absolute()


def test_the_newest_sweeps_come_first_and_the_first_few_are_named(results: Path) -> None:
    assert newest(results) == ["study-0", *(f"study-{number}" for number in (6, 5, 4, 3, 2, 1))]
    for path, what in (
        (results, "is a folder without a plan.json"),
        (results / "no-sweep", "is a folder without a plan.json"),
        (results / "study-3" / "plan.json", "is no folder"),
        (Path("somewhere/else"), "is not there"),
    ):
        with pytest.raises(ConfigError, match=what) as caught:
            sweep_folder(path)
        listed = "sweeps in results, the newest first: study-0, study-6, study-5, study-4, study-3 and 2 more"
        assert listed in str(caught.value), path


def test_the_sweep_that_was_meant_is_named(results: Path) -> None:
    with pytest.raises(ConfigError, match=r"is not there \(did you mean study-\d\?\)"):
        sweep_folder(results / "study-33")


def test_without_any_sweep_the_command_that_makes_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="which `specload sweep` makes"):
        sweep_folder(Path("study-3"))


@pytest.mark.parametrize("command", cli.ON_SWEEPS)
def test_every_command_on_a_sweep_names_them(
    results: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    places = [str(results / "no-sweep")] * (2 if command == "compare" else 1)
    more = ("--speedup", "1.5") if command == "target" else ()
    assert cli.main([command, *places, *more]) == 2
    said = capsys.readouterr().err
    assert said.startswith("specload: ")
    assert "the newest first: study-0, study-6" in said


def test_a_word_that_is_nothing_is_told_with_the_one_that_was_meant(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["reprot"]) == 2
    assert "there is no command 'reprot' (did you mean report?)" in capsys.readouterr().err
    assert cli.main(["sweep", "--retry-faild", "drafter=eagle3"]) == 2
    assert "no option --retry-faild (did you mean --retry?)" in capsys.readouterr().err
    for words, meant in (
        (["doctor", "--clent"], "--client"),
        (["workload", "inspct"], "inspect"),
        (["sweep", "--retry", "invald"], "'invald' is no outcome to try again"),
    ):
        with pytest.raises(SystemExit):
            cli.main(words)
        assert meant in capsys.readouterr().err
