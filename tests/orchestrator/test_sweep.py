"""Collecting points through Hydra: grammar, schema, errors, and no litter."""

import os
import sys
from pathlib import Path

import pytest

from orchestrator.errors import ConfigError
from orchestrator.sweep import collect, config_folder


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Hydra must work from any folder and leave nothing in it."""
    monkeypatch.chdir(tmp_path)
    yield
    assert list(tmp_path.iterdir()) == []


def test_one_point():
    (point,) = collect(["drafter=eagle3", "drafter.k=5"])
    assert point.at("drafter.method") == "eagle3"
    assert point.at("drafter.k") == 5
    assert point.choices == {"drafter": "eagle3", "drafter.k": "5"}
    with pytest.raises(KeyError):
        point.at("drafter.kk")


def test_a_grid_leftmost_slowest():
    points = collect(["-m", "drafter=eagle3,mtp", "load.concurrency=[1,4],16"])
    assert [point.at("drafter.method") for point in points] == ["eagle3"] * 2 + ["mtp"] * 2
    assert [point.at("load.concurrency") for point in points] == [[1, 4], 16] * 2


def test_options_may_stand_anywhere(capsys):
    assert len(collect(["drafter=eagle3", "-m", "drafter.k=1,3"])) == 2
    assert collect(["drafter=eagle3", "--cfg", "job", "drafter.k=5"]) == ()
    assert "k: 5" in capsys.readouterr().out


def test_an_experiment_is_a_grid_and_the_command_line_overrides_an_axis():
    points = collect(["+experiment=k_sweep", "drafter.k=2,4", "design.blocks=6"])
    assert [point.at("drafter.k") for point in points] == [2, 4]
    assert {point.at("design.blocks") for point in points} == {6}


def test_open_maps_take_new_keys():
    (point,) = collect(
        ["+engine.flags.block_size=32", "+drafter.options.x=1", "drafter.acceptance.alpha=0.5"]
    )
    assert point.at("engine.flags.block_size") == 32
    assert point.at("drafter.options") == {"x": 1}
    assert point.at("drafter.acceptance.alpha") == 0.5


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["workload.paths=x.traj"], r"workload\.paths=x\.traj.*in brackets and quotes"),
        (
            ["drafter=nope"],
            r"drafter has no option 'nope' \(did you mean none\?\); options are .*eagle3, .*none",
        ),
        (["-m", "drafter=eagle3,eagle33"], r"drafter has no option 'eagle33' \(did you mean eagle3\?\)"),
        (["nope=1"], r"there is no key nope; the top level has name,"),
        (["~foo"], r"there is no key foo"),
        (["foo"], r"'foo' is no override: write KEY=VALUE"),
        (["experiment=crossover"], r"experiment is added to the defaults: write \+experiment=crossover"),
        (["+experiment=k_sweep", "+experiment=crossover"], r"experiment is given twice"),
        (["+drafter=eagle3"], r"drafter is chosen already, so it takes no plus: write drafter=eagle3"),
        (
            ["+engine.flags.gpu=h100"],
            r"engine\.flags\.gpu has a value already.*: write engine\.flags\.gpu=h100",
        ),
        (["engine.flags.gpuu=h100"], r"has no gpuu yet \(did you mean gpu\?\).*: \+engine\.flags\.gpuu=h100"),
        (["+nope.x=1"], r"there is no key nope; the top level has name,"),
        (["drafter.kk=1"], r"there is no key drafter\.kk \(did you mean drafter\.k\?\); drafter has method,"),
        (["+drafter.kk=1"], r"there is no key drafter\.kk \(did you mean drafter\.k\?\)"),
        (["+drafter.acceptance.beta=1"], r"there is no key drafter\.acceptance\.beta"),
        (["workload.gap_scale=nan"], r"workload\.gap_scale is nan, .* give a finite one"),
        (["load.rate=[1,inf]"], r"load\.rate is inf, .* give a finite one"),
        (["+engine.flags.scale=-inf"], r"engine\.flags\.scale is -inf"),
        (["design.blocks=many"], r"design\.blocks=many.*could not be converted"),
        (["+experiment=nope"], r"experiment has no option 'nope'"),
        (["-m", "drafter.k=interval(1,3)"], r"does not support sweep type"),
        (["drafter.k=["], r"no viable alternative"),
        (["drafter.k=1,3"], r"drafter\.k=1,3 has several values: add -m .* or write 'drafter\.k=\[1,3\]'"),
        (["name=???"], r"name is not set"),
    ],
)
def test_errors_are_one_paragraph(words, message):
    with pytest.raises(ConfigError, match=message) as caught:
        collect(words)
    assert "\n" not in str(caught.value)


def test_printing_collects_nothing(capsys):
    assert collect(["--cfg", "job", "drafter=eagle3"]) == ()
    assert "method: eagle3" in capsys.readouterr().out


def test_the_process_is_left_as_it_was():
    argv, environment = list(sys.argv), dict(os.environ)
    with pytest.raises(ConfigError):
        collect(["drafter=nope"])
    collect([])
    assert sys.argv == argv
    assert dict(os.environ) == environment


def test_a_folder_of_ones_own(tmp_path_factory):
    own = tmp_path_factory.mktemp("own")
    (own / "experiment").mkdir()
    (own / "experiment" / "mine.yaml").write_text("# @package _global_\nname: mine\n")
    (point,) = collect(["--config-dir", str(own), "+experiment=mine"])
    assert point.at("name") == "mine"


def test_the_configuration_is_packaged():
    assert (config_folder() / "config.yaml").is_file()
    assert Path(config_folder()).name == "conf"
