"""`specload compare` on two folders of results: what it prints, writes and refuses."""

import json
from dataclasses import replace

import pytest

from jobs.metric_names import METRICS
from orchestrator import cli
from orchestrator.pending import Segment
from tests.orchestrator.conftest import outcomes


def write(folder, plan, *, factor=1.0, day="2026-01-01"):
    """A sweep in which K=3 is `factor` times as good as 1.3 times the baseline; a noise of 0.1 %."""
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(json.dumps(plan.to_dict()))
    shift = 1.0
    for block in plan.blocks:
        for result in outcomes(plan, Segment(block=block, index=0, runs=block.runs)):
            shift = 2.002 - shift
            value = 1000.0 * result.level**0.7 * {3: 1.3 * factor, 7: 0.8}.get(result.k, 1.0) * shift
            figures = {name: value for name in METRICS if "tok_s" in name}
            cell = replace(result, metrics=figures, started=f"{day}T00:00:00")
            path = folder / "cells" / cell.cell
            path.mkdir(parents=True)
            (path / "result.json").write_text(json.dumps(cell.to_dict()))
    return str(folder)


@pytest.fixture
def sweeps(small_plan, tmp_path):
    """The same plan with two versions of the engine; with the second K=3 gains nothing."""
    digests = {arm.digest: replace(arm.config, version="2").digest for arm in small_plan.arms}
    blocks = tuple(
        replace(block, runs=tuple(replace(run, arm=digests[run.arm]) for run in block.runs))
        for block in small_plan.blocks
    )
    arms = tuple(replace(arm, config=replace(arm.config, version="2")) for arm in small_plan.arms)
    newer = replace(small_plan, arms=arms, blocks=blocks)
    old = write(tmp_path / small_plan.sweep, small_plan)
    return old, write(tmp_path / newer.sweep, newer, factor=1 / 1.3, day="2026-02-01")


def test_what_changed_is_printed_and_written(sweeps, tmp_path, capsys):
    page = tmp_path / "pages" / "both.html"
    assert cli.main(["compare", *sweeps, "--report", str(page)]) == 0
    out = capsys.readouterr().out
    assert "tp1/ngram-k3 at C=1 is worse: 1.300 in A, 1.000 in B, -23.1%" in out
    assert "at C=4 the recommendation changes from tp1/ngram-k3 to tp1/none" in out
    assert "these figures come from a model of hardware" in out
    text = page.read_text(encoding="utf-8")
    assert "<title>EMULATED &middot; " in text
    assert 'id="figure-comparison"' in text
    assert "is worse: 1.300 in A" in text
    assert not list(page.parent.glob(".*"))


def test_the_same_as_json(sweeps, capsys):
    assert cli.main(["compare", *sweeps, "--json"]) == 0
    told = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    sections = {section["name"]: section["rows"] for section in told["sections"]}
    words = {(row["arm"], row["level"]): row["verdict"] for row in sections["ratios"]}
    assert words == {
        ("tp1/ngram-k3", 1.0): "worse",
        ("tp1/ngram-k3", 4.0): "worse",
        ("tp1/ngram-k7", 1.0): "no difference",
        ("tp1/ngram-k7", 4.0): "no difference",
    }
    assert {"kind": "engine", "key": "version", "a": "1", "b": "2", "arms": "", "factor": True} in sections[
        "differences"
    ]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ([], "hold the same measurements"),
        (["--objective", "speed"], "objective 'speed' is unknown"),
        (["--threshold", "2"], "--threshold is 2"),
    ],
)
def test_a_refusal_is_one_paragraph(sweeps, capsys, more, words):
    assert cli.main(["compare", sweeps[0], sweeps[0], *more]) == 2
    err = capsys.readouterr().err
    assert err.startswith("specload: ")
    assert err.count("\n") == 1
    assert words in err


def test_a_page_that_cannot_be_written_is_a_sentence(sweeps, tmp_path, capsys):
    (tmp_path / "file").touch()
    assert cli.main(["compare", *sweeps, "--report", str(tmp_path / "file" / "page.html")]) == 2
    assert "the page cannot be written" in capsys.readouterr().err
