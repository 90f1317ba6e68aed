"""Files as their user names them, and the arms they are said to be of."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.others.arms import OtherArm, arms_of, parse_arm
from analysis.others.comparison import compare
from analysis.others.reading import read_runs
from analysis.others.run import OtherResultsError

Make = Callable[..., dict[str, Any]]


def test_files_patterns_and_folders_name_a_file_once(tmp_path: Path, make_vllm: Make) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps(make_vllm()), encoding="utf-8")
    (tmp_path / "notes.txt").write_text("x", encoding="utf-8")
    given = [tmp_path / "a.json", str(tmp_path / "*.json"), tmp_path]
    assert [Path(run.source).name for run in read_runs(given).runs] == ["a.json", "b.json"]


def test_results_that_were_appended_to_one_file(tmp_path: Path, make_vllm: Make) -> None:
    path = tmp_path / "all.json"
    levels = (1, 2, 4)
    texts = [json.dumps(make_vllm(max_concurrency=level)) for level in levels]
    path.write_text("\n".join(texts), encoding="utf-8")
    found = read_runs([path]).runs
    assert [run.level for run in found] == [1.0, 2.0, 4.0]
    assert found[2].source == f"{path} entry 2"


def test_only_results_of_a_folder_of_artifacts_are_opened(tmp_path: Path, make_aiperf: Make) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "profile_export_aiperf.json").write_text(json.dumps(make_aiperf()), encoding="utf-8")
    (tmp_path / "run" / "inputs.json").write_text("[1, 2", encoding="utf-8")
    assert len(read_runs([tmp_path]).runs) == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty"),
        ('{"a": 1', "is no JSON from character 0"),
        ('{"a": 1}', "is no result of a tool known here"),
        ("[1, 2]", "entry 0 is no result of a tool known here"),
    ],
)
def test_what_is_no_result_is_named(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(OtherResultsError, match=told) as refused:
        read_runs([path])
    assert str(path) in str(refused.value)


def test_a_sweep_of_our_own_is_for_another_command(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{}", encoding="utf-8")
    with pytest.raises(OtherResultsError, match="specload report"):
        read_runs([tmp_path])


def test_a_pattern_without_a_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OtherResultsError, match="no such file or folder"):
        read_runs([tmp_path / "*.json"])


@pytest.mark.parametrize(
    ("label", "arm"),
    [
        ("none", OtherArm(drafter="none")),
        ("eagle3-k5", OtherArm(drafter="eagle3", k=5)),
        ("tp2-dp2/draft-model-k3", OtherArm(drafter="draft-model", k=3, layout="tp2-dp2")),
        ("tp4/none", OtherArm(drafter="none", layout="tp4")),
    ],
)
def test_labels(label: str, arm: OtherArm) -> None:
    assert parse_arm(label) == arm
    assert arm.label == label


def test_no_label() -> None:
    with pytest.raises(OtherResultsError, match="is no label of an arm"):
        parse_arm("a/b/c")


def test_a_run_of_which_nobody_tells_what_it_is(make_run: Make) -> None:
    with pytest.raises(OtherResultsError, match=r"1 run does not tell what served them \(x\); say it with"):
        arms_of([make_run("x", 1.0)], {})


def test_a_baseline_that_drafted_is_refused(make_run: Make) -> None:
    run = make_run("x", 1.0, drafts=10.0)
    with pytest.raises(OtherResultsError, match="x is given as a baseline, but its server counted drafts"):
        arms_of([run], {"x": OtherArm(drafter="none")})


def test_k_comes_from_the_positions_where_the_label_leaves_it_out(make_run: Make) -> None:
    runs = [make_run("x", 1.0, k=3), make_run("y", 1.0, k=0)]
    found = arms_of(runs, dict.fromkeys("xy", OtherArm(drafter="eagle3")))
    assert {arm.label for _, arm in found} == {"eagle3-k3"}, "one arm, whichever of its runs tells"


def test_what_cannot_be_compared(tmp_path: Path, make_vllm: Make) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(make_vllm(max_concurrency=None)), encoding="utf-8")
    with pytest.raises(
        OtherResultsError, match=r"no run is left to judge: .*all 16 prompts were sent at once"
    ):
        compare(baseline=[path])
    with pytest.raises(OtherResultsError, match="write LABEL=FILES"):
        compare(arms=["eagle3"])
    with pytest.raises(OtherResultsError, match="give the files of a comparison"):
        compare()
    path.write_text(json.dumps(make_vllm()), encoding="utf-8")
    with pytest.raises(OtherResultsError, match="is given twice"):
        compare(baseline=[path], arms=[f"eagle3={path}"])
